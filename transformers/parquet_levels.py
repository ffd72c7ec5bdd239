"""How many entries each row has in a column of lists, by the column's repetition levels."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import attrs

from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.parquet_pages import DAMAGE, Page, pages
from headrace.transformers.parquet_runs import Packed, Repeated, glance, hybrid

__all__ = ["Levels"]

_PIECE_BYTES = 1024 * 1024
_LENGTH_BYTES = 4
_FRAME_BYTES = 8


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
        window = _Window(self.source, self.extent[1])
        for page in pages(window, self.extent, self.values):
            if page.values:
                yield page, bytes(self._levels(page, window))

    def _levels(self, page: Page, window: "_Window") -> memoryview:
        size = page.levels_size
        if size is not None:
            return window.bytes_at(page.at, min(size, page.packed))
        if self.ratio and page.unpacked > max(TOO_MUCH_FROM, self.ratio * page.packed):
            raise ValueError(f"{page.packed} bytes of a page hold {page.unpacked}, see max.decompression.ratio")
        body = _decompressed(window.bytes_at(page.at, page.packed), page.unpacked, self.codec)
        if page.has_packed_levels:
            return body
        size = int.from_bytes(body[:_LENGTH_BYTES], "little")
        return body[_LENGTH_BYTES : _LENGTH_BYTES + size]


def _decompressed(packed: memoryview, size: int, codec: str) -> memoryview:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    if codec == "UNCOMPRESSED":
        return packed
    coder = pa.Codec("lz4_raw" if codec == "LZ4" else codec.lower())
    if codec == "LZ4":
        with suppress(pa.ArrowException, OSError, ValueError):
            return _framed(packed, size, coder)
    return memoryview(coder.decompress(packed, decompressed_size=size))


def _framed(packed: memoryview, size: int, raw: Any) -> memoryview:
    """What is in LZ4 blocks as Hadoop has them, each behind its two sizes."""
    found = bytearray()
    while packed:
        sizes = packed[:_FRAME_BYTES].tobytes()
        unpacked, length = int.from_bytes(sizes[:4], "big"), int.from_bytes(sizes[4:], "big")
        if len(found) + unpacked > size or length > len(packed) - _FRAME_BYTES:
            raise ValueError("these are no blocks of Hadoop's")
        found += raw.decompress(packed[_FRAME_BYTES : _FRAME_BYTES + length], decompressed_size=unpacked)
        packed = packed[_FRAME_BYTES + length :]
    if len(found) != size:
        raise ValueError("these are no blocks of Hadoop's")
    return memoryview(found)


@attrs.define
class _Window:
    """A file up to the byte `end`, read on in large pieces."""

    source: Any
    end: int
    _begin: int = attrs.field(default=0, init=False)
    _held: memoryview = attrs.field(factory=lambda: memoryview(b""), init=False)
    _at: int = attrs.field(default=0, init=False)

    def seek(self, at: int) -> None:
        self._at = at

    def read(self, size: int) -> memoryview:
        return self.bytes_at(self._at, size)

    def bytes_at(self, at: int, size: int) -> memoryview:
        if not self._begin <= at <= at + size <= self._begin + len(self._held):
            self.source.seek(at)
            self._held = memoryview(self.source.read(max(0, min(max(size, _PIECE_BYTES), self.end - at))))
            self._begin = at
        return self._held[at - self._begin : at - self._begin + size]
