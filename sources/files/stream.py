"""The bytes of a file."""

import os
import threading
from types import TracebackType
from typing import BinaryIO, Self

import attrs

from headrace.framework.errors import RetriableError, Where
from headrace.framework.stage import Stage
from headrace.sources.files.failures import as_ours

__all__ = ["FileStream", "end_of_lines"]

LARGEST_READ = 1024 * 1024
LOOK_BACK_BYTES = 64 * 1024


@attrs.define(kw_only=True)
class FileStream:
    """A `ByteStream` of one open file, from its first byte to byte `end`, or to its end where that is None.

    One can go about in it: `size` is how many bytes it had when it was opened. When the task is to stop, `read` raises
    a `RetriableError`: an end of the stream is an end of the file and nothing else. Used by one thread; closing it
    closes the file.
    """

    path: str
    opened: BinaryIO
    stopping: threading.Event
    size: int
    end: int | None = None
    position: int = attrs.field(default=0, init=False)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes (and at most a megabyte); none at the end, and only there."""
        if self.stopping.is_set():
            raise RetriableError("the task is to stop: the rest is read by the next run", self.where)
        wanted = min(size, LARGEST_READ)
        if self.end is not None:
            wanted = min(wanted, self.end - self.position)
        if wanted <= 0:
            return b""
        try:
            data = self.opened.read(wanted)
        except OSError as error:
            raise as_ours(error, self.where) from error
        self.position += len(data)
        return data

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:  # noqa: ARG002 - a disk does not care
        """Have the next `read` begin with that byte; `wanted` says how many are going to be read there, if known."""
        try:
            self.opened.seek(byte)
        except OSError as error:
            raise as_ours(error, self.where) from error
        self.position = byte

    @property
    def where(self) -> Where:
        """The place to name in errors."""
        return Where(stage=Stage.READ, object=self.path, position=f"byte {self.position}")

    def close(self) -> None:
        """Close the file."""
        self.opened.close()

    def __enter__(self) -> Self:
        """The stream itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def end_of_lines(descriptor: int, start: int, end: int) -> int:
    """The place behind the last line that ends between two places of an open file; `start` where none does."""
    while end > start:
        at = max(start, end - LOOK_BACK_BYTES)
        found = os.pread(descriptor, end - at, at).rfind(b"\n")
        if found >= 0:
            return at + found + 1
        end = at
    return start
