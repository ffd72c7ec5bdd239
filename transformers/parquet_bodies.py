"""What pages have in them, without their compression."""

from contextlib import suppress
from typing import Any

import attrs

from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.parquet_pages import Page

__all__ = ["Window", "unpacked"]

_PIECE_BYTES = 1024 * 1024
_FRAME_BYTES = 8


@attrs.define
class Window:
    """A file up to the byte `end`, read on in large pieces."""

    source: Any
    end: int
    _begin: int = attrs.field(default=0, init=False)
    _held: memoryview = attrs.field(factory=lambda: memoryview(b""), init=False)
    _at: int = attrs.field(default=0, init=False)

    def seek(self, at: int) -> None:
        """Go to a byte."""
        self._at = at

    def read(self, size: int) -> memoryview:
        """So many bytes from there on, or fewer at the end."""
        return self.bytes_at(self._at, size)

    def bytes_at(self, at: int, size: int) -> memoryview:
        """So many bytes from that one on."""
        if not self._begin <= at <= at + size <= self._begin + len(self._held):
            self.source.seek(at)
            self._held = memoryview(self.source.read(max(0, min(max(size, _PIECE_BYTES), self.end - at))))
            self._begin = at
        return self._held[at - self._begin : at - self._begin + size]


def unpacked(page: Page, window: Window, *, codec: str, ratio: int) -> memoryview:
    """What is in a page, but for the levels of the second version, which stand in front of what is compressed.

    `codec` is what the footer names, `ratio` how many times its size a page may unpack to, if it has a limit.
    """
    if ratio and page.unpacked > max(TOO_MUCH_FROM, ratio * page.packed):
        raise ValueError(f"{page.packed} bytes of a page hold {page.unpacked}, see max.decompression.ratio")
    levels = page.all_levels_size
    body = window.bytes_at(page.at, page.packed)[levels:]
    # Where the second version says that a page is not compressed, its sizes say so, too.
    is_plain = page.levels_size is not None and page.packed == page.unpacked
    return body if is_plain else _decompressed(body, page.unpacked - levels, codec)


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
