"""Rows of CSV that are told apart without a parser, where nothing is quoted."""

from collections.abc import Sequence
from typing import overload

import attrs

from headrace.framework.compat import override
from headrace.framework.table import ESCAPED_IN_JSON, Texts

__all__ = ["Grid", "grid_of"]

_NOT_AS_IT_IS = ESCAPED_IN_JSON.replace(b"\n", b"")


@attrs.frozen(eq=False)
class Grid(Sequence[Sequence[str]]):
    """Rows of as many fields each, held column by column; there is at least one column."""

    columns: Sequence[Texts]

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


def grid_of(data: bytes, delimiter: str) -> Grid | None:
    """Lines in UTF-8 as rows, where no quote or escape has a meaning; None where a parser has to look at them.

    That is so where rows have not all as many fields as the first, where lines are blank or end with anything but a
    line feed (with or without a carriage return), and where JSON would escape something.
    """
    lines = data.replace(b"\r\n", b"\n").removesuffix(b"\n")
    mark = delimiter.encode()
    if not lines or b"\n\n" in lines or lines[:1] == b"\n" or lines[-1:] == b"\n":
        return None
    if len(lines.translate(None, _NOT_AS_IT_IS.replace(mark, b""))) != len(lines):
        return None
    cells = lines.replace(b"\n", mark + b"\n" + mark).split(mark)
    width = lines.partition(b"\n")[0].count(mark) + 1
    count = lines.count(b"\n") + 1
    # With an end behind each row but the last, and all of these where they belong, every row has its cells.
    if len(cells) != count * (width + 1) - 1 or cells[width :: width + 1].count(b"\n") != count - 1:
        return None
    return Grid([Texts(cells[index :: width + 1]) for index in range(width)])
