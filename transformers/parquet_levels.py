"""How many entries each row has in a column of lists, by the column's repetition levels."""

from collections.abc import Iterator
from typing import Any

import attrs

from headrace.transformers.parquet_bodies import Window, unpacked
from headrace.transformers.parquet_pages import DAMAGE, Page, pages
from headrace.transformers.parquet_runs import Packed, Repeated, glance, hybrid

__all__ = ["Levels"]

_LENGTH_BYTES = 4


@attrs.frozen(kw_only=True)
class Levels:
    """The repetition levels of a column, which has so many `values`, in these bytes of a file.

    `bits` are those of a level, `codec` is what the pages are compressed with by the footer, `ratio` how many times its
    size a page may unpack to, if it has a limit.
    """

    source: Any
    extent: tuple[int, int]
    values: int
    bits: int
    codec: str
    ratio: int

    def entries_by_row(self) -> Iterator[int]:
        """The entries of one row after the other: values, nulls and empty lists. Next to nothing of them is held.

        What cannot be is an error of pyarrow's or of Python's.
        """
        row = 0
        for run in self._runs():
            row = yield from run.rows(row)
        if row:
            yield row

    def fit(self, most: int) -> bool:
        """Whether no row has more than so many entries, as far as that is seen at a glance, and nothing is damaged."""
        row = 0
        try:
            for page, levels in self._pages():
                seen = None if page.has_packed_levels else glance(levels, self.bits, page.values, row, most)
                if seen is None:
                    return False
                row = seen
        except (*DAMAGE, OSError):
            return False
        return True

    def _runs(self) -> Iterator[Repeated | Packed]:
        for page, levels in self._pages():
            if page.has_packed_levels:
                yield Packed(levels, self.bits, page.values)
            else:
                yield from hybrid(levels, self.bits, page.values)

    def _pages(self) -> Iterator[tuple[Page, bytes]]:
        """The pages with values, and their levels."""
        window = Window(self.source, self.extent[1])
        for page in pages(window, self.extent, self.values):
            if page.values:
                yield page, bytes(self._levels(page, window))

    def _levels(self, page: Page, window: Window) -> memoryview:
        size = page.levels_size
        if size is not None:
            return window.bytes_at(page.at, min(size, page.packed))
        body = unpacked(page, window, codec=self.codec, ratio=self.ratio)
        if page.has_packed_levels:
            return body
        size = int.from_bytes(body[:_LENGTH_BYTES], "little")
        return body[_LENGTH_BYTES : _LENGTH_BYTES + size]
