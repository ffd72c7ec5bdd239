"""A part of an object, for the formats whose records can be found from anywhere in it.

A record belongs to the part in which it begins, so that parts that lie side by side share out the records of an object,
each to one of them: a line begins with its first byte, an Avro block with the mark in front of it, a Parquet row group
with its first page. How many records are before a part nobody knows who has not read it. So lines and records of a part
are counted from its beginning, and errors say so: `line 3 of the part from byte 1048576` is the third line of those
that begin at that byte or behind it. Rows of Parquet are counted in the footer, and are named as ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import attrs

from headrace.framework.errors import DataError
from headrace.framework.parts import OVERRUN_BYTES, Extent, within_part

if TYPE_CHECKING:
    from headrace.transformers.base import ByteStream
    from headrace.transformers.seeking import SeekableStream

__all__ = ["LinesWithin", "named_within"]

_READ_BYTES = 256 * 1024


@attrs.define
class LinesWithin:
    """A `ByteStream` of the lines that begin in an extent, the last of them to its end."""

    position: int
    """The byte of the object that the next `read` begins with; at first, the beginning of the first line."""

    _end: int
    _stream: "ByteStream"
    _held: bytes = b""
    _ended: bool = False

    @classmethod
    def of(cls, stream: "SeekableStream", extent: Extent, at: int = 0) -> Self:
        """The lines from the byte `at` on, with which one begins; 0 is for all of the extent's.

        For the very beginning of an object, the stream has to stand there.
        """
        if at:
            if at < extent.end:
                stream.go_to(at, wanted=extent.wanted(at))
            return cls(at, extent.end, stream, ended=at >= extent.end)
        if extent.start:
            return cls._behind_a_line(stream, extent)
        return cls(0, extent.end, stream, ended=extent.end == 0)

    @classmethod
    def _behind_a_line(cls, stream: "SeekableStream", extent: Extent) -> Self:
        """A line begins behind the end of another: the byte before the extent may be that."""
        at = extent.start - 1
        if at < extent.end - 1:
            stream.go_to(at, wanted=extent.wanted(at))
        while at < extent.end - 1 and (data := stream.read(min(_READ_BYTES, extent.wanted(at)))):
            found = data.find(b"\n")
            if 0 <= found < extent.end - 1 - at:
                return cls(at + found + 1, extent.end, stream, data[found + 1 :])
            at += len(data)
        return cls(extent.end, extent.end, stream, ended=True)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none behind the end of the last line, and at the object's."""
        if self._ended:
            return b""
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
        else:
            data = self._stream.read(min(size, max(0, self._end - self.position) + OVERRUN_BYTES))
        last = max(0, self._end - 1 - self.position)
        found = data.find(b"\n", last) if last < len(data) else -1
        if found >= 0:
            data = data[: found + 1]
            self._ended = True
        self.position += len(data)
        return data


@contextmanager
def named_within(extent: Extent) -> Iterator[None]:
    """Have the position of a `DataError` of the block say from where it is counted."""
    try:
        yield
    except DataError as error:
        if error.where.position is not None:
            error.where = attrs.evolve(error.where, position=within_part(error.where.position, extent.start))
        raise
