"""A bucket of a million objects: listed and planned within bounds, and known when a run starts.

The bucket is a listing server of our own, which needs no objects to list them. Printed are

- what it costs to list and plan a million objects that were never seen: seconds, requests, and the largest resident
  size of the planning process (limit: 1 GB);
- with all of them finished, each of its entries written and rolled up: the roll-up's bytes, and what the topic takes on
  the broker's disk once its cleaner has run (limit: 8 MB). The broker's cleaner looks around more often than by
  default, and once all is written the topic's times are made short, for nobody waits an hour here; everything else is
  as a run has it;
- how long a run takes from its start to its first record, which is of an object that is new: where the last run left
  the key up to which it had listed, as runs do (limit: 5 s), and where nobody did, which means a listing of all.

It ends with exit code 1 if a limit is missed, once all has been measured.

    python bench/large_bucket.py [--objects 1000000] [--engine local|spark]
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import psutil
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headrace.framework.config import SourceCommonConfig
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.cleaning import TURNS_AFTER_S
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey
from headrace.testing import EmbeddedKafka, create_topic
from headrace.testing.topics import await_records

MEGABYTE = 1024 * 1024
BUCKET = "million"
LINE = b'{"a":1}\n'
PAGE = 1000
KEY_DIGITS = 9
AT_ONCE = 50_000
IN_A_TRANSACTION = 5_000
QUICK_CLEANER = {"log.cleaner.backoff.ms": "1000", "log.segment.delete.delay.ms": "1000"}
STEADY_S = 8.0
LARGEST_MB = 1024
DISK_MB = 8
FIRST_RECORD_S = 5


@attrs.define
class Limits:
    """What has been measured against a limit, and missed it."""

    missed: list[str] = attrs.field(factory=list)

    def hold(self, what: str, measured: float, limit: float) -> None:
        """Note it if `measured` is not below the limit."""
        if measured >= limit:
            self.missed.append(f"{what}: {measured:.1f}, and the limit is {limit:g}")


def key_of(number: int) -> str:
    """The name of an object; the order of the names is that of the numbers."""
    return f"data/2026/part-{number:0{KEY_DIGITS}d}.jsonl"


def etag_of(number: int) -> str:
    """Its etag."""
    return hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()


class Listing(BaseHTTPRequestHandler):
    """Answers for `count` objects of one line each, made up as they are asked for."""

    protocol_version = "HTTP/1.1"
    count: Any

    def do_GET(self) -> None:
        """A page of the listing, or an object."""
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "list-type" in query:
            self._answer(self._page(query))
        else:
            number = int(url.path.rpartition("-")[2][:KEY_DIGITS])
            self._answer(LINE, etag=etag_of(number))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the standard library
        """Say nothing."""

    def _page(self, query: dict[str, list[str]]) -> bytes:
        start = query.get("continuation-token", query.get("start-after"))
        first = int(start[0].rpartition("-")[2][:KEY_DIGITS]) + 1 if start else 0
        end = min(self.count.value, first + PAGE)
        items = "".join(
            f"<Contents><Key>{key_of(number)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{etag_of(number)}&quot;</ETag><Size>{len(LINE)}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for number in range(first, end)
        )
        more = end < self.count.value
        token = f"<NextContinuationToken>{key_of(end - 1)}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><KeyCount>{end - first}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
        ).encode()

    def _answer(self, body: bytes, *, etag: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if etag:
            self.send_header("ETag", f'"{etag}"')
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Says nothing of clients that hang up: those that are killed do."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


def serve(port: Any, count: Any) -> None:
    """Serve until the process is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Listing.count = count
    server = Server(("127.0.0.1", 0), Listing)
    port.put(server.server_address[1])
    server.serve_forever()


