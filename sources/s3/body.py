"""The body of one answer, as it comes off the connection."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

__all__ = ["AnswerBody"]

AT_ONCE = 256 * 1024

BY_THE_PIECE = 64 * 1024
"""What urllib3 before 2 is asked for at a time: so much at most is lost when the connection breaks meanwhile."""


@attrs.frozen
class AnswerBody:
    """The body of the answer to a GET.

    boto3's own waits until as much has come as was asked for, and what had come is lost if the connection breaks
    meanwhile. This one gives out what is there. Reading raises what the network libraries raise.
    """

    _body: Any
    _has_length: bool

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "AnswerBody":
        """The body of boto3's answer."""
        return cls(answer["Body"], "ContentLength" in answer)

    @property
    def _raw(self) -> Any:
        # boto3 shows no way to urllib3's response, and has none of its own to read what is there.
        return getattr(self._body, "_raw_stream", None)

    def pieces(self, size: int) -> Iterator[bytes]:
        """The next `size` bytes, piece by piece as they come; fewer where the connection ends before."""
        read1 = getattr(self._raw, "read1", None)
        read, at_once = (self._body.read, BY_THE_PIECE) if read1 is None else (read1, AT_ONCE)
        while size > 0 and (piece := read(min(size, at_once))):
            size -= len(piece)
            yield piece

    def finish(self) -> None:
        """Give the connection back, after the last byte: the next request goes over it. Raises nothing."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - comes with the extra

        if self._has_length and self._raw is not None:
            with contextlib.suppress(HTTPError, OSError):  # every byte is here already
                self._raw.read(1)  # nothing is left; asking is what tells urllib3
        self.close()

    def close(self) -> None:
        """Drop what is left, and with it the connection; nothing happens to one that was given back."""
        with contextlib.suppress(OSError):  # it is broken already
            self._body.close()

    def shut(self) -> None:
        """Wake whoever waits for a piece; for another thread. It does nothing with urllib3 before 2.3."""
        shutdown = getattr(self._raw, "shutdown", None)
        if shutdown is not None:
            with contextlib.suppress(ValueError, RuntimeError, OSError):  # it has ended meanwhile
                shutdown()
