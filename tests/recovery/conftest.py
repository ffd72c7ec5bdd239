"""Jobs that are read slowly enough to be caught, and a watch on what their transactions leave on the topic."""

import json
import logging
import random
import sys
import threading
import time
import uuid

import attrs
import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.framework.compat import override
from headrace.testing import GuardedProcess, S3Harness, create_topic, read_topic
from headrace.testing.faulty_s3 import FaultyS3
from headrace.testing.processes import at_near_ends
from headrace.testing.spark_cluster import SparkCluster

log = logging.getLogger(__name__)

WITHIN_S = 120.0


@attrs.define
class SlowS3(FaultyS3):
    """A server that takes `seconds` for every object that it is asked for, over the connections that are `waiting`."""

    seconds: float = 0.0
    waiting: set = attrs.field(factory=set, init=False)
    _never: threading.Event = attrs.field(factory=threading.Event, init=False)

    @override
    def take(self, request):
        if request.is_object_get:
            self.waiting.add(request.ports)
            self._never.wait(self.seconds)
            self.waiting.discard(request.ports)
        return super().take(request)


@attrs.define
class Watch:
    """What is on a topic of one partition, with what was aborted and what is still open."""

    bootstrap_servers: str
    topic: str
    _admin: AdminClient = attrs.field(init=False)

    def __attrs_post_init__(self):
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def ends(self):
        """The last stable offset and the high watermark: they differ while a transaction is open."""
        partition = TopicPartition(self.topic, 0)

        def latest(isolation):
            answer = self._admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=isolation)
            return answer[partition].result(30).offset

        return latest(IsolationLevel.READ_COMMITTED), latest(IsolationLevel.READ_UNCOMMITTED)

    def aborted(self):
        """How many records of transactions that were aborted are on the topic."""
        stable, _ = self.ends()
        return len(self._offsets("read_uncommitted", stable)) - len(self._offsets("read_committed", stable))

    def committed(self):
        """The committed values, in the topic's order."""
        return [message.value() for message in read_topic(self.bootstrap_servers, self.topic)]

    def await_open_transaction(self, process=None, *, beyond=0):
        """Wait until records of an open transaction are on the topic; whether they came before the process ended.

        Those that stand in front of the offset `beyond` were left open by somebody else.
        """
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            stable, high = self.ends()
            if beyond <= stable < high:
                return True
            if process is not None and process.returncode is not None:
                return False
            time.sleep(0.02)
        raise TimeoutError(f"no transaction was opened on {self.topic} within {WITHIN_S:.0f} s")

    def await_resolved(self, end, process):
        """Wait until every transaction that was open in front of `end` is committed or aborted."""
        deadline = time.monotonic() + WITHIN_S
        while self.ends()[0] < end:
            assert process.returncode is None, process.tail(40)
            assert time.monotonic() < deadline, f"a transaction stays open on {self.topic}"
            time.sleep(0.1)

    def _offsets(self, isolation, end):
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "watch",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "fetch.wait.max.ms": 10,
            }
        )
        found = []
        try:
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            while True:
                for message in consumer.consume(5000, 0.5):
                    if message.error() is None:
                        if message.offset() < end:
                            found.append(message.offset())
                    elif message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                        return found
        finally:
            consumer.close()


@attrs.define(kw_only=True)
class Job:
    """A bucket, a topic, and processes that run `headrace run` on them."""

    harness: S3Harness
    bootstrap_servers: str
    folder: object
    name: str
    lines: list = attrs.field(factory=list)
    started: list = attrs.field(factory=list)
    watch: Watch = attrs.field(init=False)
    _place: dict = attrs.field(init=False)

    def __attrs_post_init__(self):
        self._place = dict(self.harness.prepare(self.name))
        self.watch = Watch(self.bootstrap_servers, f"{self.name}-records")
        create_topic(self.bootstrap_servers, self.watch.topic)

    def props(self, **changes):
        return {
            "name": self.name,
            "bootstrap.servers": self.bootstrap_servers,
            "topic": self.watch.topic,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.partitions": "2",
            "tasks.max": "2",
            **self._place,
            **{key.replace("__", "."): value for key, value in changes.items()},
        }

    def feed(self, objects, lines=10):
        """Put so many more objects there."""
        first = len(self.lines)
        for number in range(objects):
            piece = [b'{"line":%d}' % (first + number * lines + line) for line in range(lines)]
            self.harness.add(f"{first:06}-{number:04}", piece)
            self.lines += piece

    def readers(self):
        """The processes that wait for an object right now."""
        return at_near_ends(set(self.harness.faulty.waiting))

    def slow_down(self, seconds):
        """Have every object take so long to fetch, from now on."""
        self.harness.faulty.seconds = seconds

    def start(self, *arguments, env=None, **changes):
        """Start a run as a process of its own, which ends with the test."""
        number = len(self.started)
        file = self.folder / f"job-{number}.json"
        file.write_text(json.dumps(self.props(**changes)))
        process = GuardedProcess(
            argv=[sys.executable, "-P", "-m", "headrace", "run", file, *arguments],
            log=self.folder / f"run-{number}.log",
            env=env,
        )
        self.started.append(process)
        return process

    def keep_fed(self):
        """Put more objects there if only a few seconds' work may be left."""
        _, high = self.watch.ends()
        if len(self.lines) - high < 600:
            self.feed(100)

    def await_all(self, process):
        """Wait until as many records are committed as there are lines."""
        deadline = time.monotonic() + WITHIN_S
        while len(self.watch.committed()) < len(self.lines):
            assert process.returncode is None, process.tail(40)
            assert time.monotonic() < deadline, process.tail(40)
            time.sleep(0.2)

    def run_to_the_end(self, *arguments, **changes):
        """Run until there is nothing left, and show what it said if it failed."""
        process = self.start("--available-now", *arguments, **changes)
        assert process.wait() == 0, process.tail(40)

    def assert_each_line_once(self):
        assert sorted(self.watch.committed()) == sorted(self.lines)

    def close(self):
        for process in self.started:
            process.stop()


@pytest.fixture
def job(s3_endpoint, kafka_bootstrap_servers, tmp_path):
    harness = S3Harness(s3_endpoint)
    harness.faulty = SlowS3(s3_endpoint)
    with harness:
        made = Job(
            harness=harness,
            bootstrap_servers=kafka_bootstrap_servers,
            folder=tmp_path,
            name=f"job-{uuid.uuid4().hex[:10]}",
        )
        yield made
        made.close()


@pytest.fixture(scope="session")
def cluster():
    """One for all: two hosts with two slots each, so that what a killed executor leaves is taken up at once."""
    with SparkCluster(cores=2) as cluster:
        yield cluster


@pytest.fixture
def at_random():
    """Random moments, from a seed that a failing test shows in its log."""
    seed = random.SystemRandom().randrange(2**32)
    log.warning("seed %d", seed)
    return random.Random(seed)  # noqa: S311 - moments, not secrets
