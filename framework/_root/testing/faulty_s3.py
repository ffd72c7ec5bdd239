"""A proxy in front of an S3 server that breaks what a script says, and keeps a record of what it saw.

    with EmbeddedS3() as s3, FaultyS3(s3.endpoint) as faulty:
        faulty.script(CutBody(4711), Pass(), Answer(503, "SlowDown"))
        ...  # let the code under test read from faulty.endpoint
        assert [request.sent for request in faulty.requests] == [4711, 8192, 0]

A script is a list of faults. Each request takes the first one that is meant for it, and takes it out of the script;
a request that finds none is passed on. Unless a fault says otherwise (`on=listings`), it is meant for the GET of an
object.
"""

import contextlib
import http.client
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import attrs

from headrace.framework.compat import override

__all__ = [
    "Answer",
    "BodyEnd",
    "CutBody",
    "Fault",
    "FaultyS3",
    "Hang",
    "Meanwhile",
    "Pass",
    "Request",
    "Response",
    "Rewrite",
    "everything",
    "listings",
    "object_gets",
]


@attrs.define(kw_only=True)
class Request:
    """A request as the proxy saw it; header names are in lower case. `sent` counts the body's bytes in the answer.

    `ports` are the client's and ours, which tell the connection, and with it which process has asked.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    connection: int
    ports: tuple[int, int] = (0, 0)
    sent: int = 0

    @property
    def is_listing(self) -> bool:
        """Whether it asks for a page of a listing."""
        return self.method == "GET" and "list-type" in self.query

    @property
    def is_object_get(self) -> bool:
        """Whether it asks for an object's bytes."""
        return self.method == "GET" and not self.is_listing and self.path.count("/") > 1


@attrs.frozen(kw_only=True)
class Response:
    """The server's answer: the status, the headers with their names in lower case, the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def with_body(self, body: bytes) -> "Response":
        """The same answer with another body, whose length it announces."""
        return attrs.evolve(self.with_header("content-length", str(len(body))), body=body)

    def with_header(self, name: str, value: str | None) -> "Response":
        """The same answer with another header, or without it."""
        others = {key: text for key, text in self.headers.items() if key != name}
        return attrs.evolve(self, headers=others if value is None else {**others, name: value})


On = Callable[[Request], bool]
SLICE = 16 * 1024


def object_gets(request: Request) -> bool:
    """The GETs of objects."""
    return request.is_object_get


def listings(request: Request) -> bool:
    """The pages of listings."""
    return request.is_listing


def everything(request: Request) -> bool:  # noqa: ARG001 - a predicate like the others
    """Every request."""
    return True


@attrs.frozen
class Fault:
    """What happens to one request; the base class lets it pass. Subclass it for a fault of your own."""

    on: On = attrs.field(default=object_gets, kw_only=True)

    def before(self, request: Request) -> Response | None:  # noqa: ARG002 - for subclasses
        """Called before the request is passed on; an answer means that it is not."""
        return None

    def after(self, request: Request, response: Response) -> Response:  # noqa: ARG002 - for subclasses
        """Called with the server's answer; gives back the one to send."""
        return response

    def body_end(self) -> "BodyEnd":
        """How the body of the answer ends."""
        return BodyEnd()


@attrs.frozen(kw_only=True)
class BodyEnd:
    """After how many bytes a body ends before its time (None: it does not), and in what way."""

    at: int | None = None
    reset: bool = False
    hang: bool = False


@attrs.frozen
class Pass(Fault):
    """Nothing: the request is passed on. It lets the fault after it hit the next request."""


@attrs.frozen
class Answer(Fault):
    """The server is not asked; the proxy answers with an error of S3's form."""

    status: int
    code: str
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)

    @override
    def before(self, request: Request) -> Response | None:
        text = f"<Error><Code>{self.code}</Code><Message>as the script says</Message></Error>"
        headers = {"content-type": "application/xml", **self.headers}
        return Response(status=self.status, headers=headers, body=b"").with_body(text.encode())


@attrs.frozen
class CutBody(Fault):
    """The answer announces its whole body; the connection is closed after `at` bytes of it, or reset."""

    at: int
    reset: bool = attrs.field(default=False, kw_only=True)

    @override
    def body_end(self) -> BodyEnd:
        return BodyEnd(at=self.at, reset=self.reset)


@attrs.frozen
class Hang(Fault):
    """The answer stops after `at` bytes of its body, and the connection stays open until one side gives up."""

    at: int

    @override
    def body_end(self) -> BodyEnd:
        return BodyEnd(at=self.at, hang=True)


