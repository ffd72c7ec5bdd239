"""Which files are read in parts in this run, and what the driver has to write of them."""

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.errors import SourceError, Where
from headrace.framework.format_keys import compresses_by_itself
from headrace.framework.parts import PARTS, cut
from headrace.framework.split_size import can_split
from headrace.framework.splits import SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import CUT, Action, FileOffsetEntry, file_key
from headrace.sources.files.fingerprint import LocalContent
from headrace.sources.files.objects import FoundFile, is_url
from headrace.sources.files.parts import CutFile, part_entry, part_keys
from headrace.sources.files.splits import FileSplit
from headrace.transformers.base import Position
from headrace.transformers.compression import AUTO, NONE, detect

__all__ = ["FileCutter"]

MARK_BYTES = 16


@attrs.define
class _InParts:
    """A file that is read in parts, with its entry: the first `done` of them are, as far as it was looked at."""

    found: FoundFile
    entry: FileOffsetEntry
    most: int
    done: int = 0
    is_joined: bool = False


@attrs.define
class FileCutter:
    """Cuts large local files, and joins them when they are done. For the enumerator, on its thread.

    A file is cut before its first record is read, and not any more. Its entry has one writer at a time: the driver for
    what was cut, and for what was given to a task as a whole that task, for the rest of the run.
    """

    context: SplitEnumeratorContext[FileSplit]
    config: FilesConfig
    _known: dict[str, _InParts] = attrs.field(factory=dict, init=False)
    _to_write: dict[OffsetManagerKey, Mapping[str, Any] | None] = attrs.field(factory=dict, init=False)
    _can_split: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._can_split = can_split(self.config.input_format, self.config.props)

    def splits(self, found: FoundFile, entry: FileOffsetEntry | None, action: Action) -> list[FileSplit]:
        """What is to be read of a file: all of it, or its parts that are left."""
        before = entry.parts if entry is not None else 0
        if entry is not None and before and action is Action.READ:
            self.follow(found, entry)
            return CutFile.of(found, entry, self.context.offsets).splits(ended=False)
        known = self._known.get(found.path)
        parts = self._parts_of(found, entry if action is Action.READ else None)
        if parts:
            fresh = self._cut(found, parts)
            most = max(parts, before, known.most if known else 0)
            self._known[found.path] = _InParts(found, fresh, most)
            self._write(found.path, fresh.get_properties(), most)
            return CutFile(found, fresh, [None] * parts).splits(ended=False)
        if before:
            self._write(found.path, None, before)
        self._known.pop(found.path, None)
        return [FileSplit(found)]

    def follow(self, found: FoundFile, entry: FileOffsetEntry) -> None:
        """Go on with a file as it was cut."""
        if not self._can_split:
            raise SourceError(
                f"it was begun in parts, which cannot be read with input.format={self.config.input_format}: "
                "go back to the format that it was begun with, or reset its offsets",
                Where(stage=Stage.DISCOVER, connector=self.config.name, object=found.path),
            )
        known = self._known.get(found.path)
        if known is None or known.entry.get_string(CUT) != entry.get_string(CUT):
            most = max(entry.parts, known.most if known else 0)
            self._known[found.path] = _InParts(found, entry, most)

    def offsets_to_write(self) -> Offsets:
        """The cuts that were made, and the entries of files whose parts are all done in place of theirs."""
        for path, one in self._known.items():
            if file_key(path) not in self._to_write and self._is_done(one):
                self._write(path, self._joined(one).get_properties(), one.most)
                one.is_joined = True
        written, self._to_write = self._to_write, {}
        return written

    def _joined(self, one: _InParts) -> FileOffsetEntry:
        cut_file = CutFile.of(one.found, one.entry, self.context.offsets)
        with _opened(one.found.path) as descriptor:
            if descriptor is None:
                return cut_file.joined(None, is_plain=True)
            is_plain = self._kind(one.found.path, descriptor) == NONE
            return cut_file.joined(LocalContent(descriptor), is_plain=is_plain)

    def _parts_of(self, found: FoundFile, stored: FileOffsetEntry | None) -> int:
        """How many parts a file is to be cut into; 0 where it is read as a whole."""
        parts = cut(found.size, self.config.split_size_bytes)
        if (stored is not None and not stored.is_blank) or self.context.owner(found.path) is not None:
            return 0
        if found.path in self._known:
            return parts
        if parts == 1 or self.context.current_parallelism() == 1 or not self._can_split:
            return 0
        return 0 if is_url(found.path) or self._is_compressed(found.path) else parts

    def _is_compressed(self, path: str) -> bool:
        with _opened(path) as descriptor:
            return descriptor is None or self._kind(path, descriptor) != NONE

    def _kind(self, path: str, descriptor: int) -> str:
        if compresses_by_itself(self.config.input_format):
            return NONE
        kind = self.config.file_compression_type
        return detect(path, os.pread(descriptor, MARK_BYTES, 0)) if kind == AUTO else kind

    def _cut(self, found: FoundFile, parts: int) -> FileOffsetEntry:
        with _opened(found.path) as descriptor:
            content = None if descriptor is None else LocalContent(descriptor)
            entry = FileOffsetEntry(file_key(found.path), {}).of_version(found, content)
        known = entry.properties_at(Position())
        return entry.from_properties({**known, PARTS: parts, CUT: uuid.uuid4().hex[:16]})

    def _is_done(self, one: _InParts) -> bool:
        """Whether all parts are; each of them is looked at until it is, and not again."""
        if one.is_joined:
            return False
        splits = CutFile(one.found, one.entry, [None] * one.entry.parts).splits(ended=False)
        while one.done < len(splits):
            split = splits[one.done]
            if self.context.in_hand(split.split_id) or not self._is_ended(split):
                return False
            one.done += 1
        return True

    def _is_ended(self, split: FileSplit) -> bool:
        key = OffsetManagerKey(split.source_partition)
        assert split.part is not None  # noqa: S101 - these are parts
        entry = part_entry(split.file.path, split.part, self.context.offsets.get([key]).get(key))
        return entry is not None and entry.is_ended

    def _write(self, path: str, offset: Mapping[str, Any] | None, parts: int) -> None:
        """Have the file's entry written, and those of its parts forgotten."""
        self._to_write.update(dict.fromkeys(part_keys(path, parts)))
        self._to_write[file_key(path)] = offset


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int | None]:
    """The file, open; None where that cannot be done: somebody else says why."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
