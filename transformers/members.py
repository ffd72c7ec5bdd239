"""Compressions whose data says where it ends: gzip, bz2, xz, zstd and lz4, and several of them one after the other."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import attrs

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream

__all__ = [
    "Decoder",
    "bz2_decoder",
    "damaged",
    "decompressed_members",
    "gzip_decoder",
    "lz4_decoder",
    "xz_decoder",
    "zstd_decoder",
]

_INPUT_BYTES = 64 * 1024
_PIECE_BYTES = 256 * 1024
_XZ_MEMORY = 128 * 1024 * 1024
_PADDED_WITH_ZEROS = {"gzip", "xz"}


class Decoder(Protocol):
    """One member's decompressor, as the standard library has it for bz2."""

    @property
    def eof(self) -> bool:
        """Whether the member's end has been reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes out until more is put in."""
        ...

    @property
    def unused_data(self) -> bytes | None:
        """What was put in behind the member's end."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """At most so many of the bytes that come out when `data` is put in."""
        ...


def decompressed_members(stream: ByteStream, kind: str, decoder: Callable[[], Decoder]) -> Iterator[bytes]:
    """The content of a stream of members, in pieces of bounded size; `DataError` unless it ends with one."""
    return _Members(stream, kind, decoder).pieces()


@attrs.define
class _Members:
    stream: ByteStream
    kind: str
    new_decoder: Callable[[], Decoder]
    data: bytes = b""
    done: int = 0
    members: int = 0

    def pieces(self) -> Iterator[bytes]:
        while self._another():
            yield from self._member(self.new_decoder())
            self.members += 1

    def _another(self) -> bool:
        padded = self.members and self.kind in _PADDED_WITH_ZEROS
        while True:
            if padded:
                self.data = self.data.lstrip(b"\0")
            if self.data:
                return True
            self.data = self.stream.read(_INPUT_BYTES)
            if not self.data:
                return False

    def _member(self, decoder: Decoder) -> Iterator[bytes]:
        while not decoder.eof:
            if decoder.needs_input and not self.data:
                self.data = self.stream.read(_INPUT_BYTES)
                if not self.data:
                    raise damaged(self.kind, self.done, "ends in the middle")
            piece = self._decompress(decoder)
            self.done += len(piece)
            if piece:
                yield piece
        self.data = decoder.unused_data or b""

    def _decompress(self, decoder: Decoder) -> bytes:
        data, self.data = self.data, b""
        try:
            return decoder.decompress(data, _PIECE_BYTES)
        except Exception as error:  # each library has its own; a stream's error does not come by here
            where = f"is damaged or followed by something else, in or behind its member {self.members + 1}"
            raise damaged(self.kind, self.done, f"{where} ({error})") from error


def damaged(kind: str, done: int, what: str) -> DataError:
    """The error for data that cannot be decompressed behind `done` bytes of content."""
    message = f"the {kind} data {what}: put a whole copy of the object in its place"
    return DataError(message, Where(stage=Stage.TRANSFORM, position=f"byte {done}"))


class _GzipDecoder:
    """zlib's decompressor in the form of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def gzip_decoder() -> Decoder:
    """A decoder of one gzip member; its checksum and length are verified."""
    return _GzipDecoder()


def bz2_decoder() -> Decoder:
    """A decoder of one bz2 stream."""
    return bz2.BZ2Decompressor()


def xz_decoder() -> Decoder:
    """A decoder of one xz stream, within the memory that `xz -9` asks for, twice."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def zstd_decoder() -> Decoder:
    """A decoder of one Zstandard frame; ImportError where there is no library for it."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - only newer Pythons have it
    else:
        from backports import zstd  # noqa: PLC0415 - an extra brings it
    return zstd.ZstdDecompressor()


def lz4_decoder() -> Decoder:
    """A decoder of one LZ4 frame; ImportError where there is no library for it."""
    from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415 - an extra brings it

    decoder: Decoder = LZ4FrameDecompressor()
    return decoder
