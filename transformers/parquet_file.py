"""An object as the file that pyarrow reads: where it goes, the stream goes."""

import io
from collections.abc import Iterator, Sequence

import attrs

from headrace.transformers.seeking import SeekableStream

__all__ = ["RangedFile", "merged"]

_GAP_BYTES = 64 * 1024
_PIECE_BYTES = 1024 * 1024


def merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of bytes in their order, those put together between which there is next to nothing."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start - found[-1][1] <= _GAP_BYTES:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@attrs.define
class RangedFile:
    """A file for reading, over a stream in which one can go about.

    What was told to be held is in memory, and may be read again and again; anything else is fetched as it is asked for.
    """

    stream: SeekableStream
    closed: bool = attrs.field(default=False, init=False)
    _held: list[tuple[int, memoryview]] = attrs.field(factory=list, init=False)
    _at: int = attrs.field(default=0, init=False)
    _fetched_to: int = attrs.field(default=-1, init=False)

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Hold these ranges of bytes, each fetched at one go, and nothing else any more."""
        self._held = []
        for start, end in ranges:
            self.seek(start)
            found = memoryview(bytearray(end - start))
            for piece in self._fetched(end - start):
                at = self._at - start
                found[at - len(piece) : at] = piece
            self._held.append((start, found[: self._at - start]))

    def read(self, size: int | None = -1, /) -> bytes | memoryview:
        """So many bytes, or as many as there are; all of them without a size."""
        left = self.stream.size - self._at
        size = left if size is None or size < 0 else min(size, left)
        for start, held in self._held:
            if start <= self._at and self._at + size <= start + len(held):
                self._at += size
                return held[self._at - size - start : self._at - start]
        return b"".join(self._fetched(size))

    def _fetched(self, size: int) -> Iterator[bytes]:
        if self._at != self._fetched_to:
            self.stream.go_to(self._at, wanted=size)
        end = self._at + size
        while self._at < end and (piece := self.stream.read(min(end - self._at, _PIECE_BYTES))):
            self._at += len(piece)
            self._fetched_to = self._at
            yield piece

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a byte; nothing is fetched yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.stream.size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """The byte that comes next."""
        return self._at

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing to the stream, which is somebody else's."""
        self.closed = True
