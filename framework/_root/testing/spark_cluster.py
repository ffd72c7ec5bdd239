"""Spark's own standalone cluster, embedded: a master and workers as processes of one machine, loopback only."""

import importlib.util
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.errors import SetupError
from headrace.framework.java import java_environment
from headrace.testing.processes import GuardedProcess

__all__ = ["SparkCluster"]

READY_WITHIN_S = 90.0
MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
REGISTERED = re.compile(r"Successfully registered with master")
EXECUTOR = "CoarseGrainedExecutorBackend"

LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
"""

QUIET_LOGGING = LOGGING.replace("level = info", "level = error")

DEFAULTS = """\
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.ui.enabled false
spark.executor.memory 512m
"""


@attrs.define
class SparkCluster:
    """A master and `workers` workers of `cores` cores each, every worker with an executor of its own for a session.

    Started by `start` or a `with` block, which return when every worker is registered; ended by `stop`, by the end
    of the block, and by the end of this process in whatever way. A session for it is made inside `environment`.

    On Linux each worker is a host of its own, 127.0.0.1 and up.

    Its executors run a Python that has everything that is installed here except headrace: like those of a cluster
    elsewhere, they have what is shipped to them.
    """

    workers: int = attrs.field(default=2, kw_only=True)
    cores: int = attrs.field(default=1, kw_only=True)
    url: str = attrs.field(default="", init=False)
    _folder: Path = attrs.field(init=False, repr=False)
    _master: GuardedProcess | None = attrs.field(default=None, init=False, repr=False)
    _workers: list[GuardedProcess] = attrs.field(factory=list, init=False, repr=False)

    @property
    def python(self) -> Path:
        """The executors' interpreter."""
        return self._folder / "python"

    @property
    def spark_submit(self) -> Path:
        """The program `spark-submit`; start it with `variables` in its environment."""
        return _spark_home() / "bin" / "spark-submit"

    @property
    def variables(self) -> Mapping[str, str]:
        """What the environment of a driver must have: how to be reached, and the executors' interpreter."""
        return {
            **java_environment(),
            "SPARK_HOME": str(_spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(self._folder / "driver"),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Inside the block a session on `url` can be made in this process."""
        before = dict(os.environ)
        os.environ.update(self.variables)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def start(self) -> Self:
        """Start the cluster and wait until every worker is registered."""
        self._folder = Path(tempfile.mkdtemp(prefix="headrace-spark-"))
        try:
            self._write_files()
            self._master = self._launch("master", "master.Master")
            self.url = _await(self._master, MASTER)[1]
            self._workers = [self._launch_worker(number) for number in range(self.workers)]
            for worker in self._workers:
                _await(worker, REGISTERED)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End workers, executors and master."""
        for process in [*self._workers, self._master]:
            if process is not None:
                process.stop()
        self._workers, self._master = [], None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def executors(self) -> list[int]:
        """The process ids of the executors that are running now."""
        return [child.pid for child in self._children() if EXECUTOR in " ".join(_command(child))]

    def kill_worker(self, number: int) -> None:
        """`kill -9` of a worker; its executor goes with it."""
        self._workers[number].kill()

    def _children(self) -> list[Any]:
        import psutil  # noqa: PLC0415 - comes with the extra `dev`

        found: list[Any] = []
        for worker in self._workers:
            try:
                found += psutil.Process(worker.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                continue
        return found

    def _write_files(self) -> None:
        for name, logging in (("daemons", LOGGING), ("driver", QUIET_LOGGING)):
            folder = self._folder / name
            folder.mkdir()
            (folder / "log4j2.properties").write_text(logging)
        (self._folder / "driver" / "spark-defaults.conf").write_text(DEFAULTS)
        installed = self._folder / "installed"
        _link_what_is_installed(installed)
        self.python.write_text(
            f"#!/bin/sh\nPYTHONNOUSERSITE=1 PYTHONPATH=$PYTHONPATH:{shlex.quote(str(installed))} "
            f'exec {shlex.quote(_base_interpreter())} "$@"\n'
        )
        self.python.chmod(0o755)

    def _launch_worker(self, number: int) -> GuardedProcess:
        work = self._folder / f"work-{number}"
        return self._launch(
            f"worker-{number}",
            "worker.Worker",
            *("-c", str(self.cores), "-m", "1g", "-d", str(work), self.url),
            host=_host(number),
        )

    def _launch(self, name: str, of_deploy: str, *arguments: str, host: str = "127.0.0.1") -> GuardedProcess:
        return GuardedProcess(
            argv=[
                _spark_home() / "bin" / "spark-class",
                f"org.apache.spark.deploy.{of_deploy}",
                *("--host", host, "--port", "0", "--webui-port", "0"),
                *arguments,
            ],
            log=self._folder / f"{name}.log",
            env={
                **java_environment(),
                "SPARK_HOME": str(_spark_home()),
                "SPARK_LOCAL_IP": host,
                "SPARK_CONF_DIR": str(self._folder / "daemons"),
                "SPARK_DAEMON_MEMORY": "256m",
                # Tests kill executors as often as they like.
                "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            },
        )


def _await(process: GuardedProcess, pattern: re.Pattern[str]) -> re.Match[str]:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        if found := pattern.search(process.output()):
            return found
        if process.returncode is not None:
            raise SetupError(f"Spark's {process.log.stem} ended with {process.returncode}: {process.tail()}")
        if time.monotonic() > deadline:
            raise SetupError(
                f"Spark's {process.log.stem} was not ready within {READY_WITHIN_S:.0f} s: {process.tail()}"
            )
        time.sleep(0.02)


def _host(number: int) -> str:
    """A host of its own for each worker: Spark runs no second copy of a task on the host of the first."""
    # Only Linux has all of 127.0.0.0/8 without being asked.
    return f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("a Spark cluster needs pyspark: pip install 'headrace[spark]'")
    return Path(spec.origin).parent


def _base_interpreter() -> str:
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def _link_what_is_installed(folder: Path) -> None:
    """A folder like this interpreter's site-packages, without headrace; of two of a name the first one counts."""
    folder.mkdir()
    for place in map(Path, sys.path):
        if place.name not in {"site-packages", "dist-packages"} or not place.is_dir():
            continue
        for entry in place.iterdir():
            target = folder / entry.name
            if not re.match(r"(__editable__.*)?headrace\b|.*\.pth$|__pycache__$", entry.name) and not target.exists():
                target.symlink_to(entry)


def _command(process: Any) -> list[str]:
    import psutil  # noqa: PLC0415 - as above

    try:
        command: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return command
