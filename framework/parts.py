"""A large object as several splits: how it is cut, and how the progress of its parts is written down.

The cut stands in the object's own entry, as the number of its `parts`, before any of them is read; where each begins
follows from that number and the object's size. So a half-read object goes on as it was cut, whatever
`split.size.bytes` says by then, and one that was begun as a whole goes on as a whole. Each part has an entry of its own
under the object's source partition with its number added (`part`): Kafka Connect and Aiven's connector ask for the
object's key, byte for byte, and never see them. A part that was read to its end has `ended` in it. Once all have, the
driver writes the ordinary entry of a finished object in place of all of these, in one transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

__all__ = [
    "ENDED",
    "OVERRUN_BYTES",
    "PART",
    "PARTS",
    "Extent",
    "Part",
    "cut",
    "joined_counts",
    "part_of",
    "within_part",
]

PART = "part"
"""The name that a part's source partition has besides the object's."""

PARTS = "parts"
"""The property that says into how many parts an object is cut; in its own entry, and in those of its parts."""

ENDED = "ended"
"""The property that says that a part was read to its end; `complete` is said of objects only."""

MOST_PARTS = 10_000
"""Of a larger object the parts are larger than was asked for."""

OVERRUN_BYTES = 64 * 1024
"""How much behind a part is fetched with it: its last record seldom ends where the part does."""


@attrs.frozen
class Extent:
    """The bytes of a part: from `start` on, and before `end`."""

    start: int
    end: int

    def wanted(self, at: int) -> int:
        """How many bytes reading takes from the byte `at` on, about."""
        return max(0, self.end - at) + OVERRUN_BYTES


@attrs.frozen
class Part:
    """One of `parts` parts of an object, its `number` counted from 0."""

    number: int
    parts: int

    def extent(self, size: int) -> Extent:
        """Its bytes, in an object of `size` bytes."""
        return Extent(self.number * size // self.parts, (self.number + 1) * size // self.parts)

    def words(self) -> str:
        """The part for people, who count from 1."""
        return f"part {self.number + 1} of {self.parts}"


def cut(size: int, split_size: int) -> int:
    """How many parts an object of `size` bytes has; 1 where it is not larger than a part."""
    return max(1, min(MOST_PARTS, -(-size // split_size))) if split_size else 1


def part_of(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> Part | None:
    """The part that a source partition and its offset speak of; None where that is a whole object."""
    number, parts = partition.get(PART), offset.get(PARTS)
    return Part(number, parts) if isinstance(number, int) and isinstance(parts, int) else None


def within_part(position: str, start: int) -> str:
    """A position for people, with the byte of the part from whose beginning it is counted; 0 is the object's."""
    return f"{position} of the part from byte {start}" if start else position


def joined_counts(parts: Sequence[Mapping[str, Any]], *names: str) -> dict[str, int]:
    """What the entries of all parts of an object add up to, for each of these names that any of them has."""
    sums = {name: sum(offset.get(name) or 0 for offset in parts) for name in names}
    return {name: count for name, count in sums.items() if count}
