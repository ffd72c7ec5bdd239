"""What the line formats share: lines in, each with its place, without looking at what is in them.

A line ends with a line feed; the object's last may lack its end. A byte order mark at the object's start is none of
the first line's bytes. Lines are counted from the object's beginning, blank ones included.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.schema import Schema
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Position, Transformer, ValueBatch
from headrace.transformers.options import FormatOptions

__all__ = ["BOM", "BadLine", "LineTransformer", "split_lines"]

_READ_BYTES = 256 * 1024
_MOST_VALUES = 5000

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
    """

    config_class = FormatOptions
    resumes_at_byte = True
    grows = True
    options: FormatOptions = FormatOptions()

    schema: ClassVar[Schema]
    """The schema of all values."""

    def select(self, lines: list[bytes]) -> tuple[list[bytes], list[int] | None]:
        """The lines that are values, and their indices among `lines`; None for the indices means every one."""
        return lines, None

    @abstractmethod
    def decode(self, lines: Sequence[bytes]) -> tuple[Sequence[Any], BadLine | None]:
        """The values of these lines, up to the first that is none."""

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = FormatOptions.of(props)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        skip = 0 if start.byte else start.records
        for block in self._blocks(stream, start if start.byte else Position()):
            first = min(skip, len(block.values))
            skip -= first
            yield from self._decoded(block, first)

    def _blocks(self, stream: ByteStream, position: Position) -> Iterator["_Block"]:
        for lines, size in split_lines(stream, self.options.max_record_bytes, position.line):
            if position.byte == 0 and lines[0].startswith(BOM):
                lines[0] = lines[0].removeprefix(BOM)
                position = attrs.evolve(position, byte=len(BOM))
                size -= len(BOM)  # noqa: PLW2901 - the mark is before the block, not in it
            values, indices = self.select(lines)
            yield _Block(position, lines, size, values, indices)
            position = Position(
                records=position.records + len(values), byte=position.byte + size, line=position.line + len(lines)
            )

    def _decoded(self, block: "_Block", first: int) -> Iterator[ValueBatch]:
        for at in range(first, len(block.values), _MOST_VALUES):
            values, bad = self.decode(block.values[at : at + _MOST_VALUES])
            if values:
                yield ValueBatch(schema=self.schema, values=values, position_at=partial(block.after, at))
            if bad:
                position = f"line {block.line_of(at + bad.index)}"
                raise DataError(bad.message, Where(stage=Stage.TRANSFORM, position=position)) from bad.cause


def split_lines(stream: ByteStream, limit: int = 0, done: int = 0) -> Iterator[tuple[list[bytes], int]]:
    """Whole lines without their ends, and how many bytes they are with them.

    A line of more than `limit` bytes is a `DataError`, after the lines before it; 0 is no limit. `done` lines have
    come before, and are counted in its number.
    """
    pieces: list[bytes] = []
    held = 0
    while chunk := stream.read(_READ_BYTES):
        pieces.append(chunk)
        held += len(chunk)
        if b"\n" in chunk:
            data = b"".join(pieces)
            lines = data.split(b"\n")
            rest = lines.pop()
            pieces, held = ([rest], len(rest)) if rest else ([], 0)
            long = _first_longer(lines, limit) if limit and len(data) > limit else None
            if long is not None:
                yield from [(lines[:long], sum(map(len, lines[:long])) + long)] if long else []
                raise _too_long(done + long + 1, limit)
            yield lines, len(data) - held
            done += len(lines)
        if limit and held > limit:
            raise _too_long(done + 1, limit)
    if pieces:
        last = b"".join(pieces)
        yield [last], len(last)


def _first_longer(lines: list[bytes], limit: int) -> int | None:
    return next((index for index, line in enumerate(lines) if len(line) > limit), None)


def _too_long(number: int, limit: int) -> DataError:
    message = f"the line has more than {limit} bytes: set max.record.bytes higher if that is meant"
    return DataError(message, Where(stage=Stage.TRANSFORM, position=f"line {number}"))


@attrs.define
class _Block:
    """Lines that were read at once; places in it are worked out when somebody asks."""

    start: Position
    lines: list[bytes]
    size: int
    values: list[bytes]
    indices: list[int] | None
    _ends: list[int] | None = None

    def line_of(self, value: int) -> int:
        """The number of a value's line, counted from 1 at the object's beginning."""
        return self.start.line + 1 + (value if self.indices is None else self.indices[value])

    def after(self, first: int, count: int) -> Position:
        """The place right behind the line of the last of `count` values from the `first` on."""
        done = first + count
        if done == 0:
            return self.start
        lines = done if self.indices is None else self.indices[done - 1] + 1
        return Position(
            records=self.start.records + done, byte=self.start.byte + self._end(lines), line=self.start.line + lines
        )

    def _end(self, lines: int) -> int:
        if lines == len(self.lines):
            return self.size
        if self._ends is None:
            self._ends = list(accumulate(len(line) + 1 for line in self.lines))
        return self._ends[lines - 1]
