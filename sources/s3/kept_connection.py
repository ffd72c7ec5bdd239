"""HTTP/1.1 over a connection that is kept open, the simple half of it: GETs, and answers of a stated length.

The standard library's client uses a tenth of a millisecond of CPU for a GET of a kilobyte, most of it for headers that
nobody reads. https://www.rfc-editor.org/rfc/rfc9112 has the protocol.
"""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Self
from urllib.parse import urlsplit

import attrs

__all__ = ["Answer", "KeptConnection"]

_RECEIVE_BYTES = 64 * 1024
_RECEIVE_MUCH_BYTES = 256 * 1024
_MOST_HEADERS = 64 * 1024
_HEADERS_END = b"\r\n\r\n"
_STATUS = re.compile(r"(HTTP/1\.\d) (\d{3})(?: (.*))?")


@attrs.frozen
class Answer:
    """What a server answers; header names are in lower case.

    `content` is None where it was not read: it is longer than what was asked for, or its length is not stated.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes | None


@attrs.define
class KeptConnection:
    """One connection, used by one thread: `ask`, then `answer`, again and again while `is_open`.

    Both raise `OSError` when the connection breaks or the server does not speak HTTP; the connection is closed then.
    `close` may be called from any thread, and breaks what is under way.
    """

    _socket: socket.socket
    is_open: bool = attrs.field(default=True, init=False)
    _received: bytes = attrs.field(default=b"", init=False)

    @classmethod
    def to(cls, host: str, trusting: ssl.SSLContext | None, *, connect_s: float, read_s: float) -> Self:
        """Connect to a host, with its port if it has one, by TLS where it is said who is trusted."""
        told = urlsplit(f"//{host}")
        name = told.hostname or ""
        made = socket.create_connection((name, told.port or (443 if trusting else 80)), connect_s)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if trusting is not None:
                made = trusting.wrap_socket(made, server_hostname=name)
            made.settimeout(read_s)
        except BaseException:
            made.close()
            raise
        return cls(made)

    def ask(self, target: str, headers: Mapping[str, str]) -> None:
        """Send a GET, and wait for the beginning of its answer."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if lines.count("\r") != len(headers) or lines.count("\n") != len(headers):
            raise ValueError("a header has a line end within")
        with self._closed_by_errors():
            self._socket.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
            self._received = self._more()

    def answer(self, most: int) -> Answer:
        """The answer to what was asked, with its content if that is no more than `most` bytes."""
        with self._closed_by_errors():
            head, rest = self._head()
            version, status, reason, headers = _parsed(head)
            length = headers.get("content-length", "")
            content = None
            if "transfer-encoding" not in headers and length.isdecimal() and int(length) <= most:
                content = self._content(rest, int(length))
            if content is None or version != "HTTP/1.1" or "close" in headers.get("connection", "").lower():
                self.close()
            return Answer(status, reason, headers, content)

    def close(self) -> None:
        """Close it, for good."""
        self.is_open = False
        # It may be closed already, by the other side or by another thread.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _head(self) -> tuple[bytes, bytes]:
        received = self._received
        while _HEADERS_END not in received:
            if len(received) > _MOST_HEADERS:
                raise ConnectionError(f"the server's headers are more than {_MOST_HEADERS} bytes")
            received += self._more()
        head, _, rest = received.partition(_HEADERS_END)
        return head, rest

    def _content(self, received: bytes, length: int) -> bytes:
        pieces, missing = [received], length - len(received)
        while missing > 0:
            piece = self._more(_RECEIVE_MUCH_BYTES if missing > _RECEIVE_BYTES else _RECEIVE_BYTES)
            pieces.append(piece)
            missing -= len(piece)
        if missing < 0:
            raise ConnectionError(f"the server sends more than the {length} bytes that it stated")
        return b"".join(pieces)

    def _more(self, most: int = _RECEIVE_BYTES) -> bytes:
        piece = self._socket.recv(most)
        if not piece:
            raise ConnectionError("the server closed the connection before the end of its answer")
        return piece

    @contextlib.contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


def _parsed(head: bytes) -> tuple[str, int, str, Mapping[str, str]]:
    """Version, status, reason and headers; of headers that come twice the last counts, but for lengths that differ."""
    first, *lines = head.decode("latin-1").split("\r\n")
    told = _STATUS.fullmatch(first)
    if told is None:
        raise ConnectionError(f"the server does not answer in HTTP: {first[:80]!r}")
    version, status, reason = told.groups()
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name == "content-length" and headers.get(name, value) != value:
            raise ConnectionError("the server states two lengths")
        headers[name] = value
    return version, int(status), reason or "", headers
