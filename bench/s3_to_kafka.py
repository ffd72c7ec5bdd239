"""S3 to Kafka, exactly once, beside a bare loop on the same broker, object store and data.

20 objects of 50,000 JSON lines of 200 bytes, jsonl to json. The bare loop reads the same objects with boto3 and
produces their lines in transactions of the same size with confluent-kafka: no offsets, no recovery, one thread a
task. Printed are the ratios, which is what counts on a noisy machine, and what they are made of.

    python bench/s3_to_kafka.py [--objects 20] [--lines 50000] [--tasks 2] [--rounds 3] [--engines local,spark]
"""

import argparse
import json
import statistics
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import attrs
import psutil

from headrace.framework.run import Run, on_spark, on_threads
from headrace.testing import EmbeddedKafka, EmbeddedS3, create_topic

LINE_BYTES = 200
PER_TRANSACTION = 100_000
PARTITIONS = 4
MEGABYTE = 1024 * 1024


@attrs.frozen
class Figures:
    """One run: how fast, at what price in CPU seconds a million records, and the largest Python process."""

    records_per_s: float
    cpu_s_per_million: float
    largest_mb: float

    def __str__(self) -> str:
        return (
            f"{self.records_per_s:>9,.0f} records/s  {self.cpu_s_per_million:5.2f} CPU s/M  "
            f"{self.largest_mb:4.0f} MB largest Python process"
        )


@attrs.define
class Sampler:
    """Watches the Python processes below this one: CPU seconds in all, and the largest resident size."""

    largest: int = 0
    seconds: dict[int, float] = attrs.field(factory=dict)
    ended: threading.Event = attrs.field(factory=threading.Event)

    def look(self) -> None:
        """Take one sample."""
        own = psutil.Process()
        for process in [own, *own.children(recursive=True)]:
            try:
                if "python" not in process.name() or "moto" in " ".join(process.cmdline()):
                    continue
                times = process.cpu_times()
                self.seconds[process.pid] = times.user + times.system
                if process.pid != own.pid:
                    self.largest = max(self.largest, process.memory_info().rss)
            except psutil.Error:
                continue

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all of them, as far as they were seen."""
        return sum(self.seconds.values())


@contextmanager
def sampled() -> Iterator[Sampler]:
    """Sample every tenth of a second while the block runs."""
    sampler = Sampler()
    sampler.look()
    before = sampler.cpu_s

    def watch() -> None:
        while not sampler.ended.wait(0.1):
            sampler.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sampler
    finally:
        sampler.ended.set()
        thread.join()
        sampler.look()
        sampler.seconds[-1] = -before


def fill(s3: EmbeddedS3, objects: int, lines: int) -> None:
    """Put the data there."""
    client = s3.client()
    client.create_bucket(Bucket="bench")
    for number in range(objects):
        body = "".join(_line(number, line) for line in range(lines))
        client.put_object(Bucket="bench", Key=f"part-{number:05d}.jsonl", Body=body.encode())


def _line(number: int, line: int) -> str:
    start = json.dumps({"object": number, "line": line, "amount": line * 0.25, "ok": True, "name": "someone"})
    return f'{start[:-1]}, "pad": "{"x" * (LINE_BYTES - len(start) - 12)}"}}\n'


def bare_loop(kafka: EmbeddedKafka, s3: EmbeddedS3, topic: str, objects: int, tasks: int) -> Figures:
    """What the same work costs without any care."""
    from confluent_kafka import Producer  # noqa: PLC0415 - the peer's, not the benchmark's

    def produce(task: int) -> int:
        client, sent, pending = s3.client(), 0, 0
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "transactional.id": f"bare-{topic}-{task}",
                "queue.buffering.max.messages": 500_000,
                "linger.ms": 5,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(task, objects, tasks):
            body = client.get_object(Bucket="bench", Key=f"part-{number:05d}.jsonl")["Body"]
            for line in body.iter_lines(MEGABYTE):
                while True:
                    try:
                        producer.produce(topic, line)
                        break
                    except BufferError:
                        producer.poll(0.05)
                sent += 1
                pending += 1
                if pending == PER_TRANSACTION:
                    producer.commit_transaction(60)
                    producer.begin_transaction()
                    pending = 0
        producer.commit_transaction(60)
        return sent

    with sampled() as sampler:
        started = time.monotonic()
        with ThreadPoolExecutor(tasks) as pool:
            sent = sum(pool.map(produce, range(tasks)))
        took = time.monotonic() - started
    return Figures(sent / took, sampler.cpu_s / sent * 1e6, sampler.largest / MEGABYTE)


def headrace(engine: str, props: Mapping[str, str], expected: int) -> Figures:
    """One run of ours."""
    how = on_threads if engine == "local" else on_spark(master="local[2]")
    with sampled() as sampler:
        summary = Run(props=props, bounded=True, engine=how).go()
    if summary.records != expected:
        raise SystemExit(f"{expected} records were expected and {summary.records} came: {summary.error}")
    return Figures(summary.records_per_s, sampler.cpu_s / expected * 1e6, sampler.largest / MEGABYTE)


def properties(kafka: EmbeddedKafka, s3: EmbeddedS3, topic: str, tasks: int) -> dict[str, str]:
    """The configuration of one run."""
    return {
        "name": f"bench-{uuid.uuid4().hex[:8]}",
        "connector.class": "s3",
        "tasks.max": str(tasks),
        "topic": topic,
        "bootstrap.servers": kafka.bootstrap_servers,
        "aws.s3.bucket.name": "bench",
        "aws.s3.endpoint": s3.endpoint,
        "aws.access.key.id": "test",
        "aws.secret.access.key": "test",
        "input.format": "jsonl",
        "key.converter": "bytes",
        "batch.max.ms": "600000",
        "transaction.boundary.max.records": str(PER_TRANSACTION),
    }


def main(arguments: Any = None) -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=20)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="local,spark")
    options = parser.parse_args(arguments)
    ratios: dict[str, list[float]] = {}
    with EmbeddedKafka(heap="512m") as kafka, EmbeddedS3() as s3:
        fill(s3, options.objects, options.lines)
        for number in range(options.rounds):
            topic = f"bench-{number}"
            create_topic(kafka.bootstrap_servers, topic, partitions=PARTITIONS)
            bare = bare_loop(kafka, s3, topic, options.objects, options.tasks)
            print(f"round {number}  bare loop  {bare}")
            for engine in options.engines.split(","):
                ours = headrace(engine, properties(kafka, s3, topic, options.tasks), options.objects * options.lines)
                ratio = ours.records_per_s / bare.records_per_s
                ratios.setdefault(engine, []).append(ratio)
                print(f"round {number}  {engine:9}  {ours}  {ratio:.2f} of the bare loop")
    for engine, found in ratios.items():
        print(f"{engine}: {statistics.median(found):.2f} of the bare loop (median of {len(found)})")


if __name__ == "__main__":
    main()
