"""`headrace demo`: what this is about, in a minute, with nothing to set up."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import attrs
import click

from headrace.testing.kafka import EmbeddedKafka
from headrace.testing.s3 import EmbeddedS3
from headrace.testing.topics import create_topic, end_of_topic, read_topic

__all__ = ["demo"]

OBJECTS, LINES = 400, 100
BUCKET, TOPIC = "demo", "demo"
KILLED_AFTER = OBJECTS * LINES // 4
STARTS_WITHIN_S = 180.0


@click.command()
@click.option("--engine", type=click.Choice(["spark", "local"]), default="spark", show_default=True)
def demo(*, engine: str) -> None:
    """The main job end to end, on embedded parts: S3 to Kafka, killed in the middle, and resumed.

    A real Kafka broker and an S3 server start on loopback. A run reads a few hundred objects and is killed with
    kill -9; a second run goes on where the first one's last transaction ended. Then the records are counted.
    """
    started = time.monotonic()
    click.echo("starting Apache Kafka (the first time its jars are fetched) and an S3 server, on loopback ...")
    with EmbeddedKafka() as kafka, EmbeddedS3() as s3, tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        click.echo(f"ready after {time.monotonic() - started:.1f} s")
        expected = _fill(s3)
        create_topic(kafka.bootstrap_servers, TOPIC, partitions=4)
        job = _Job(Path(folder), kafka.bootstrap_servers, s3.endpoint, engine)
        click.echo(f"first run: {OBJECTS} objects of {LINES} JSON lines to topic {TOPIC}, exactly once ...")
        sent = job.run_and_kill()
        click.echo(f"killed with kill -9, when about {sent} of {expected.total()} records had been sent")
        click.echo("second run: it resumes ...")
        job.run_to_the_end()
        found = Counter(message.value() for message in read_topic(kafka.bootstrap_servers, TOPIC))
    lost, doubled = (expected - found).total(), (found - expected).total()
    click.echo(f"{found.total()} records on the topic: {lost} lost, {doubled} doubled")
    if lost or doubled:
        raise click.ClickException("what is on the topic is not what is in the bucket, each line once")
    click.echo("next: headrace validate --help, headrace run --help, and the README's tour")


@attrs.frozen
class _Job:
    """The demo's connector, and the runs of it, each a process of its own."""

    folder: Path
    bootstrap_servers: str
    endpoint: str
    engine: str

    @property
    def config(self) -> Path:
        """Its configuration, as a user would write it."""
        path = self.folder / "demo.properties"
        path.write_text(
            f"""name=demo
connector.class=s3
tasks.max=2
topic={TOPIC}
bootstrap.servers={self.bootstrap_servers}
aws.s3.bucket.name={BUCKET}
aws.s3.endpoint={self.endpoint}
aws.access.key.id=demo
aws.secret.access.key=demo
input.format=jsonl
transaction.boundary.interval.ms=100
"""
        )
        return path

    def run_and_kill(self) -> int:
        """Start a run, kill it when about a quarter has been sent, and say how much had been."""
        running = self._start()
        deadline = time.monotonic() + STARTS_WITHIN_S
        try:
            while end_of_topic(self.bootstrap_servers, TOPIC) < KILLED_AFTER:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise click.ClickException("the first run ended before it could be killed: its words are above")
                time.sleep(0.1)
        finally:
            _kill(running)
        return end_of_topic(self.bootstrap_servers, TOPIC)

    def run_to_the_end(self) -> None:
        """Start a run and wait for it."""
        running = self._start()
        try:
            if running.wait() != 0:
                raise click.ClickException("the second run failed: its words are above")
        finally:
            _kill(running)

    def _start(self) -> "subprocess.Popen[bytes]":
        command: list[str | Path] = [sys.executable, "-P", "-m", "headrace", "run", self.config, "--available-now"]
        spark = ["--engine", self.engine, "--master", "local[2]"]
        return subprocess.Popen([*command, *spark], start_new_session=True)


def _kill(running: "subprocess.Popen[bytes]") -> None:
    """`kill -9` to the driver and to what it has started; nothing happens where all has ended."""
    try:
        os.killpg(running.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        running.wait()


def _fill(s3: EmbeddedS3) -> Counter[bytes | None]:
    """Put the objects into the bucket; every line of them."""
    client = s3.client()
    client.create_bucket(Bucket=BUCKET)
    lines: Counter[bytes | None] = Counter()
    for number in range(OBJECTS):
        mine = [_line(number, line) for line in range(LINES)]
        client.put_object(Bucket=BUCKET, Key=f"day/part-{number:04d}.jsonl", Body=_joined(mine))
        lines.update(mine)
    return lines


def _line(number: int, line: int) -> bytes:
    return json.dumps({"object": number, "line": line}).encode()


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
