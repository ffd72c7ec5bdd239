"""Moving about in an object, where its stream lets one."""

from typing import Protocol, TypeGuard, runtime_checkable

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream

__all__ = ["Cursor", "SeekableStream", "is_seekable"]

_SKIP_BYTES = 256 * 1024


@runtime_checkable
class SeekableStream(ByteStream, Protocol):
    """A stream that can go on at another byte, in either direction, without reading what lies between."""

    @property
    def size(self) -> int:
        """How many bytes there are in all."""
        ...

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        """Have the next `read` begin with that byte.

        `wanted` says how many bytes are going to be read from there, so that no more are fetched; reading on behind
        them is no mistake. None is to the end.
        """
        ...


def is_seekable(stream: ByteStream) -> TypeGuard[SeekableStream]:
    """The same as `isinstance`, which for a protocol would be a good part of the price of a small object."""
    return hasattr(stream, "go_to")


class Cursor:
    """A stream of any kind, and where in it reading is.

    Positions are those of the stream, whose first byte is 0. Where the stream cannot seek, `go_to` reads and drops
    what lies between, and goes forward only.
    """

    def __init__(self, stream: ByteStream) -> None:
        """Take the stream where it is; that place is byte 0."""
        self._stream = stream
        self.position = 0

    @property
    def seekable(self) -> SeekableStream | None:
        """The stream, if one can go about in it freely."""
        return self._stream if is_seekable(self._stream) else None

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and none at the clean end only."""
        data = self._stream.read(size)
        self.position += len(data)
        return data

    def exactly(self, size: int) -> bytes:
        """So many bytes, or as many as there are before the end."""
        parts: list[bytes] = []
        left = size
        while left > 0 and (data := self.read(left)):
            parts.append(data)
            left -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        """Go on at `byte`; a `DataError` where the stream ends before it."""
        stream = self.seekable
        if stream is not None:
            stream.go_to(byte, wanted=wanted)
            self.position = byte
        elif byte < self.position:
            raise ValueError(f"this stream is at byte {self.position}, and does not go back to {byte}")
        else:
            self._leave_out(byte)

    def _leave_out(self, byte: int) -> None:
        while self.position < byte:
            if not self.read(min(byte - self.position, _SKIP_BYTES)):
                raise DataError(
                    f"the object ends before byte {byte}, where reading was to go on: it has become shorter; "
                    "reset its offset to read it from its beginning",
                    Where(stage=Stage.TRANSFORM, position=f"byte {self.position}"),
                )
