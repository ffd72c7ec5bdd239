"""Programs that tests and demos start, and that are gone when they are: servers, brokers, clusters."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

__all__ = ["GuardedProcess", "at_near_ends", "free_port", "python_workers"]

GUARD = Path(__file__).with_name("guard.py")
MUCH_OUTPUT = 1024 * 1024
DAEMON = "pyspark.daemon"
CHILD = "headrace.framework.local.child"


def free_port() -> int:
    """A loopback port that was free a moment ago; somebody else may take it before you do, so be ready to retry."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def python_workers(pid: int) -> list[int]:
    """The Python processes in which tasks run, of those below a process: without Spark's daemons, which fork them."""
    import psutil  # noqa: PLC0415 - comes with the extra `dev`

    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    forked: dict[int, int] = {}
    found: list[int] = []
    for process in below:
        with contextlib.suppress(psutil.Error):  # some have ended since
            command = process.cmdline()
            if DAEMON in command:
                forked[process.pid] = process.ppid()
            elif any(CHILD in word for word in command):
                found.append(process.pid)
    return found + [pid for pid, parent in forked.items() if parent in forked]


def at_near_ends(connections: Collection[tuple[int, int]]) -> set[int]:
    """The processes that have made connections over loopback, each given as the port that it is from and the one to.

    The port that it is from would not do: another process may have it for a connection to another port.
    """
    import psutil  # noqa: PLC0415 - comes with the extra `dev`

    found = [one for one in psutil.net_connections("tcp4") if one.pid is not None and one.laddr and one.raddr]
    return {one.pid for one in found if (one.laddr.port, one.raddr.port) in connections}


@attrs.define
class GuardedProcess:
    """A program under a guard: it ends with `stop`, with the `with` block, and with this process, however that ends.

    Its output goes to the file `log`, which may lie in one of the folders that `remove_at_end` names: they go when
    the program has gone, and what it said can still be asked for.
    """

    argv: Sequence[str | Path] = attrs.field(kw_only=True)
    log: Path = attrs.field(kw_only=True)
    env: Mapping[str, str] | None = attrs.field(default=None, kw_only=True)
    remove_at_end: Sequence[Path] = attrs.field(default=(), kw_only=True)
    pid: int = attrs.field(default=0, init=False)
    _guard: "subprocess.Popen[bytes]" = attrs.field(init=False, repr=False)
    _log_descriptor: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        removals = [part for folder in self.remove_at_end for part in ("--remove", str(folder))]
        self._log_descriptor = os.open(self.log, os.O_RDONLY | os.O_CREAT, 0o666)
        weakref.finalize(self, os.close, self._log_descriptor)
        with self.log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", GUARD, str(os.getpid()), *removals, "--", *self.argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=self.env,
                start_new_session=True,
            )
        assert self._guard.stdout is not None  # noqa: S101 - asked for three lines above
        with self._guard.stdout as answer:
            self.pid = int(answer.readline() or 0)
        if not self.pid:
            self.stop()
            raise OSError(f"{self.argv[0]} could not be started: {self.tail()}")

    @property
    def returncode(self) -> int | None:
        """The program's exit code (128 + signal where one ended it), or None while it runs."""
        return self._guard.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and to nothing else."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait until the program has ended and its folders have gone; its exit code, as `returncode` has it."""
        assert self._guard.stdin is not None  # noqa: S101 - a pipe since the constructor
        code = self._guard.wait()
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.close()
        return code

    def kill(self) -> None:
        """`kill -9`: no shutdown hook runs; returns when the program has gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """End the program in an orderly way, by force after ten seconds; returns when it has gone."""
        assert self._guard.stdin is not None  # noqa: S101 - a pipe since the constructor
        # A word and not only the end of the pipe: a process that was forked meanwhile may hold the pipe open.
        if self.returncode is None:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.write(b".")
                self._guard.stdin.flush()
        self.wait()

    def output(self) -> str:
        """What the program wrote, from its end backwards at most a megabyte."""
        size = os.fstat(self._log_descriptor).st_size
        said = os.pread(self._log_descriptor, MUCH_OUTPUT, max(0, size - MUCH_OUTPUT))
        return said.decode(errors="replace")

    def tail(self, lines: int = 5) -> str:
        """The last lines that the program wrote."""
        return "\n".join(self.output().splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
