"""Which objects are read in parts in this run, and what the driver has to write of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.errors import SourceError, Where
from headrace.framework.format_keys import compresses_by_itself
from headrace.framework.parts import Part, cut
from headrace.framework.split_size import can_split
from headrace.framework.splits import SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import S3OffsetEntry, object_key
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.parts import Cut, part_entry, part_keys
from headrace.sources.s3.progress import Standing
from headrace.sources.s3.splits import S3Split
from headrace.transformers.compression import AUTO, NONE, kind_by_name

__all__ = ["Cutter"]


@attrs.define
class _InParts:
    """An object that is read in parts: the first `done` of them are, as far as it was looked at."""

    found: S3Object
    parts: int
    most: int
    done: int = 0
    is_joined: bool = False


@attrs.define
class Cutter:
    """Cuts large objects, and joins them when they are done. For the enumerator, on its thread.

    An object is cut before its first record is read, and not any more. In one run it has one writer: what was given to
    a task as a whole stays whole, and the entry of what was cut is the driver's, also after the object was overwritten.
    """

    context: SplitEnumeratorContext[S3Split]
    config: S3Config
    _known: dict[str, _InParts] = attrs.field(factory=dict, init=False)
    _to_write: dict[OffsetManagerKey, Mapping[str, Any] | None] = attrs.field(factory=dict, init=False)
    _can_split: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._can_split = can_split(self.config.input_format, self.config.props)

    def splits(self, one: Standing) -> list[S3Split]:
        """What is to be read of an object: all of it, or its parts that are left."""
        found, known = one.found, self._known.get(one.found.uri)
        if known is not None and S3OffsetEntry.for_object(known.found).is_of(found):
            return Cut.of(found, known.parts, self.context.offsets).splits(ended=False)
        if one.cut is not None:
            self._go_on(one.cut)
            return one.cut.splits(ended=False)
        before = one.entry.parts if one.entry is not None else 0
        parts = self._parts_of(one)
        if parts:
            most = max(parts, before, known.most if known else 0)
            self._known[found.uri] = _InParts(found, parts, most)
            self._write(found, S3OffsetEntry.cut(found, parts).get_properties(), most)
            return [S3Split(found, Part(number, parts)) for number in range(parts)]
        if before:
            self._write(found, None, before)
        return [S3Split(found)]

    def forget(self, objects: Iterable[S3Object]) -> None:
        """Have the entries of these objects forgotten, before anybody reads them: they count no more."""
        self._to_write.update({object_key(found.bucket, found.key): None for found in objects})

    def offsets_to_write(self) -> Offsets:
        """The cuts that were made, and the entries of objects whose parts are all done in place of theirs."""
        for one in self._known.values():
            if object_key(one.found.bucket, one.found.key) not in self._to_write and self._is_done(one):
                joined = Cut.of(one.found, one.parts, self.context.offsets).joined()
                self._write(one.found, joined.get_properties(), one.most)
                one.is_joined = True
        written, self._to_write = self._to_write, {}
        return written

    def _go_on(self, stored: Cut) -> None:
        if not self._can_split:
            raise SourceError(
                f"it was begun in parts, which cannot be read with input.format={self.config.input_format}: "
                "go back to the format that it was begun with, or reset its offsets",
                Where(stage=Stage.DISCOVER, connector=self.config.name, object=stored.found.uri),
            )
        parts, known = len(stored.entries), self._known.get(stored.found.uri)
        self._known[stored.found.uri] = _InParts(stored.found, parts, max(parts, known.most if known else 0))

    def follow(self, stored: Cut) -> None:
        """Take in an object whose parts have all been read, and which nobody has written down as finished."""
        parts = len(stored.entries)
        self._known.setdefault(stored.found.uri, _InParts(stored.found, parts, parts))

    def _parts_of(self, one: Standing) -> int:
        """How many parts an object is to be cut into; 0 where it is read as a whole."""
        found, place = one.found, one.decision.position
        parts = cut(found.size, self.config.split_size_bytes)
        if found.uri in self._known:
            return parts
        is_begun = place.records > 0 or place.byte > 0 or self.context.owner(found.uri) is not None
        if parts == 1 or is_begun or self.context.current_parallelism() == 1 or not self._can_split:
            return 0
        return 0 if self._is_compressed(found) else parts

    def _is_compressed(self, found: S3Object) -> bool:
        if compresses_by_itself(self.config.input_format):
            return False
        kind = self.config.file_compression_type
        return (kind_by_name(found.key) if kind == AUTO else kind) != NONE

    def _is_done(self, one: _InParts) -> bool:
        """Whether all parts are; each of them is looked at until it is, and not again."""
        if one.is_joined:
            return False
        while one.done < one.parts:
            split = S3Split(one.found, Part(one.done, one.parts))
            if self.context.in_hand(split.split_id) or not self._is_ended(split):
                return False
            one.done += 1
        return True

    def _is_ended(self, split: S3Split) -> bool:
        key = OffsetManagerKey(split.source_partition)
        entry = part_entry(split.object, split.part or Part(0, 1), self.context.offsets.get([key]).get(key))
        return entry is not None and entry.is_ended

    def _write(self, found: S3Object, offset: Mapping[str, Any] | None, parts: int) -> None:
        """Have the object's entry written, and those of its parts forgotten."""
        forgotten: Sequence[OffsetManagerKey] = part_keys(found, parts)
        self._to_write.update(dict.fromkeys(forgotten))
        self._to_write[object_key(found.bucket, found.key)] = offset