@attrs.frozen
class Meanwhile(Fault):
    """Something happens just before the request reaches the server: an object is overwritten, or deleted."""

    action: Callable[[], object]

    @override
    def before(self, request: Request) -> Response | None:
        self.action()
        return None


@attrs.frozen
class Rewrite(Fault):
    """The server's answer is sent as `change` rewrites it."""

    change: Callable[[Response], Response]

    @override
    def after(self, request: Request, response: Response) -> Response:
        return self.change(response)


@attrs.define
class FaultyS3:
    """The proxy: listens on a free port of 127.0.0.1 while the `with` block lasts, in threads of this process.

    It passes requests on to `upstream` with their own Host header, so that signatures hold. `requests` is the record
    of what it saw, in the order of arrival.

    Not promised: speed, and bounded memory; it holds each body as a whole.
    """

    upstream: str
    requests: list[Request] = attrs.field(factory=list, init=False)
    _script: list[Fault] = attrs.field(factory=list, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _stopped: threading.Event = attrs.field(factory=threading.Event, init=False)
    _connections: int = attrs.field(default=0, init=False)
    _server: "_Server | None" = attrs.field(default=None, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    @property
    def endpoint(self) -> str:
        """What to give a client as its endpoint."""
        assert self._server is not None, "this proxy is not running: use it in a with block"  # noqa: S101 - misuse
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def gets(self) -> list[Request]:
        """The GETs of objects among `requests`."""
        return [request for request in self.requests if request.is_object_get]

    @property
    def lists(self) -> list[Request]:
        """The pages of listings among `requests`."""
        return [request for request in self.requests if request.is_listing]

    def script(self, *faults: Fault) -> None:
        """Append faults to the script."""
        with self._lock:
            self._script.extend(faults)

    def forget(self) -> None:
        """Drop what is left of the script."""
        with self._lock:
            self._script.clear()

    def __enter__(self) -> Self:
        """Start listening."""
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="faulty-s3", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; connections that hang are closed."""
        self._stopped.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.close_connections()
            self._server.server_close()
            self._thread.join()

    def take(self, request: Request) -> Fault:
        """Note a request and take the fault that is meant for it out of the script."""
        with self._lock:
            self.requests.append(request)
            for index, fault in enumerate(self._script):
                if fault.on(request):
                    return self._script.pop(index)
        return Pass()

    def connected(self) -> int:
        """Count a connection."""
        with self._lock:
            self._connections += 1
            return self._connections

    def wait_for_the_end(self, connection: socket.socket) -> None:
        """Say nothing until the client goes, or the proxy is stopped."""
        connection.settimeout(0.05)
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                if not connection.recv(4096):
                    return


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: FaultyS3) -> None:
        self.proxy = proxy
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @override
    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def close_connections(self) -> None:
        """Wake the handlers that wait for a next request."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @override
    def shutdown_request(self, request: Any) -> None:
        # Without the base class's orderly shutdown, which would make every reset an end of file.
        self.connections.discard(request)
        self.close_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what this proxy is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @override
    def setup(self) -> None:
        super().setup()
        self.number = self.server.proxy.connected()

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the record is in `requests`."""

    def handle_any(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        url = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=url.path,
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            connection=self.number,
            ports=(self.client_address[1], self.connection.getsockname()[1]),
        )
        fault = proxy.take(request)
        response = fault.before(request) or fault.after(request, _ask(proxy.upstream, self, body))
        self._send(request, response, fault.body_end())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the base class's names

    def _send(self, request: Request, response: Response, end: BodyEnd) -> None:
        body = b"" if request.method == "HEAD" else response.body
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        shown = body[: end.at]
        for start in range(0, len(shown), SLICE):
            piece = shown[start : start + SLICE]
            # Counted first: a client that has its last byte may look at once.
            request.sent += len(piece)
            self.wfile.write(piece)
        if end.at is None:
            # Without a length it is the end of the connection that ends the body.
            self.close_connection = "content-length" not in response.headers
            return
        self.close_connection = True
        if end.hang:
            self.server.proxy.wait_for_the_end(self.connection)
        if end.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})


def _ask(upstream: str, handler: BaseHTTPRequestHandler, body: bytes) -> Response:
    connection = http.client.HTTPConnection(urlsplit(upstream).netloc)
    with contextlib.closing(connection):
        connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() not in HOP_BY_HOP:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP}
        content = answer.read()
        response = Response(status=answer.status, headers=headers, body=content)
        return response if handler.command == "HEAD" else response.with_body(content)
