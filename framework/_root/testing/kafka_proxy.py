"""A proxy in front of a broker that holds back one answer: for what happens between a request and its answer.

with KafkaProxy() as proxy, EmbeddedKafka(port=proxy.broker_port, properties=proxy.broker_properties) as kafka:
held = proxy.hold(END_TXN, containing=b"my-transactional-id")
...  # let the code under test commit
assert held.reached.wait(60)  # the broker has done it, and nobody knows
held.release.set()
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import attrs

from headrace.testing.processes import free_port

__all__ = ["END_TXN", "INIT_PRODUCER_ID", "Held", "KafkaProxy"]

INIT_PRODUCER_ID = 22
"""The request that takes a transactional id."""

END_TXN = 26
"""The request that commits or aborts a transaction."""

LENGTH = struct.Struct(">i")
REQUEST = struct.Struct(">hhi")
CORRELATION = struct.Struct(">i")


@attrs.define(eq=False)
class Held:
    """One answer that is held back: `reached` is set when the broker has given it, and `release` lets it pass.

    With `drop` it never passes: its connection is closed when `release` is set.
    """

    api_key: int
    containing: bytes = b""
    drop: bool = False
    reached: threading.Event = attrs.field(factory=threading.Event, init=False)
    release: threading.Event = attrs.field(factory=threading.Event, init=False)


@attrs.define
class KafkaProxy:
    """Listens on a free port of 127.0.0.1 while the `with` block lasts, in threads of this process.

    The broker advertises the proxy, so every client's requests go through it; those to the bootstrap address that
    ask for the advertised one do not.
    """

    broker_port: int = attrs.field(factory=free_port, init=False)
    _listener: socket.socket = attrs.field(init=False)
    _waiting: list[Held] = attrs.field(factory=list, init=False)
    _sockets: set[socket.socket] = attrs.field(factory=set, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _accepting: threading.Thread = attrs.field(init=False)

    @property
    def broker_properties(self) -> dict[str, str]:
        """What the broker behind it must be told."""
        port = self._listener.getsockname()[1]
        return {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}

    def hold(self, api_key: int, *, containing: bytes = b"", drop: bool = False) -> Held:
        """Hold the answer to the next request of this kind that contains these bytes."""
        held = Held(api_key, containing, drop)
        with self._lock:
            self._waiting.append(held)
        return held

    def __enter__(self) -> Self:
        """Start listening."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._accepting = threading.Thread(target=self._accept, name="kafka-proxy", daemon=True)
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        _close(self._listener)
        self._accepting.join()
        for one in self._sockets:
            _close(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except OSError:  # the broker is not up, or not any more: its client tries again
                client.close()
                continue
            connection = _Connection(client, broker)
            self._sockets |= {client, broker}
            connection.start(self._take)

    def _take(self, api_key: int, request: bytes) -> Held | None:
        with self._lock:
            for held in self._waiting:
                if held.api_key == api_key and held.containing in request:
                    self._waiting.remove(held)
                    return held
        return None


@attrs.define(eq=False)
class _Connection:
    client: socket.socket
    broker: socket.socket
    held: dict[int, Held] = attrs.field(factory=dict, init=False)

    def start(self, take: Callable[[int, bytes], Held | None]) -> None:
        for work, arguments in ((self._pass_requests, (take,)), (self._pass_answers, ())):
            threading.Thread(target=work, args=arguments, name="kafka-proxy-connection", daemon=True).start()

    def _pass_requests(self, take: Callable[[int, bytes], Held | None]) -> None:
        with contextlib.suppress(OSError):
            for frame in _frames(self.client):
                api_key, _, correlation = REQUEST.unpack_from(frame)
                held = take(api_key, frame)
                if held is not None:
                    self.held[correlation] = held
                self.broker.sendall(LENGTH.pack(len(frame)) + frame)
        self._close()

    def _pass_answers(self) -> None:
        with contextlib.suppress(OSError):
            for frame in _frames(self.broker):
                held = self.held.pop(CORRELATION.unpack_from(frame)[0], None)
                if held is not None:
                    held.reached.set()
                    held.release.wait()
                    if held.drop:
                        break
                self.client.sendall(LENGTH.pack(len(frame)) + frame)
        self._close()

    def _close(self) -> None:
        _close(self.client)
        _close(self.broker)


def _frames(source: socket.socket) -> Iterator[bytes]:
    """The requests or answers that come over a connection, without their lengths, until it ends."""
    while True:
        head = _exactly(source, LENGTH.size)
        if head is None:
            return
        frame = _exactly(source, LENGTH.unpack(head)[0])
        if frame is None:
            return
        yield frame


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