@contextmanager
def bucket(objects: int) -> Iterator[tuple[str, Any]]:
    """The server, as a process: its endpoint, and how many objects it has, which may grow."""
    port, count = multiprocessing.Queue(), multiprocessing.Value("i", objects)
    process = multiprocessing.Process(target=serve, args=(port, count), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{port.get()}", count
    finally:
        process.terminate()
        process.join()


def props_of(kafka: EmbeddedKafka, endpoint: str) -> dict[str, str]:
    """A connector of its own."""
    name = f"million-{uuid.uuid4().hex[:8]}"
    return {
        "name": name,
        "connector.class": "s3",
        "tasks.max": "2",
        "topic": f"{name}-records",
        "bootstrap.servers": kafka.bootstrap_servers,
        "offset.storage.topic": f"{name}-offsets",
        "input.format": "jsonl",
        "aws.s3.bucket.name": BUCKET,
        "aws.s3.endpoint": endpoint,
        "aws.s3.region": "us-east-1",
        "aws.access.key.id": "any",
        "aws.secret.access.key": "any",
    }


@contextmanager
def headrace(props: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command line, as a process, its configuration in a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "connector.json"
        file.write_text(json.dumps(props))
        with (Path(folder) / "out").open("wb") as out:
            command = [sys.executable, "-P", "-m", "headrace", arguments[0], str(file), *arguments[1:]]
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            try:
                yield process
            finally:
                process.terminate()
                process.wait()
            if process.returncode not in (0, 143):
                sys.exit((Path(folder) / "out").read_text()[-2000:])


def largest_mb(process: subprocess.Popen[bytes]) -> float:
    """The largest resident size of the process, sampled until it ends."""
    largest, seen = 0, psutil.Process(process.pid)
    while process.poll() is None:
        try:
            largest = max(largest, seen.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.1)
    return largest / MEGABYTE


def plan(kafka: EmbeddedKafka, endpoint: str, limits: Limits) -> None:
    """List and plan everything, none of it ever seen."""
    started = time.monotonic()
    with headrace(props_of(kafka, endpoint), "plan", "--output", "json", "--first", "0") as process:
        size = largest_mb(process)
    print(f"  headrace plan:        {time.monotonic() - started:6.1f} s, {size:5.0f} MB at most (limit {LARGEST_MB})")
    limits.hold("MB of headrace plan", size, LARGEST_MB)


def run_everything(kafka: EmbeddedKafka, endpoint: str, seconds: float, limits: Limits) -> None:
    """Begin to read everything: the driver lists ahead of its readers, and not without bounds."""
    with headrace(props_of(kafka, endpoint), "run", "--engine", "local") as process:
        threading.Timer(seconds, process.terminate).start()
        size = largest_mb(process)
    print(f"  a run of {seconds:.0f} s:         driver and readers {size:5.0f} MB at most (limit {LARGEST_MB})")
    limits.hold("MB of a run", size, LARGEST_MB)


def finish_all(settings: KafkaSettings, objects: int) -> None:
    """Finish all objects, as runs do: entries in the transactions of tasks, and now and then a roll-up."""
    claim = Claim.take(settings, partitions=ensure_offsets_topic(settings), tasks=2)
    for start in range(0, objects, AT_ONCE):
        numbers = range(start, min(objects, start + AT_ONCE))
        write_entries(settings, start // AT_ONCE % 2, numbers)
        claim.log.read_to_high_watermark()
        claim.roll_up(
            {
                OffsetManagerKey({"bucket": BUCKET, "objectKey": key_of(number)}): f"{etag_of(number)}:{len(LINE)}"
                for number in numbers
            }
        )
    size = sum(len(value) for value in claim.view.rollup.shards.values())
    print(f"  rolled up:            {size / 1e6:6.2f} MB in {len(claim.view.rollup.shards)} records")
    claim.stopped()
    claim.close()


def write_entries(settings: KafkaSettings, task_id: int, numbers: range) -> None:
    """The entries of finished objects, in transactions of a task."""
    producer, view = TransactionalProducer(settings, task_id), KafkaOffsetView(settings.connector)
    producer.init()
    for start in range(0, len(numbers), IN_A_TRANSACTION):
        offsets = {
            OffsetManagerKey({"bucket": BUCKET, "objectKey": key_of(number)}): {
                "recordCount": 1,
                "etag": etag_of(number),
                "size": len(LINE),
                "lastModified": 1767225600000,
                "byteOffset": len(LINE),
                "complete": True,
            }
            for number in numbers[start : start + IN_A_TRANSACTION]
        }
        for key, value in view.records_for(offsets):
            producer.write(settings.offsets_topic, key, [value])
        producer.commit()
    producer.close()


def empty_topic(kafka: EmbeddedKafka, settings: KafkaSettings) -> int:
    """What a topic takes for being there: six files and more for each of its partitions, a block of the disk each."""
    other = attrs.evolve(settings, offsets_topic=f"{settings.offsets_topic}-empty")
    claim = Claim.take(other, partitions=ensure_offsets_topic(other), tasks=2)
    let_time_pass(other)
    for _ in TURNS_AFTER_S:
        claim.turn_segments()
        await_steady(kafka, other.offsets_topic)
    claim.close()
    return kafka.bytes_on_disk(other.offsets_topic)


def let_the_cleaner_run(kafka: EmbeddedKafka, settings: KafkaSettings, limits: Limits) -> None:
    """Let the topic's times be over, and do what a driver does then."""
    topic = settings.offsets_topic
    print(f"  before cleaning:      {kafka.bytes_on_disk(topic) / 1e6:6.2f} MB on the broker's disk")
    let_time_pass(settings)
    claim = Claim.take(settings, partitions=settings.offsets_partitions, tasks=2)
    for _ in TURNS_AFTER_S:
        claim.turn_segments()
        await_steady(kafka, topic)
    claim.stopped()
    claim.close()
    size, empty = kafka.bytes_on_disk(topic), empty_topic(kafka, settings)
    print(f"  after cleaning:       {(size - empty) / 1e6:6.2f} MB on the broker's disk (limit {DISK_MB})")
    limits.hold("MB on the broker's disk", (size - empty) / 1e6, DISK_MB)
    print(f"                        and {empty / 1e6:.2f} MB that a topic takes which has no objects")


def let_time_pass(settings: KafkaSettings) -> None:
    """Make the topic's times short."""
    entries = [
        ConfigEntry(name, "1", incremental_operation=AlterConfigOpType.SET)
        for name in ("segment.ms", "max.compaction.lag.ms", "delete.retention.ms")
    ]
    wanted = ConfigResource(ResourceType.TOPIC, settings.offsets_topic, incremental_configs=entries)
    admin = AdminClient(settings.admin_config())
    admin.incremental_alter_configs([wanted])[wanted].result(30)


def await_steady(kafka: EmbeddedKafka, topic: str) -> None:
    """Wait until the topic has not become smaller for a while."""
    smallest, since = kafka.bytes_on_disk(topic), time.monotonic()
    while time.monotonic() - since < STEADY_S:
        time.sleep(0.5)
        size = kafka.bytes_on_disk(topic)
        if size < smallest:
            smallest, since = size, time.monotonic()


def first_record(kafka: EmbeddedKafka, endpoint: str, count: Any, engine: str, limits: Limits) -> None:
    """A start beside a million finished objects; a new one comes, and is to be read."""
    props = props_of(kafka, endpoint)
    settings = KafkaSettings.of(SourceCommonConfig.from_props(props))
    finish_all(settings, count.value)
    let_the_cleaner_run(kafka, settings, limits)
    create_topic(kafka.bootstrap_servers, props["topic"])
    steps = (("after a listing of all", None), ("from then on", FIRST_RECORD_S), ("and again", FIRST_RECORD_S))
    for seen, (step, limit_s) in enumerate(steps, start=1):
        count.value += 1
        started = time.monotonic()
        with headrace(props, "run", "--engine", engine) as process:
            await_records(kafka.bootstrap_servers, props["topic"], seen, within_s=600)
            took = time.monotonic() - started
            process.send_signal(signal.SIGTERM)
            process.wait()
        limit = "no limit" if limit_s is None else f"limit {limit_s}"
        print(f"  first record, {step}: {took:5.1f} s after the process began ({limit})")
        if limit_s is not None:
            limits.hold(f"seconds to the first record, {step}", took, limit_s)


def main() -> None:
    """Run it; what misses its limit is said once more at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--engine", default="local")
    chosen = parser.parse_args()
    os.environ["NO_PROXY"] = "127.0.0.1"
    limits = Limits()
    with EmbeddedKafka(properties=QUICK_CLEANER) as kafka, bucket(chosen.objects) as (endpoint, count):
        print(f"{chosen.objects:,} objects")
        plan(kafka, endpoint, limits)
        run_everything(kafka, endpoint, 60, limits)
        first_record(kafka, endpoint, count, chosen.engine, limits)
    if limits.missed:
        sys.exit("\n".join(["missed:", *limits.missed]))


if __name__ == "__main__":
    main()
