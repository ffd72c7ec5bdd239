"""Values of Avro's blocks as batches: those of small blocks together, with every value's own place."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import attrs

from headrace.framework.schema import Schema
from headrace.transformers.avro_container import Block
from headrace.transformers.base import Place, Position, ValueBatch

__all__ = ["MOST_BYTES", "MOST_VALUES", "HeldValues", "place"]

MOST_VALUES = 2000
MOST_BYTES = 1024 * 1024


def place(block: Block, count: int) -> Position:
    """Where reading goes on after the first records of a block."""
    if count == block.count:
        return Position(records=block.done + count, byte=block.end, inside=1)
    return Position(records=block.done + count, byte=block.start, inside=count + 1)


@attrs.frozen
class _Places:
    """Where reading goes on behind each of some values: `ends` counts them up to the end of each block.

    With each block, how many records of it come before the first of the values; less than 0 where it begins later.
    """

    begin: Position
    blocks: list[tuple[Block, int]]
    ends: list[int]

    def after(self, count: int) -> Position:
        if not count:
            return self.begin
        block, before = self.blocks[bisect_left(self.ends, count)]
        return place(block, before + count)

    def of(self, index: int) -> Place:
        """The block that a value is in."""
        block, _ = self.blocks[bisect_left(self.ends, index + 1)]
        return Place(start=block.start, end=block.end)


@attrs.define
class HeldValues:
    """Values of blocks that follow each other. A batch costs what many records do, and blocks are often small."""

    schema: Schema | None
    _values: list[Any] = attrs.field(factory=list, init=False)
    _blocks: list[tuple[Block, int]] = attrs.field(factory=list, init=False)
    _ends: list[int] = attrs.field(factory=list, init=False)
    _bytes: int = attrs.field(default=0, init=False)

    def has_room(self, block: Block, values: list[Any]) -> bool:
        """Whether values of a block may come to what is held."""
        return len(self._values) + len(values) <= MOST_VALUES and self._bytes + len(block.data) <= MOST_BYTES

    def add(self, block: Block, first: int, values: list[Any]) -> None:
        """Hold values of a block, before which are the block's `first`."""
        self._blocks.append((block, first - len(self._values)))
        self._values += values
        self._ends.append(len(self._values))
        self._bytes += len(block.data)

    def give_out(self) -> Iterator[ValueBatch]:
        """What is held, if there is any; then nothing is."""
        values, blocks, ends = self._values, self._blocks, self._ends
        if values:
            block, before = blocks[0]
            places = _Places(place(block, before), blocks, ends)
            self._values, self._blocks, self._ends, self._bytes = [], [], [], 0
            yield ValueBatch(schema=self.schema, values=values, position_at=places.after, place_of=places.of)
