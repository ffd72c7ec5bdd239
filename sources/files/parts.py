"""A file that is read in parts: what is stored of each, what they come to, and whether the file is still the same one.

The file's own entry has the number of its parts, what it was known by when it was cut, and a name for that cut, which
the entries of its parts have as well: what is left of an older cut counts for nothing. Lines that are added meanwhile
lie behind all parts, and are read on once these are done, as behind any file that was read.
"""

import os
from collections.abc import Sequence
from typing import Self

import attrs

from headrace.framework.parts import ENDED, PARTS, Part, joined_counts
from headrace.offsets.entry import RECORD_COUNT
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore
from headrace.sources.files.entry import (
    CUT,
    HEAD,
    HEAD_BYTES,
    LINE,
    SIZE,
    TAIL,
    Action,
    FileOffsetEntry,
    OverwritePolicy,
    file_key,
    file_part_key,
)
from headrace.sources.files.fingerprint import Content, LocalContent
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.splits import FilePart, FileSplit
from headrace.transformers.base import Position

__all__ = ["CutFile", "is_still", "part_entry", "part_keys"]


def part_keys(path: str, parts: int) -> list[OffsetManagerKey]:
    """The source partitions of so many parts of a file."""
    return [file_part_key(path, number) for number in range(parts)]


def part_entry(path: str, part: FilePart, known: object) -> FileOffsetEntry | None:
    """What is stored of a part, if that is of the same cut."""
    if not isinstance(known, dict) or known.get(CUT) != part.cut:
        return None
    return FileOffsetEntry(file_part_key(path, part.number), known)


def is_still(cut: FileOffsetEntry, parts: Sequence[FileOffsetEntry | None], found: FoundFile, content: Content) -> bool:
    """Whether a file begins with all that was there when it was cut, as far as marks tell."""
    if cut.is_version(found):
        return True
    size, head, head_bytes = cut.get_int(SIZE) or 0, cut.get_string(HEAD), cut.get_int(HEAD_BYTES) or 0
    if found.size < size or head is None or content.head(head_bytes) != head:
        return False
    tails = [(one.byte, one.get_string(TAIL)) for one in parts if one is not None]
    return all(tail is None or content.before(byte) == tail for byte, tail in tails)


@attrs.frozen
class CutFile:
    """A file in parts, with its entry and those of the parts; None is one of which nothing was read."""

    found: FoundFile
    entry: FileOffsetEntry
    entries: Sequence[FileOffsetEntry | None]

    @classmethod
    def of(cls, found: FoundFile, entry: FileOffsetEntry, offsets: OffsetStore) -> Self:
        """The parts of a file, as the offsets know them; `entry` is the file's own."""
        keys = part_keys(found.path, entry.parts)
        known = offsets.get(keys)
        parts = [split.part for split in _splits(found, entry)]
        return cls(
            found,
            entry,
            [part_entry(found.path, part, known.get(key)) for part, key in zip(parts, keys, strict=True) if part],
        )

    @property
    def is_ended(self) -> bool:
        """Whether all parts were read to their ends."""
        return all(entry is not None and entry.is_ended for entry in self.entries)

    def splits(self, *, ended: bool) -> list[FileSplit]:
        """The parts that were read to their ends, or those that were not."""
        splits = zip(_splits(self.found, self.entry), self.entries, strict=True)
        return [split for split, entry in splits if (entry is not None and entry.is_ended) is ended]

    def what_to_do(self, policy: OverwritePolicy) -> Action:
        """What to do about the file, by what is stored of its parts."""
        try:
            descriptor = os.open(self.found.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return Action.READ  # the reader says what is wrong with it, or finds that it has gone
        try:
            is_same = is_still(self.entry, self.entries, self.found, LocalContent(descriptor))
        finally:
            os.close(descriptor)
        if is_same:
            return Action.FINISHED if self.is_ended else Action.READ
        is_begun = any(entry is not None and entry.record_count for entry in self.entries)
        return Action(policy.value) if is_begun else Action.REREAD

    def joined(self, content: Content | None, *, is_plain: bool) -> FileOffsetEntry:
        """The entry of the file, once all parts have ended: what reading it as a whole would have left."""
        size, counted = self.entry.get_int(SIZE) or 0, [one.get_properties() for one in self.entries if one is not None]
        first = self.entries[0]
        packed = Position() if first is None else first.position()
        sums = joined_counts(counted, RECORD_COUNT, LINE)
        place = Position(
            records=sums.get(RECORD_COUNT, 0), byte=size if is_plain else packed.byte, line=sums.get(LINE, 0)
        )
        tail = content.before(size) if is_plain and content is not None else None
        kept = {name: value for name, value in self.entry.get_properties().items() if name not in {PARTS, CUT, ENDED}}
        entry = FileOffsetEntry(file_key(self.found.path), kept)
        return entry.from_properties(entry.properties_at(place, tail=tail, complete=True))


def _splits(found: FoundFile, entry: FileOffsetEntry) -> list[FileSplit]:
    size, cut = entry.get_int(SIZE) or 0, entry.get_string(CUT) or ""
    return [FileSplit(found, part=FilePart(Part(number, entry.parts), size, cut)) for number in range(entry.parts)]
