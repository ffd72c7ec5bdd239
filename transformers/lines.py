"""What the line formats share: lines in, each with its place, without looking at what is in them.

A line ends with a line feed; the object's last may lack its end. A byte order mark at the object's start is none of
the first line's bytes. Lines are counted from the object's beginning, blank ones included.
"""

import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.parts import Extent
from headrace.framework.schema import Schema
from headrace.framework.stage import Stage
from headrace.transformers.again import Opener, all_of, lines_of, refuse_part
from headrace.transformers.base import ByteStream, Place, Position, Rejected, Transformer, ValueBatch
from headrace.transformers.options import FormatOptions
from headrace.transformers.parts import LinesWithin, named_within
from headrace.transformers.seeking import SeekableStream
from headrace.transformers.whole_lines import whole_lines

__all__ = ["BOM", "BadLine", "LineTransformer"]

_MOST_VALUES = 5000
_FEW_VALUES = 16

BOM = b"\xef\xbb\xbf"
"""A byte order mark, as UTF-8 has it."""


@attrs.frozen
class BadLine:
    """The first line of some that cannot be decoded: its index among them, what is wrong, and the next step."""

    index: int
    message: str
    cause: BaseException | None = None


class LineTransformer(Transformer):
    """A format whose values are lines: it selects the lines that are values, and decodes them.

    Each read of the stream gives a batch of the lines that it completed, so that what was read before a stream
    fails has been given out. A line is held in memory as a whole, up to `max.record.bytes`, and nothing else is.
    With `errors.tolerance=all` a line that is none, or too long, is a rejected piece by itself.
    """

    config_class = FormatOptions
    resumes_at_byte = True
    grows = True
    options: FormatOptions = FormatOptions()

    schema: ClassVar[Schema]
    """The schema of all values."""

    skips_blank: ClassVar[bool] = True
    """Whether a line of which nothing is left is no value."""

    @abstractmethod
    def strip(self, lines: Iterable[bytes]) -> list[bytes]:
        """Each line without its end, if it has one, and without what else is none of its value."""

    @abstractmethod
    def decode(self, lines: Sequence[bytes], within: bytes | None = None) -> tuple[Sequence[Any], BadLine | None]:
        """The values of these lines, which are stripped, up to the first that is none.

        `within`, if it is known, holds them all and nothing else but what was stripped: what is true of it as a whole
        need not be found out line by line.
        """

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = FormatOptions.of(props)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        skip = 0 if start.byte else start.records
        for block in self._blocks(stream, start if start.byte else Position()):
            count = len(block.values) if block.data else 1
            first = min(skip, count)
            skip -= first
            if block.data:
                yield from self._tolerant(block, first) if self.options.tolerant else self._decoded(block, first)
            elif not first:
                yield _gap(block, self.options.max_record_bytes)

    @override
    def again(self, open_content: Opener, piece: Rejected, *, same: bool, same_size: bool) -> Iterator[ValueBatch]:
        data = lines_of(open_content(), piece, self.options.max_record_bytes, same=same, same_size=same_size)
        if data is None:
            refuse_part(piece, same=same)
            yield from super().again(open_content, piece, same=same, same_size=same_size)
        else:
            start = attrs.evolve(piece.before, byte=piece.start or 0)
            yield from all_of(self.batches(io.BytesIO(data), start if start.byte else Position()), piece.count)

    @classmethod
    @override
    def can_split(cls, props: Mapping[str, str]) -> bool:
        return True

    @override
    def part(self, stream: SeekableStream, extent: Extent, start: Position) -> Iterator[ValueBatch]:
        lines = LinesWithin.of(stream, extent, start.byte)
        with named_within(extent):
            yield from self.batches(lines, attrs.evolve(start, byte=lines.position))

    def _blocks(self, stream: ByteStream, position: Position) -> Iterator["_Block"]:
        limit, tolerant = self.options.max_record_bytes, self.options.tolerant
        for data, size in whole_lines(stream, limit, tolerant=tolerant):
            if not (data or tolerant):
                raise _too_long(position.line + 1, limit)
            if position.byte == 0 and data.startswith(BOM):
                data, size = data.removeprefix(BOM), size - len(BOM)  # noqa: PLW2901 - the mark is before the block
                position = attrs.evolve(position, byte=len(BOM))
                if not size:
                    return
            block = self._block(position, data, size)
            yield block
            position = Position(
                records=position.records + (len(block.values) if data else 1),
                byte=position.byte + size,
                line=position.line + block.lines,
            )

    def _block(self, start: Position, data: bytes, size: int) -> "_Block":
        values = self.strip(io.BytesIO(data))
        lines, indices = len(values) or 1, None
        if self.skips_blank and not all(values):
            indices = [index for index, value in enumerate(values) if value]
            values = list(filter(None, values))
        return _Block(start, data, size, lines, values, indices)

    def _decoded(self, block: "_Block", first: int) -> Iterator[ValueBatch]:
        for at in range(first, len(block.values), _MOST_VALUES):
            values, bad = self.decode(*block.some(at, _MOST_VALUES))
            if values:
                yield self._batch(block, at, values)
            if bad:
                raise block.error(at, bad) from bad.cause

    def _batch(self, block: "_Block", at: int, values: Sequence[Any]) -> ValueBatch:
        return ValueBatch(
            schema=self.schema,
            values=values,
            position_at=partial(block.after, at),
            place_of=partial(block.place, at),
        )

    def _tolerant(self, block: "_Block", first: int) -> Iterator[ValueBatch]:
        """The same, with each bad line as a piece; where one is bad, more are looked for a few at a time."""
        at, most = first, _MOST_VALUES
        while at < len(block.values):
            values, bad = self.decode(*block.some(at, most))
            if values:
                yield self._batch(block, at, values)
            if bad:
                yield block.rejected(at, bad)
            most = _FEW_VALUES if bad else min(2 * most, _MOST_VALUES)
            at += len(values) + (bad is not None)


