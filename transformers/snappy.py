"""Snappy in its two forms with a mark: the framing format, and what Java's SnappyOutputStream writes (Xerial).

Both are blocks without an end mark: a cut between two blocks cannot be seen. Raw and Hadoop Snappy have no mark at
all, and are refused.
"""

from collections.abc import Iterator
from types import ModuleType

import attrs

from headrace.framework.errors import DataError
from headrace.transformers.base import ByteStream
from headrace.transformers.members import damaged

__all__ = ["FRAMED_MARK", "XERIAL_MARK", "decompressed_blocks", "snappy_library"]

FRAMED_MARK = b"\xff\x06\x00\x00sNaPpY"
XERIAL_MARK = b"\x82SNAPPY\x00"

_KIND = "snappy"
_READ_BYTES = 256 * 1024
_LARGEST_BLOCK = 64 * 1024 * 1024
_VERSIONS = 8
_DATA_CHUNKS = range(2)
_SKIPPABLE_CHUNKS = range(0x80, 0xFF)
_MARK_CHUNK = 0xFF


def snappy_library() -> ModuleType:
    """The library that knows Snappy; ImportError where there is none."""
    import cramjam  # noqa: PLC0415 - an extra brings it

    return cramjam


def decompressed_blocks(stream: ByteStream) -> Iterator[bytes]:
    """The content of a Snappy stream, block by block; `DataError` unless it ends where a block ends."""
    return _Blocks(stream).pieces()


@attrs.define
class _Blocks:
    stream: ByteStream
    held: bytes = b""
    at: int = 0
    done: int = 0

    def pieces(self) -> Iterator[bytes]:
        mark = self._exactly(len(XERIAL_MARK), may_end=True)
        if not mark:
            return
        if mark == XERIAL_MARK:
            self._exactly(_VERSIONS)
            blocks = self._xerial()
        elif mark + self._exactly(len(FRAMED_MARK) - len(mark)) == FRAMED_MARK:
            blocks = self._framed()
        else:
            raise self._damaged("is neither framed nor Xerial's (raw and Hadoop Snappy have no mark to tell them by)")
        for block in blocks:
            self.done += len(block)
            if block:
                yield block

    def _framed(self) -> Iterator[bytes]:
        while head := self._exactly(4, may_end=True):
            chunk, body = head[0], self._exactly(int.from_bytes(head[1:], "little"))
            if chunk in _DATA_CHUNKS:
                # A stream of its own for each, so that the library verifies the chunk's checksum.
                yield self._decompressed(FRAMED_MARK + head + body, framed=True)
            elif chunk == _MARK_CHUNK and head + body != FRAMED_MARK:
                raise self._damaged("has a broken mark in it")
            elif chunk != _MARK_CHUNK and chunk not in _SKIPPABLE_CHUNKS:
                raise self._damaged(f"has a chunk of the unknown type {chunk}")

    def _xerial(self) -> Iterator[bytes]:
        while head := self._exactly(4, may_end=True):
            if XERIAL_MARK.startswith(head):  # streams that were put together
                if head + self._exactly(4) != XERIAL_MARK:
                    raise self._damaged("has a broken mark in it")
                self._exactly(_VERSIONS)
                continue
            size = int.from_bytes(head, "big")
            if size > _LARGEST_BLOCK:
                raise self._damaged(f"has a block of {size} bytes")
            yield self._decompressed(self._exactly(size), framed=False)

    def _decompressed(self, data: bytes, *, framed: bool) -> bytes:
        library = snappy_library()
        snappy = library.snappy
        try:
            if framed:
                return bytes(snappy.decompress(data))
            if snappy.decompress_raw_len(data) <= _LARGEST_BLOCK:
                return bytes(snappy.decompress_raw(data))
        except library.DecompressionError as error:
            raise self._damaged(f"is damaged ({error})") from error
        raise self._damaged(f"has a block that unpacks to more than {_LARGEST_BLOCK} bytes")

    def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        while len(self.held) - self.at < size and (data := self.stream.read(_READ_BYTES)):
            self.held = self.held[self.at :] + data
            self.at = 0
        found = self.held[self.at : self.at + size]
        self.at += len(found)
        if len(found) < size and (found or not may_end):
            raise self._damaged("ends in the middle")
        return found

    def _damaged(self, what: str) -> DataError:
        return damaged(_KIND, self.done, what)
