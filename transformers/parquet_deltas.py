"""How long the texts get that are written as what differs from the one before (DELTA_BYTE_ARRAY)."""

import sys
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from headrace.transformers.parquet_bodies import Window, unpacked
from headrace.transformers.parquet_footer import Group, extent
from headrace.transformers.parquet_pages import DAMAGE, Page, pages

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Lengths", "lengths"]

_PAID = 8
"""Texts of so many times the bytes of their page, or of less, are what ordinary files have."""

_LENGTH_BYTES = 4
_MOST_IN_MINIBLOCK = 4096
_LARGEST = 2**31 - 1


class Lengths(NamedTuple):
    """The most that a text has, and what all have together, of pages whose texts are more than their bytes pay for."""

    longest: int = 0
    total: int = 0


def lengths(file: "pq.ParquetFile", group: Group, number: int, source: Any, *, ratio: int) -> Lengths:
    """Those of a column, whose pages are gone through for that.

    Where a page is damaged a text may have any length; what reads the page finds the damage.
    """
    column, chunk = file.schema.column(number), file.metadata.row_group(group.index).column(number)
    levels = bool(column.max_repetition_level) + bool(column.max_definition_level)
    found, window = Lengths(), Window(source, extent(chunk)[1])
    try:
        for page in pages(window, extent(chunk), chunk.num_values):
            if page.is_delta:
                body = unpacked(page, window, codec=chunk.compression, ratio=ratio)
                one = _of_page(page, bytes(body), levels)
                found = Lengths(max(found.longest, one.longest), found.total + one.total)
    except (*DAMAGE, OSError):
        return Lengths(sys.maxsize, found.total)
    return found


def _of_page(page: Page, body: bytes, levels: int) -> Lengths:
    at = 0
    for _ in range(levels if page.levels_size is None else 0):
        at += _LENGTH_BYTES + int.from_bytes(body[at : at + _LENGTH_BYTES], "little")
    if at > len(body) or not page.has_only_runs:
        raise ValueError("nobody knows where the texts of a page begin")
    if at == len(body):
        return Lengths()
    prefixes = _Numbers(body, at, page.values)
    prefixes.go_through()
    suffixes = _Numbers(body, prefixes.at, page.values)
    suffixes.go_through()
    total = prefixes.total + suffixes.total
    return Lengths(prefixes.largest + suffixes.largest, total) if total > _PAID * page.packed else Lengths()


@attrs.define
class _Numbers:
    """Numbers by their differences (DELTA_BINARY_PACKED), which are not held: millions of them may be a few bytes."""

    data: bytes
    at: int
    most: int
    largest: int = attrs.field(default=0, init=False)
    total: int = attrs.field(default=0, init=False)
    _last: int = attrs.field(default=0, init=False)

    def go_through(self) -> None:
        block, miniblocks, left, first = self._number(), self._number(), self._number(), self._signed()
        if not miniblocks or left > self.most:
            raise ValueError("a page has more texts than values")
        self._note([first] if left else [])
        left -= 1
        while left > 0:
            least = self._signed()
            widths = self.data[self.at : self.at + miniblocks]
            self.at += miniblocks
            for width in widths:
                if left > 0:
                    self._miniblock(least, width, block // miniblocks, left)
                    left -= block // miniblocks
            if len(widths) < miniblocks:
                raise ValueError("a page ends within its texts")

    def _miniblock(self, least: int, width: int, size: int, left: int) -> None:
        count = min(size, left)
        if not width:
            self._go_on(least, count)
            return
        if not 0 < size <= _MOST_IN_MINIBLOCK:
            raise ValueError(f"a page has {size} texts in a block")
        packed = int.from_bytes(self.data[self.at : self.at + size * width // 8], "little")
        self.at += size * width // 8
        mask = (1 << width) - 1
        steps = (least + (packed >> at & mask) for at in range(0, count * width, width))
        self._note([*accumulate(steps, initial=self._last)][1:])

    def _go_on(self, step: int, count: int) -> None:
        """So many numbers, each by the same more than the one before."""
        if count <= 0:
            raise ValueError("a page has a block without texts")
        first, last = self._last + step, self._last + step * count
        self._check(min(first, last), max(first, last))
        self.total += (first + last) * count // 2
        self._last = last

    def _note(self, numbers: list[int]) -> None:
        if numbers:
            self._check(min(numbers), max(numbers))
            self.total += sum(numbers)
            self._last = numbers[-1]

    def _check(self, least: int, largest: int) -> None:
        if least < 0 or largest > _LARGEST:
            raise ValueError("a text has a length that cannot be")
        self.largest = max(self.largest, largest)

    def _signed(self) -> int:
        found = self._number()
        return found >> 1 ^ -(found & 1)

    def _number(self) -> int:
        found = shift = 0
        while (byte := self.data[self.at]) & 128 and shift < 64:  # noqa: PLR2004 - the bit for more; no more than that
            found |= (byte & 127) << shift
            shift += 7
            self.at += 1
        self.at += 1
        return found | byte << shift
