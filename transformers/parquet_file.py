"""An object as the file that pyarrow reads: where it goes, the stream goes."""

import io
from collections.abc import Sequence

import attrs

from headrace.transformers.seeking import SeekableStream

__all__ = ["RangedFile", "merged"]

_GAP_BYTES = 64 * 1024


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

    `plan` are the ranges that are going to be read, as far as that is known: each is fetched at one go, and not all of
    it is held in memory. What lies in none of them is fetched as it is asked for.
    """

    stream: SeekableStream
    plan: Sequence[tuple[int, int]] = ()
    closed: bool = attrs.field(default=False, init=False)
    _at: int = attrs.field(default=0, init=False)
    _fetched_to: int = attrs.field(default=-1, init=False)

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or as many as there are; all of them without a size."""
        left = self.stream.size - self._at
        size = left if size is None or size < 0 else min(size, left)
        if self._at != self._fetched_to:
            self.stream.go_to(self._at, wanted=self._range_end(size) - self._at)
        pieces: list[bytes] = []
        while size > 0 and (piece := self.stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
        found = b"".join(pieces)
        self._at += len(found)
        self._fetched_to = self._at
        return found

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

    def _range_end(self, size: int) -> int:
        wanted = self._at + size
        return next((end for start, end in self.plan if start <= self._at and wanted <= end), wanted)
