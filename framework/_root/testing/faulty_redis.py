"""A proxy in front of a Redis server that breaks and holds back what a script says.

with FaultyRedis(port) as faulty:
    faulty.script(CUT, BROKEN)  # what becomes of the next two reads of a stream
    ...  # let the code under test read from faulty.url
"""

import contextlib
import socket
import threading
from collections import deque
from types import TracebackType
from typing import Self

import attrs

__all__ = ["BROKEN", "CUT", "PASS", "FaultyRedis"]

PASS = "pass"  # noqa: S105 - what becomes of a read
CUT = "cut"
BROKEN = "broken"

BROKEN_AFTER = 700
CHUNK = 64 * 1024


@attrs.define
class FaultyRedis:
    """Listens on a free port of 127.0.0.1 while the `with` block lasts, in threads of this process.

    Each request that reads entries, other than one that waits for them, takes one word off the script: `PASS` lets it
    through, `CUT` closes its connection before the server sees it, `BROKEN` closes it within the answer. Behind the
    script everything passes, or waits for as long as `hold` is in force.
    """

    server_port: int
    _listener: socket.socket = attrs.field(init=False)
    _accepting: threading.Thread = attrs.field(init=False)
    _faults: deque[str] = attrs.field(factory=deque, init=False)
    _released: threading.Event = attrs.field(factory=threading.Event, init=False)
    _sockets: set[socket.socket] = attrs.field(factory=set, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @property
    def url(self) -> str:
        """What to give a client as its URL."""
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def script(self, *faults: str) -> None:
        """Begin a script."""
        with self._lock:
            self._faults = deque(faults)

    def hold(self) -> None:
        """Hold back every read behind the script, until `release`."""
        self._released.clear()

    def release(self) -> None:
        """Let everything pass again."""
        self._released.set()

    def cut_all(self) -> None:
        """Close every connection there is."""
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            _close(one)

    def __enter__(self) -> Self:
        self._released.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._accepting = threading.Thread(target=self._accept, name="faulty-redis", daemon=True)
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        _close(self._listener)
        self.cut_all()
        self._accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                client = self.accepted(client)
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                _close(client)
                continue
            pair = _Pair(self, client, server)
            with self._lock:
                self._sockets |= {client, server}
            for target in (pair.requests, pair.answers):
                threading.Thread(target=target, name="faulty-redis", daemon=True).start()

    def accepted(self, client: socket.socket) -> socket.socket:
        """The connection as it is spoken over; `OSError` refuses it."""
        return client

    def fault_for(self, request: bytes) -> str:
        """What becomes of a request."""
        if b"XREAD" not in request or b"BLOCK" in request:
            return PASS
        with self._lock:
            if self._faults:
                return self._faults.popleft()
        self._released.wait()
        return PASS


@attrs.define(eq=False)
class _Pair:
    """One client's connection, and the one to the server that is behind it."""

    proxy: FaultyRedis
    client: socket.socket
    server: socket.socket
    breaks: threading.Event = attrs.field(factory=threading.Event)

    def requests(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.client.recv(CHUNK):
                fault = self.proxy.fault_for(data)
                if fault == CUT:
                    break
                if fault == BROKEN:
                    self.breaks.set()
                self.server.sendall(data)
        self._end()

    def answers(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.server.recv(CHUNK):
                if self.breaks.is_set():
                    self.client.sendall(data[:BROKEN_AFTER])
                    break
                self.client.sendall(data)
        self._end()

    def _end(self) -> None:
        _close(self.client)
        _close(self.server)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
