"""Avro's object container files: a header with the schema, and blocks of records that can be read by themselves."""

import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.errors import ConfigError, DataError, Fault, Where
from headrace.framework.stage import Stage
from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.members import bz2_decoder, zstd_decoder
from headrace.transformers.seeking import Cursor
from headrace.transformers.snappy import snappy_library

__all__ = ["SYNC_BYTES", "Block", "BrokenBlock", "Container", "Header", "check_codec"]

_MAGIC = b"Obj\x01"
SYNC_BYTES = 16
"""How many bytes the mark between two blocks has."""

_READ_BYTES = 256 * 1024
_LONGEST_NUMBER = 10
_LARGEST_HEADER = 16 * 1024 * 1024
_RAW_DEFLATE = -15
_CRC_BYTES = 4
_DISTINCT_BYTES = 6


@attrs.frozen
class Header:
    """What a container says of its blocks."""

    schema: bytes
    codec: str
    sync: bytes

    @property
    def is_marked_well(self) -> bool:
        """Whether the mark is like nothing that data hold: somebody may have chosen zeros."""
        return len(set(self.sync)) >= _DISTINCT_BYTES


@attrs.frozen(kw_only=True)
class Block:
    """Records that were written together: `start` and `end` are the object's bytes, `done` records are before it."""

    start: int
    end: int
    done: int
    count: int
    data: bytes


@attrs.frozen(kw_only=True)
class BrokenBlock:
    """Bytes that hold no block, or one that cannot be unpacked; `count` records, None where nobody knows."""

    error: DataError
    start: int
    end: int
    done: int
    count: int | None

    @property
    def counted(self) -> int:
        """As how many records it counts."""
        return 1 if self.count is None else self.count


