"""Rows of CSV that are told apart without a parser: most of what programs write, with quotes or without."""

from collections.abc import Sequence
from itertools import chain
from typing import overload

import attrs

from headrace.framework.compat import override
from headrace.framework.table import ESCAPED_IN_JSON, Texts

__all__ = ["Grid", "grid_of"]


@attrs.frozen(eq=False)
class Grid(Sequence[Sequence[str]]):
    """Rows of as many fields each, held column by column; there is at least one column."""

    columns: Sequence[Sequence[str]]

    @override
    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> list[str]: ...

    @overload
    def __getitem__(self, index: slice) -> "Grid": ...

    @override
    def __getitem__(self, index: int | slice) -> "list[str] | Grid":
        if isinstance(index, slice):
            return Grid([column[index] for column in self.columns])
        return [column[index] for column in self.columns]


def grid_of(data: bytes, delimiter: str, quote: str) -> Grid | None:
    """Lines in UTF-8 as rows, where no escape has a meaning; None where a parser has to look at them.

    That is so where rows have not all as many fields as the first, where lines are blank or end with anything but a
    line feed (with or without a carriage return), and where quotes are not around whole fields, or a line ends between
    them. `quote` is the empty text where none has a meaning.
    """
    lines = data.replace(b"\r\n", b"\n").removesuffix(b"\n")
    mark, sign = delimiter.encode(), quote.encode()
    if sign and sign in lines:
        return None if sign == mark else _quoted_grid(lines, mark, sign)
    columns = _columns(lines, mark)
    return None if columns is None else _grid(columns, is_as_it_is=_is_as_it_is(lines, b"\n" + mark))


def _quoted_grid(lines: bytes, mark: bytes, sign: bytes) -> Grid | None:
    """The same with quotes; while rows are told apart, a field in quotes is one quote in its place."""
    pieces = lines.split(sign)
    outside, quoted = _joined(pieces[::2], pieces[1::2], sign)
    bare, within = sign.join(outside), b"".join(quoted)
    if len(pieces) % 2 == 0 or b"\n" in within:
        return None
    columns = _columns(bare, mark)
    if columns is None or sum(column.count(sign) for column in columns) != len(quoted):
        return None
    numbers = [number for number, column in enumerate(columns) if sign in column]
    for number, column in zip(numbers, _filled([columns[n] for n in numbers], quoted, sign), strict=True):
        columns[number] = column
    return _grid(columns, is_as_it_is=_is_as_it_is(bare, b"\n" + mark + sign) and _is_as_it_is(within))


def _grid(columns: list[list[bytes]], *, is_as_it_is: bool) -> Grid:
    return Grid([Texts(column) if is_as_it_is else _texts(column) for column in columns])


def _joined(outside: list[bytes], within: list[bytes], sign: bytes) -> tuple[list[bytes], list[bytes]]:
    """What is outside of quotes and within them, where nothing between two of the latter means a quote in a field."""
    ends = [number for number, piece in enumerate(outside[1:-1], 1) if piece]
    if len(ends) == len(outside) - 2:
        return outside, within
    begins = [0, *ends]
    joined = [sign.join(within[begin:end]) for begin, end in zip(begins, [*ends, len(within)], strict=True)]
    return [outside[number] for number in (*begins, -1)], joined


def _filled(columns: list[list[bytes]], quoted: list[bytes], sign: bytes) -> list[list[bytes]]:
    """These columns, with what is within the quotes in place of each quote, row by row."""
    width = len(columns)
    if len(quoted) == width * len(columns[0]):
        return [quoted[number::width] for number in range(width)]
    texts = iter(quoted)
    cells = [next(texts) if cell == sign else cell for cell in chain.from_iterable(zip(*columns, strict=True))]
    return [cells[number::width] for number in range(width)]


def _columns(lines: bytes, mark: bytes) -> list[list[bytes]] | None:
    """The fields of lines in which nothing is quoted, column by column."""
    if not lines or b"\r" in lines or b"\n\n" in lines or lines[:1] == b"\n" or lines[-1:] == b"\n":
        return None
    cells = lines.replace(b"\n", mark + b"\n" + mark).split(mark)
    width = lines.partition(b"\n")[0].count(mark) + 1
    count = lines.count(b"\n") + 1
    # With an end behind each row but the last, and all of these where they belong, every row has its cells.
    if len(cells) != count * (width + 1) - 1 or cells[width :: width + 1].count(b"\n") != count - 1:
        return None
    return [cells[index :: width + 1] for index in range(width)]


def _texts(column: list[bytes]) -> Sequence[str]:
    return Texts(column) if _is_as_it_is(b"".join(column)) else list(map(bytes.decode, column))


def _is_as_it_is(data: bytes, besides: bytes = b"") -> bool:
    """Whether JSON escapes nothing of it, but for the characters that are in `besides`."""
    return len(data.translate(None, ESCAPED_IN_JSON.translate(None, besides))) == len(data)
