"""An object in which reading can go about."""

from collections.abc import Callable
from typing import Protocol

import attrs

from headrace.transformers.base import ByteStream

__all__ = ["SeekableObject"]

_DROPPED_BYTES = 64 * 1024
_READ_BYTES = 256 * 1024


class _Range(ByteStream, Protocol):
    """What reads some of an object: an `ObjectStream`, or bytes that are here already."""

    def close(self) -> None: ...


@attrs.define
class SeekableObject:
    """The bytes of an object from any place on, over one `ObjectStream` at a time; its errors are theirs.

    `open_range(start, end)` makes such a stream; `end` is None for the object's end. Until somebody goes elsewhere it
    is one GET of the whole object.
    """

    _open_range: Callable[[int, int | None], _Range]
    size: int
    _at: int = attrs.field(default=0, init=False)
    _wanted: int | None = attrs.field(default=None, init=False)
    _stream: _Range | None = attrs.field(default=None, init=False)
    _stream_end: int = attrs.field(default=0, init=False)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the object's end, and only there."""
        while True:
            stream = self._stream or self._open()
            data = stream.read(size)
            self._at += len(data)
            if data or self._at >= self.size or not size:
                return data
            self.close()

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        """Have the next `read` begin with that byte; see `SeekableStream`.

        A short way ahead is read and dropped, where the connection is good for it: that is cheaper than another GET.
        """
        if self._stream is not None and self._is_short_way(byte):
            while self._at < byte:
                self.read(min(byte - self._at, _READ_BYTES))
        elif self._stream is None or byte != self._at:
            self.close()
        self._at = byte
        self._wanted = wanted

    def read_to_the_end(self) -> None:
        """Take back what `go_to` was told is wanted: all that follows is going to be read."""
        self._wanted = None

    def close(self) -> None:
        """Give the connection back, or drop it where bytes are left on it; reading again opens another one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _is_short_way(self, byte: int) -> bool:
        return 0 <= byte - self._at <= _DROPPED_BYTES and byte <= self._stream_end

    def _open(self) -> _Range:
        end = None if self._wanted is None else self._at + max(self._wanted, 1)
        self._stream = self._open_range(self._at, end)
        self._stream_end = self.size if end is None else min(end, self.size)
        if self._wanted is not None:  # whoever needs more than was thought needs much more
            self._wanted *= 2
        return self._stream
