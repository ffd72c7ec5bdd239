"""An object that is read in parts: what is stored of each, and what they come to once all of them are done."""

from collections.abc import Sequence
from typing import Self

import attrs

from headrace.framework.parts import Part, joined_counts
from headrace.offsets.entry import RECORD_COUNT
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore
from headrace.sources.s3.entry import BYTE_OFFSET, LINE, S3OffsetEntry, object_key, part_key
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.splits import S3Split

__all__ = ["Cut", "part_entry", "part_keys"]


def part_keys(found: S3Object, parts: int) -> list[OffsetManagerKey]:
    """The source partitions of so many parts of an object."""
    return [part_key(found.bucket, found.key, number) for number in range(parts)]


def part_entry(found: S3Object, part: Part, known: object) -> S3OffsetEntry | None:
    """What is stored of a part, if that is of this version and of the same cut."""
    if not isinstance(known, dict):
        return None
    entry = S3OffsetEntry.stored(part_key(found.bucket, found.key, part.number), known)
    return entry if entry.parts == part.parts and entry.is_of(found) else None


@attrs.frozen
class Cut:
    """An object in parts, with the entry of each; None is one of which nothing was read."""

    found: S3Object
    entries: Sequence[S3OffsetEntry | None]

    @classmethod
    def of(cls, found: S3Object, parts: int, offsets: OffsetStore) -> Self:
        """An object in so many parts, as the offsets know it."""
        keys = part_keys(found, parts)
        known = offsets.get(keys)
        return cls(found, [part_entry(found, Part(number, parts), known.get(key)) for number, key in enumerate(keys)])

    @property
    def is_ended(self) -> bool:
        """Whether all parts were read to their ends."""
        return all(entry is not None and entry.is_ended for entry in self.entries)

    @property
    def records(self) -> int:
        """How many records of it went out."""
        return sum(entry.record_count for entry in self.entries if entry is not None)

    @property
    def ended_parts(self) -> int:
        """How many parts were read to their ends."""
        return sum(entry is not None and entry.is_ended for entry in self.entries)

    def splits(self, *, ended: bool) -> list[S3Split]:
        """The parts that were read to their ends, or those that were not."""
        return [
            S3Split(self.found, Part(number, len(self.entries)))
            for number, entry in enumerate(self.entries)
            if (entry is not None and entry.is_ended) is ended
        ]

    def joined(self) -> S3OffsetEntry:
        """The entry of the object, once all parts have ended: what reading it as a whole would have left."""
        entry = S3OffsetEntry.for_object(self.found)
        counts = joined_counts([one.get_properties() for one in self.entries if one is not None], RECORD_COUNT, LINE)
        last = self.entries[-1]
        place = {BYTE_OFFSET: self.found.size} if last is not None and last.get_int(BYTE_OFFSET) else {}
        return entry.from_properties({**entry.get_properties(), **counts, **place}).finished()

    @property
    def key(self) -> OffsetManagerKey:
        """The source partition of the object."""
        return object_key(self.found.bucket, self.found.key)
