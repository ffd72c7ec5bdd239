"""From an object, or an entry of a stream, that is written to its record that can be read, in a continuous run."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import attrs

from headrace.testing import EmbeddedRedis
from sidebyside.data import SEED
from sidebyside.engines import LOCAL, SPARK, command, properties
from sidebyside.figures import Row, percentile
from sidebyside.scenario import Found, Scenario
from sidebyside.topic import PARTITIONS
from sidebyside.world import BUCKET, World

__all__ = ["SCENARIOS"]

FIRST_WITHIN_S = 180.0
EACH_WITHIN_S = 60.0
MEAN_PAUSE_S = 0.7
TUNED = {"discovery_interval_ms": "100", "transaction_boundary_interval_ms": "100", "batch_max_ms": "2000"}
Write = Callable[[int], object]


@attrs.define
class Reader:
    """Reads a topic, read_committed, and notes when each number came."""

    bootstrap_servers: str
    topic: str
    came: dict[int, float] = attrs.field(factory=dict)
    _new: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _ended: threading.Event = attrs.field(factory=threading.Event, init=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read on a thread of its own while the block runs."""
        thread = threading.Thread(target=self._read, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def wait_for(self, number: int, within_s: float) -> bool:
        """Whether the number has come within that time."""
        with self._new:
            return self._new.wait_for(lambda: number in self.came, within_s)

    def _read(self) -> None:
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - heavy, and not needed until here

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "bench-latency",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                with self._new:
                    self.came[int((message.value() or b"").split(b":")[1].rstrip(b"}"))] = time.monotonic()
                    self._new.notify_all()
        consumer.close()


def latencies(world: World, engine: str, props: Mapping[str, str], write: Write, count: int) -> list[float]:
    """Milliseconds for each of `count` writes, at seeded distances, after one that shows that the run is there."""
    reader = Reader(world.bootstrap_servers, props["topic"])
    pauses = random.Random(SEED)  # noqa: S311 - distances
    written: dict[int, float] = {}
    with reader.reading(), world.running(command(world, engine, props)):
        write(0)
        if not reader.wait_for(0, FIRST_WITHIN_S):
            raise SystemExit(f"{engine}: nothing came within {FIRST_WITHIN_S:.0f} s of its start")
        for number in range(1, count + 1):
            time.sleep(MEAN_PAUSE_S * (0.5 + pauses.random()))
            write(number)
            written[number] = time.monotonic()
        for number in written:
            if not reader.wait_for(number, EACH_WITHIN_S):
                raise SystemExit(f"{engine}: write {number} was not readable within {EACH_WITHIN_S:.0f} s")
    return [(reader.came[number] - at) * 1000 for number, at in written.items()]


def measured(world: World) -> Found:
    """S3 with the default configuration and tuned, and Redis, on both engines."""
    engines = world.by_size(quick=(LOCAL,), default=(LOCAL, SPARK))
    cases = world.by_size(quick=(_s3, _redis), default=(_s3, _s3_tuned, _redis, _redis_tuned))
    count = world.by_size(quick=3, default=40, full=200)
    rows = []
    for engine in engines:
        for case in cases:
            name, found = case(world, engine, count)
            figures = {"p50_ms": [percentile(found, 0.5)], "p99_ms": [percentile(found, 0.99)]}
            world.say(f"  {engine:25} {name:20} p50 {figures['p50_ms'][0]:6.0f} ms  p99 {figures['p99_ms'][0]:6.0f} ms")
            rows.append(Row(engine=engine, case=name, figures=figures))
    return Found(rows=rows)


def _s3(world: World, engine: str, count: int, *, name: str = "S3, default", **others: str) -> tuple[str, list[float]]:
    topic, client = world.topic("latency"), world.s3.client()

    def write(number: int) -> None:
        client.put_object(Bucket=BUCKET, Key=f"{topic}/{number:06d}.jsonl", Body=b'{"n":%d}\n' % number)

    props = properties(world, topic, tasks=1, input_format="jsonl", aws_s3_prefix=f"{topic}/", **others)
    return name, latencies(world, engine, props | world.s3.properties, write, count)


def _s3_tuned(world: World, engine: str, count: int) -> tuple[str, list[float]]:
    return _s3(world, engine, count, name="S3, tuned", **TUNED)


def _redis(
    world: World, engine: str, count: int, *, name: str = "Redis, default", **others: str
) -> tuple[str, list[float]]:
    topic = world.topic("latency")
    with EmbeddedRedis() as redis:
        client = redis.client()
        props = {
            **properties(world, topic, tasks=1, source="redis", **others),
            "redis.url": redis.url,
            "redis.streams": "bench",
            "redis.value.field": "value",
        }
        found = latencies(world, engine, props, lambda number: client.xadd("bench", {"value": f"n:{number}"}), count)
        client.close()
    return name, found


def _redis_tuned(world: World, engine: str, count: int) -> tuple[str, list[float]]:
    return _redis(world, engine, count, name="Redis, tuned", **TUNED)


SCENARIOS = [
    Scenario(
        name="latency",
        about="one object or entry after the other, about every 0.7 s, in a continuous run: from the answer to the "
        "write to the record in the hands of a read_committed consumer",
        run=measured,
    )
]
