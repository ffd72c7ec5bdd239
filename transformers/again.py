"""Reading a piece of an object again that was no record, perhaps of an object that has been repaired since."""

from collections.abc import Callable, Iterator

import attrs

from headrace.framework.errors import DataError, SourceError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Rejected, ValueBatch
from headrace.transformers.seeking import Cursor, SeekableStream

__all__ = [
    "Opener",
    "Until",
    "all_of",
    "behind_lines",
    "element_of",
    "lines_of",
    "moved",
    "refuse_part",
    "taken",
    "until",
]

_READ_BYTES = 256 * 1024
_BOM_BYTES = 3
_NEAR_BYTES = 64
_BLANKS = b" \t\r\n"

Opener = Callable[[], ByteStream]
"""Opens the content of an object anew, at its first byte."""


def taken(batches: Iterator[ValueBatch], count: int | None) -> Iterator[ValueBatch]:
    """The first `count` values, or all of them; what is no record still is raised as its error."""
    left = count
    for batch in _good(batches):
        yield batch if left is None else attrs.evolve(batch, values=batch.values[:left])
        left = None if left is None else left - len(batch.values)
        if left is not None and left <= 0:
            return
    if left:
        raise _missing(left)


def all_of(batches: Iterator[ValueBatch], at_least: int | None) -> Iterator[ValueBatch]:
    """All values of bytes that are the piece and nothing else: a line may have been mended to several."""
    found = 0
    for batch in _good(batches):
        found += len(batch.values)
        yield batch
    if at_least is not None and found < at_least:
        raise _missing(at_least - found)


def _good(batches: Iterator[ValueBatch]) -> Iterator[ValueBatch]:
    for batch in batches:
        if batch.rejected is not None:
            raise batch.rejected.error
        yield batch


def _missing(records: int) -> DataError:
    return DataError(f"{records} records are not there any more: the object has become shorter", _WHERE)


def lines_of(stream: ByteStream, piece: Rejected, limit: int, *, same: bool, same_size: bool) -> bytes | None:
    """The bytes of a piece that is whole lines; None where that piece may be elsewhere in this object.

    If it is the `same` object it is where it was, and if it is another one of the `same_size` it is taken to be there
    if whole lines are. More than `limit` bytes are a `DataError`; 0 is no limit.
    """
    if piece.start is None or piece.end is None or not (same or same_size):
        return None
    if limit and piece.end - piece.start > limit + 2:
        raise DataError(f"the line has more than {limit} bytes: set max.record.bytes higher if that is meant", _WHERE)
    # With the byte before it, one can see whether a line begins here.
    first = max(0, piece.start - 1)
    cursor = Cursor(stream)
    cursor.go_to(first, wanted=piece.end - first)
    before, data = cursor.exactly(piece.start - first), cursor.exactly(piece.end - piece.start)
    if same:
        return data
    begins = piece.start in {0, _BOM_BYTES} or before == b"\n"
    ends = len(data) == piece.end - piece.start and (data.endswith(b"\n") or not cursor.read(1))
    return data if begins and ends else None


def element_of(stream: ByteStream, piece: Rejected) -> bytes | None:
    """The bytes of a piece that is an element of a JSON array; None where no element begins and ends there by now.

    For another object of the same size, of which no more is fetched.
    """
    if not piece.start or piece.end is None:
        return None
    first = max(0, piece.start - _NEAR_BYTES)
    cursor = Cursor(stream)
    cursor.go_to(first, wanted=piece.end + _NEAR_BYTES - first)
    before, data = cursor.exactly(piece.start - first), cursor.exactly(piece.end - piece.start)
    begins = before.rstrip(_BLANKS).endswith((b"[", b","))
    ends = cursor.exactly(_NEAR_BYTES).lstrip(_BLANKS).startswith((b",", b"]"))
    return data if begins and ends else None


def behind_lines(stream: ByteStream, count: int) -> ByteStream:
    """What follows the first `count` lines of a stream."""
    left, rest = count, b""
    while left and (data := stream.read(_READ_BYTES)):
        lines = data.count(b"\n")
        if lines < left:
            left -= lines
            continue
        at = 0
        for _ in range(left):
            at = data.find(b"\n", at) + 1
        left, rest = 0, data[at:]
    return _Joined(rest, stream)


def moved(what: str) -> SourceError:
    """An object has been repaired in such a way that the place of a piece in it cannot be told."""
    return SourceError(
        f"the object is another one now, and {what}: reset its offset to read all of it again",
        _WHERE,
    )


def refuse_part(piece: Rejected, *, same: bool) -> None:
    """Raise where only the numbers of a piece say where it is, in an object of which it had been in a part."""
    if piece.is_of_part and not same:
        raise moved("no record begins and ends where one did in this part of it")


def until(stream: ByteStream, end: int | None) -> ByteStream:
    """A stream that ends at a byte, if there is one to end at; no more than that is fetched."""
    if end is None:
        return stream
    return (
        _SeekableUntil(stream=stream, end=end) if isinstance(stream, SeekableStream) else Until(stream=stream, end=end)
    )


@attrs.define(kw_only=True)
class Until:
    """A stream from its first byte to another one."""

    _stream: ByteStream
    _end: int
    _at: int = attrs.field(default=0, init=False)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and none at the end."""
        wanted = min(size, self._end - self._at)
        data = self._stream.read(wanted) if wanted > 0 else b""
        self._at += len(data)
        return data


@attrs.define(kw_only=True)
class _SeekableUntil(Until):
    """The same, where one can go about."""

    _stream: SeekableStream

    @property
    def size(self) -> int:
        return min(self._stream.size, self._end)

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        most = max(0, self._end - byte)
        self._stream.go_to(byte, wanted=most if wanted is None else min(wanted, most))
        self._at = byte


@attrs.define
class _Joined:
    """Bytes, and the stream that they were read from."""

    _first: bytes
    _stream: ByteStream

    def read(self, size: int, /) -> bytes:
        if not self._first:
            return self._stream.read(size)
        data, self._first = self._first[:size], self._first[size:]
        return data


_WHERE = Where(stage=Stage.TRANSFORM)