@attrs.define
class Container:
    """Reads one container from where `cursor` is; whatever it finds wrong is a `DataError`.

    A block, packed or unpacked, may have `limit` bytes, and more than 64 MB only if it is no more than `ratio` times
    as large as what it was packed to; 0 is no limit.
    """

    cursor: Cursor
    limit: int = 0
    ratio: int = 0
    done: int = 0
    """How many records are behind us."""

    tolerant: bool = False
    """Whether what is wrong with a block is given out as a `BrokenBlock`: reading goes on behind the next mark."""

    _held: bytes = b""
    _at: int = 0

    @property
    def position(self) -> int:
        """The byte that comes next."""
        return self.cursor.position - len(self._held) + self._at

    def header(self) -> Header | None:
        """The header; None where there is not a byte."""
        magic = self._take(len(_MAGIC), may_be_short=True)
        if not magic:
            return None
        if magic != _MAGIC and not _MAGIC.startswith(magic):
            raise self._bad(f"no Avro container begins with {magic!r}: check input.format and file.compression.type")
        if magic != _MAGIC:
            raise self._cut()
        known = self._metadata()
        codec = known.get("avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            known_ones = ", ".join(_CODECS)
            raise self._bad(
                f"the codec is {codec!r}, and what is read is {known_ones}: write the object in one of them"
            )
        check_codec(codec)
        if "avro.schema" not in known:
            raise self._bad("the header holds no schema: put a whole copy of the object in its place")
        return Header(known["avro.schema"], codec, self._take(SYNC_BYTES))

    def go_to(self, byte: int, done: int, *, wanted: int | None = None) -> None:
        """Go on with the block at that byte, before which there are `done` records; for `wanted` see `Cursor`."""
        self._held, self._at, self.done = b"", 0, done
        self.cursor.go_to(byte, wanted=wanted)

    def go_behind_mark(self, sync: bytes, before: int | None = None) -> bool:
        """Go on behind the next mark; whether there is one, and it begins before that byte."""
        while self._fill(SYNC_BYTES) and (before is None or self.position < before):
            found = self._held.find(sync, self._at)
            if found >= 0:
                begins = self.position + found - self._at
                self._at = found + SYNC_BYTES
                return before is None or begins < before
            self._at = len(self._held) - SYNC_BYTES + 1
        return False

    def blocks(self, header: Header, skip: int = 0, before: int | None = None) -> Iterator[Block | BrokenBlock]:
        """The blocks to the end. Those that hold none but the next `skip` records are passed over.

        With `before`, they end with the last one whose mark, which stands in front of it, begins before that byte.
        """
        while (before is None or self.position - SYNC_BYTES < before) and self._fill(1):
            start, found = self.position, self._next(header, skip)
            if isinstance(found, DataError):
                # Without another mark, what is wrong is wrong to the end of the object.
                if not self.tolerant or not self.go_behind_mark(header.sync):
                    raise found
                block: Block | BrokenBlock = self._broken(found, start, None)
            else:
                block = found
            count = block.counted if isinstance(block, BrokenBlock) else block.count
            needed = count > skip
            self.done += count
            skip = max(0, skip - count)
            if needed:
                yield block

    def _next(self, header: Header, skip: int) -> Block | BrokenBlock | DataError:
        """The block that comes next, unpacked if it has more than `skip` records; an error says that there is none.

        One without records is unpacked as well: what has bytes has records.
        """
        start = self.position
        try:
            count, packed = self._framed(header)
        except DataError as error:
            return error
        end = self.position
        try:
            data = self._unpacked(header.codec, packed) if count > skip or not count else b""
            if data and not count:
                raise self._bad(f"a block of {len(data)} bytes says that it has no records: the object is damaged")
        except DataError as error:
            return self._broken(error, start, count or None) if self.tolerant else error
        return Block(start=start, end=end, done=self.done, count=count, data=data)

    def _framed(self, header: Header) -> tuple[int, bytes]:
        """How many records the next block has, and its bytes as they are packed."""
        start = self.position
        count, size = self._number(), self._number()
        if count < 0 or size < 0:
            raise self._bad(f"a block says that it has {count} records in {size} bytes: the object is damaged")
        self._refuse_large(size)
        packed = self._take(size)
        mark = self._take(SYNC_BYTES)
        if mark != header.sync:
            self._held, self._at = packed + mark + self._held[self._at :], 0
            raise self._bad(f"the block at byte {start} is not followed by the mark: the object is damaged")
        return count, packed

    def _broken(self, error: DataError, start: int, count: int | None) -> BrokenBlock:
        return BrokenBlock(error=error, start=start, end=self.position, done=self.done, count=count)

    def _metadata(self) -> Mapping[str, bytes]:
        known: dict[str, bytes] = {}
        while count := self._number():
            if count < 0:
                self._number()
            for _ in range(abs(count)):
                name = self._sized().decode(errors="replace")
                known[name] = self._sized()
                if self.position > _LARGEST_HEADER:
                    raise self._bad(f"the header has more than {_LARGEST_HEADER} bytes: the object is damaged")
        return known

    def _sized(self) -> bytes:
        size = self._number()
        if not 0 <= size <= _LARGEST_HEADER:
            raise self._bad(f"the header has a text of {size} bytes: the object is damaged")
        return self._take(size)

    def _number(self) -> int:
        """A number of Avro's: seven bits a byte, the lowest first, the sign in the very lowest."""
        found = 0
        for index in range(_LONGEST_NUMBER):
            byte = self._take(1)[0]
            found |= (byte & 0x7F) << 7 * index
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that there is more
                return (found >> 1) ^ -(found & 1)
        raise self._bad("a number has more than 64 bits: the object is damaged")

    def _take(self, size: int, *, may_be_short: bool = False) -> bytes:
        if not self._fill(size) and not may_be_short:
            raise self._cut()
        found = self._held[self._at : self._at + size]
        self._at += len(found)
        return found

    def _fill(self, size: int) -> bool:
        """Whether so many bytes are there; what is missing is read."""
        missing = size - (len(self._held) - self._at)
        if missing <= 0:
            return True
        pieces = [self._held[self._at :]]
        while missing > 0 and (piece := self.cursor.read(_READ_BYTES)):
            pieces.append(piece)
            missing -= len(piece)
        self._held, self._at = b"".join(pieces), 0
        return missing <= 0

    def _unpacked(self, codec: str, packed: bytes) -> bytes:
        most = self._most(len(packed))
        try:
            data = _CODECS[codec](packed, most)
        except Exception as error:  # each library has its own
            raise self._bad(f"the block's {codec} data is damaged ({error}): put a whole copy in its place") from error
        if most and len(data) > most:
            raise self._bad(
                f"{len(packed)} bytes of {codec} data hold more than {most}: set max.record.bytes or "
                "max.decompression.ratio higher if that is meant"
            )
        return data

    def _most(self, packed: int) -> int:
        """How many bytes may come out of so many; 0 is any number."""
        by_ratio = max(TOO_MUCH_FROM, packed * self.ratio) if self.ratio else 0
        return min(filter(None, (self.limit, by_ratio)), default=0)

    def _refuse_large(self, size: int) -> None:
        if self.limit and size > self.limit:
            raise self._bad(f"a block has {size} bytes, more than {self.limit}: see max.record.bytes")

    def _cut(self) -> DataError:
        return self._bad("the object ends in the middle of a block: put a whole copy of it in its place")

    def _bad(self, message: str) -> DataError:
        return DataError(message, Where(stage=Stage.TRANSFORM, position=f"record {self.done + 1}"))


def check_codec(codec: str) -> None:
    """Raise `ConfigError` for one of Avro's codecs that lacks its library here."""
    needs: Mapping[str, Callable[[], object]] = {"snappy": snappy_library, "zstandard": zstd_decoder}
    try:
        needs.get(codec, lambda: None)()
    except ImportError as error:
        message = f"an object is written with the codec {codec}, which needs {error.name}: pip install 'headrace[avro]'"
        raise ConfigError([Fault("input.format", "avro", message)]) from error


def _all(decoder: Any, data: bytes, most: int) -> bytes:
    """All that comes out, or a little more than `most`."""
    out = decoder.decompress(data, most + 1 if most else -1)
    if not decoder.eof and not (most and len(out) > most):
        raise ValueError("it ends in the middle")
    return bytes(out)


def _deflate(data: bytes, most: int) -> bytes:
    decoder = zlib.decompressobj(_RAW_DEFLATE)
    out = decoder.decompress(data, most + 1 if most else 0)
    if not decoder.eof and not (most and len(out) > most):
        raise ValueError("it ends in the middle")
    return out


def _snappy(data: bytes, most: int) -> bytes:
    packed, checksum = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    snappy = snappy_library().snappy
    size = snappy.decompress_raw_len(packed)
    if most and size > most:
        return bytes(most + 1)
    out = bytes(snappy.decompress_raw(packed))
    if zlib.crc32(out).to_bytes(_CRC_BYTES, "big") != checksum:
        raise ValueError("its checksum is wrong")
    return out


_CODECS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _: data,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": lambda data, most: _all(zstd_decoder(), data, most),
    "bzip2": lambda data, most: _all(bz2_decoder(), data, most),
    "xz": lambda data, most: _all(lzma.LZMADecompressor(), data, most),
}
