"""Snappy as the framing format, as Java's SnappyOutputStream writes it (Xerial), and as Hadoop's codec does.

All are blocks without an end mark: a cut between two blocks cannot be seen. Hadoop's form has no mark at the beginning
either, and is told by its first lengths, which have to agree. Raw Snappy has nothing to be told by, and is refused.
"""

from collections.abc import Iterator
from types import ModuleType

import attrs

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream
from headrace.transformers.members import damaged

__all__ = ["FRAMED_MARK", "XERIAL_MARK", "decompressed_blocks", "snappy_library"]

FRAMED_MARK = b"\xff\x06\x00\x00sNaPpY"
XERIAL_MARK = b"\x82SNAPPY\x00"

_KIND = "snappy"
_HEAD_BYTES = 17
"""What Hadoop's form is told by: an empty block, which may come first, two lengths, and one of five bytes."""
_SIZE_BYTES = 5
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
        for block in self._blocks():
            self.done += len(block)
            if block:
                yield block

    def _blocks(self) -> Iterator[bytes]:
        self._hold(_HEAD_BYTES)
        head = self.held
        if head.startswith(FRAMED_MARK[: len(head)]):
            self._exactly(len(FRAMED_MARK), may_end=True)
            return self._framed()
        if head.startswith(XERIAL_MARK[: len(head)]):
            self._exactly(len(XERIAL_MARK) + _VERSIONS)
            return self._xerial()
        if _is_hadoop(head):
            return self._hadoop()
        message = (
            "it is no Snappy in frames, nor as Xerial or Hadoop write it, and raw Snappy and plain content have "
            "nothing to be told by: set file.compression.type=none if it is plain, or compress it in another form"
        )
        raise DataError(message, Where(stage=Stage.TRANSFORM, position="byte 0"))

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

    def _hadoop(self) -> Iterator[bytes]:
        """Blocks; an empty one may end what was written at one go, so that two of them are lost bytes."""
        is_behind_empty = False
        while head := self._exactly(4, may_end=True):
            left = int.from_bytes(head, "big")
            if left > _LARGEST_BLOCK or (is_behind_empty and not left):
                raise self._damaged(f"has a block of {left} bytes")
            is_behind_empty = not left
            while left:
                size = int.from_bytes(self._exactly(4), "big")
                if size > _LARGEST_BLOCK:
                    raise self._damaged(f"has a chunk of {size} bytes")
                piece = self._decompressed(self._exactly(size), framed=False)
                if not 0 < len(piece) <= left:
                    raise self._damaged(f"has a chunk of {len(piece)} bytes where {left} are left of its block")
                left -= len(piece)
                yield piece

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

    def _hold(self, size: int) -> None:
        while len(self.held) - self.at < size and (data := self.stream.read(_READ_BYTES)):
            self.held = self.held[self.at :] + data
            self.at = 0

    def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        self._hold(size)
        found = self.held[self.at : self.at + size]
        self.at += len(found)
        if len(found) < size and (found or not may_end):
            raise self._damaged("ends in the middle")
        return found

    def _damaged(self, what: str) -> DataError:
        return damaged(_KIND, self.done, what)


def _is_hadoop(head: bytes) -> bool:
    """Whether those bytes begin what Hadoop writes: a block's length, a chunk's in it, and what that one unpacks to."""
    if head == bytes(4):
        return True  # nothing was written
    head = head.removeprefix(bytes(4))
    block, chunk = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
    unpacked = _size(head[8:])
    return 0 < unpacked <= block <= _LARGEST_BLOCK and 1 < chunk <= _most_packed(unpacked)


def _size(data: bytes) -> int:
    """The number that raw Snappy begins with; 0 where there is none."""
    found = 0
    for at, byte in enumerate(data[:_SIZE_BYTES]):
        found |= (byte & 0x7F) << 7 * at
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that there is more
            return found
    return 0


def _most_packed(size: int) -> int:
    """The most bytes that so many become, by Snappy's own bound."""
    return 32 + size + size // 6
