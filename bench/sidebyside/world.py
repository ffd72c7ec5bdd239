"""The servers, the data on them, and the processes that are measured."""

import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs

from headrace.framework.java import java_environment
from headrace.testing import EmbeddedKafka, EmbeddedS3, GuardedProcess
from sidebyside.data import Dataset
from sidebyside.figures import Measure
from sidebyside.sampler import TreeSampler
from sidebyside.topic import Arrivals, arrivals, drop_topic, make_topic

__all__ = ["BUCKET", "Process", "World", "world"]

T = TypeVar("T")

BUCKET = "bench"
LONGEST_S = 1800.0
READY_WITHIN_S = 60.0
HERE = Path(__file__).parent


@attrs.frozen
class Process:
    """A process that has ended: when it began, what it cost, and the lines that it printed."""

    started: float
    sampler: TreeSampler
    lines: Sequence[str]

    def events(self) -> Iterator[dict[str, float]]:
        """The lines that are JSON objects: what our own programs say of themselves."""
        return (json.loads(line) for line in self.lines if line.startswith("{"))


@attrs.frozen(kw_only=True)
class World:
    """What all scenarios share. `folder` goes with the block in which the world was made."""

    kafka: EmbeddedKafka
    s3: EmbeddedS3
    maker: str
    folder: Path
    rounds: int
    size: str
    peers: bool
    say: Callable[[str], None]
    _there: set[str] = attrs.field(factory=set)

    @property
    def bootstrap_servers(self) -> str:
        """The broker."""
        return self.kafka.bootstrap_servers

    def by_size(self, *, quick: T, default: T, full: T | None = None) -> T:
        """What the size of this benchmark wants of three."""
        return {"quick": quick, "default": default, "full": default if full is None else full}[self.size]

    def topic(self, of: str) -> str:
        """A new topic."""
        name = f"{of}-{uuid.uuid4().hex[:8]}"
        make_topic(self.bootstrap_servers, name)
        return name

    def put(self, data: Dataset) -> Dataset:
        """Have the data in the bucket, or made; once is enough."""
        if data.name not in self._there:
            self._there.add(data.name)
            doing = "making" if data.made else "putting into S3"
            self.say(f"  {doing} {data.objects:,} objects of {data.lines:,} records of {data.size} bytes")
            (make_all if data.made else put_all)(self.endpoint(data), data)
        return data

    def endpoint(self, data: Dataset) -> str:
        """The S3 server that has the data."""
        return self.maker if data.made else self.s3.endpoint

    def files(self, data: Dataset) -> Path:
        """The folder of the same objects as files; written once."""
        folder = self.folder / data.name
        if not folder.exists():
            folder.mkdir()
            for number in range(data.objects):
                (folder / data.key(number)).write_bytes(data.body(number))
        return folder

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Process:
        """Run a program to its end, or until something holds, and watch what it costs."""
        with self.running(argv, env=env) as (process, ended):
            deadline = time.monotonic() + LONGEST_S
            while process.poll() is None and time.monotonic() < deadline:
                if until is not None and until():
                    break
                time.sleep(0.05)
        return ended[0]

    @contextmanager
    def running(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> Iterator[tuple["subprocess.Popen[str]", list[Process]]]:
        """A program that is ended with the block; what there is to know of it is in the list after that."""
        ended: list[Process] = []
        surroundings = {**java_environment(), "NO_PROXY": "127.0.0.1", **(env or {})}
        log = self.folder / f"log-{uuid.uuid4().hex[:8]}"
        with log.open("w") as errors:
            started = time.time()
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True, env=surroundings)
            sampler = TreeSampler(process.pid)
            sampler.start()
            lines: list[str] = []
            reader = threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True)
            reader.start()
            try:
                yield process, ended
            finally:
                asked = process.poll() is None
                if asked:
                    process.terminate()
                code = process.wait(60)
                sampler.stop()
                reader.join(10)
                ended.append(Process(started, sampler, lines))
        if code and not asked:
            raise SystemExit(f"{argv[0]} ended with {code}: {''.join(lines)[-800:]} {log.read_text()[-2000:]}")

    def measure(
        self, process: Process, topic: str, expected: int, *, started: float | None = None, ended: float | None = None
    ) -> Measure:
        """One run, or a part of one, from what arrived and what it cost."""
        came = arrivals(self.bootstrap_servers, topic, expected)
        drop_topic(self.bootstrap_servers, topic)
        return measured(process, came, started=started, ended=ended)


def measured(process: Process, came: Arrivals, *, started: float | None, ended: float | None) -> Measure:
    """What a process cost between two times, beside what arrived of it."""
    start = process.started if started is None else started
    sampler, before = process.sampler, 0.0 if started is None else process.sampler.cpu_s(started)
    return Measure(
        records=came.records,
        bytes=came.bytes,
        flow_s=came.last_s - came.first_s,
        start_s=came.first_s - start,
        cpu_s=sampler.cpu_s(ended) - before,
        cpu_start_s=sampler.cpu_s(came.first_s) - before,
        tree_mb=sampler.peak("tree_mb", start, ended or float("inf")),
        worker_mb=sampler.peak("worker_mb", start, ended or float("inf")),
    )


def make_all(endpoint: str, data: Dataset) -> None:
    """Have the server make the objects, which it keeps, so that nobody's turn has to wait for that."""
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))
    for number in range(data.objects):
        connection.request("GET", f"/{BUCKET}/{data.name}/{data.key(number)}")
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"the server of made objects answered {answer.status} to a GET of {data.key(number)}")
    connection.close()


def put_all(endpoint: str, data: Dataset) -> None:
    """Put the objects there without signing them: the server asks nobody."""
    host = endpoint.removeprefix("http://")
    for number in range(data.objects):
        connection = http.client.HTTPConnection(host)
        pieces, size = data.pieces(number)
        connection.request(
            "PUT", f"/{BUCKET}/{data.name}/{data.key(number)}", body=pieces, headers={"Content-Length": str(size)}
        )
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"the S3 server answered {answer.status} {answer.reason} to a PUT of {data.key(number)}")


@contextmanager
def world(*, rounds: int, size: str, peers: bool, say: Callable[[str], None]) -> Iterator[World]:
    """The servers and a folder, while the block runs."""
    with (
        ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as name,
        EmbeddedKafka(heap="512m") as kafka,
        EmbeddedS3() as s3,
        made_objects(folder := Path(name)) as maker,
    ):
        s3.client().create_bucket(Bucket=BUCKET)
        yield World(kafka=kafka, s3=s3, maker=maker, folder=folder, rounds=rounds, size=size, peers=peers, say=say)


@contextmanager
def made_objects(folder: Path) -> Iterator[str]:
    """The endpoint of the server that makes its objects."""
    program: list[str | Path] = [sys.executable, "-P", HERE / "programs" / "object_server.py", HERE.parent]
    with GuardedProcess(argv=program, log=folder / "object-server.log") as process:
        deadline = time.monotonic() + READY_WITHIN_S
        while not (found := re.search(r"Running on (\d+)\n", process.output())):
            if process.returncode is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server of made objects did not start: {process.tail()}")
            time.sleep(0.02)
        yield f"http://127.0.0.1:{found[1]}"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM ends the benchmark as Ctrl-C does, so that what it has started ends too."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