def _gap(block: "_Block", limit: int) -> ValueBatch:
    """A line that is too long, as a piece."""
    start = block.start
    end = start.byte + block.size
    piece = Rejected(
        error=_too_long(start.line + 1, limit), number=start.line + 1, before=start, start=start.byte, end=end
    )
    return piece.batch(Position(records=start.records + 1, byte=end, line=start.line + 1))


def _too_long(number: int, limit: int) -> DataError:
    message = f"the line has more than {limit} bytes: set max.record.bytes higher if that is meant"
    return DataError(message, Where(stage=Stage.TRANSFORM, position=f"line {number}"))


@attrs.define
class _Block:
    """Lines that were read at once; places in it are worked out when somebody asks.

    Without data it is a line that is too long.
    """

    start: Position
    data: bytes
    size: int
    lines: int
    values: list[bytes]
    indices: list[int] | None
    _ends: list[int] | None = None

    def some(self, first: int, most: int) -> tuple[list[bytes], bytes | None]:
        """At most so many values from the `first` on; if they are all, what they were read from as well."""
        if first == 0 and len(self.values) <= most:
            return self.values, self.data
        return self.values[first : first + most], None

    def line_of(self, value: int) -> int:
        """The number of a value's line, counted from 1 at the object's beginning."""
        return self.start.line + 1 + self._index(value)

    def error(self, first: int, bad: BadLine) -> DataError:
        """What is wrong with a line among the values from the `first` on."""
        where = Where(stage=Stage.TRANSFORM, position=f"line {self.line_of(first + bad.index)}")
        error = DataError(bad.message, where)
        error.__cause__ = bad.cause
        return error

    def rejected(self, first: int, bad: BadLine) -> ValueBatch:
        """That line as a piece."""
        index = first + bad.index
        line = self._index(index)
        before, after, place = self.after(0, index), self.after(0, index + 1), self.place(0, index)
        return Rejected(
            error=self.error(first, bad),
            number=self.line_of(index),
            before=before,
            start=place.start,
            end=place.end,
            raw=self.data[self._end(line) : self._end(line + 1)].removesuffix(b"\n"),
        ).batch(after)

    def place(self, first: int, index: int) -> Place:
        """The line of a value, that index counted from the `first` on."""
        line = self._index(first + index)
        start, end = self.start.byte + self._end(line), self.start.byte + self._end(line + 1)
        return Place(line=self.start.line + line + 1, start=start, end=end)

    def after(self, first: int, count: int) -> Position:
        """The place right behind the line of the last of `count` values from the `first` on."""
        done = first + count
        if done == 0:
            return self.start
        lines = done if self.indices is None else self.indices[done - 1] + 1
        return Position(
            records=self.start.records + done, byte=self.start.byte + self._end(lines), line=self.start.line + lines
        )

    def _index(self, value: int) -> int:
        return value if self.indices is None else self.indices[value]

    def _end(self, lines: int) -> int:
        if lines == self.lines:
            return self.size
        if self._ends is None:
            self._ends = list(accumulate(map(len, io.BytesIO(self.data)), initial=0))
        return self._ends[lines]
