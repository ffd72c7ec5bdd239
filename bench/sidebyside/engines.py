"""Ourselves, without Spark and on it, and the limit: each run has processes of its own."""

import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from sidebyside.data import Dataset
from sidebyside.figures import Measure
from sidebyside.world import BUCKET, World

__all__ = ["BARE", "LOCAL", "ON_FILES", "SPARK", "bare", "command", "headrace", "headrace_files", "properties"]

BARE, LOCAL, SPARK = "bare loop", "headrace local", "headrace spark"
ON_FILES = {LOCAL: f"{LOCAL}, files", SPARK: f"{SPARK}, files"}
"""Our engines where they read local files, as the peers do."""

ENGINES = {LOCAL: ["--engine", "local"], SPARK: ["--engine", "spark", "--master", "local[2]"]}
PROGRAMS = Path(__file__).with_name("programs")
TASKS = 2
PER_TRANSACTION = 100_000


def properties(world: World, topic: str, *, tasks: int = TASKS, source: str = "s3", **others: str) -> dict[str, str]:
    """A connector of its own with the default configuration but for `others` (dots written as underscores)."""
    return {
        "name": f"bench-{uuid.uuid4().hex[:8]}",
        "tasks.max": str(tasks),
        "topic": topic,
        "bootstrap.servers": world.bootstrap_servers,
        "connector.class": source,
        **({"aws.s3.bucket.name": BUCKET} if source == "s3" else {}),
        **{key.replace("_", "."): value for key, value in others.items()},
    }


def command(world: World, engine: str, props: Mapping[str, str], *options: str) -> list[str]:
    """The command line that runs a connector."""
    file = world.folder / f"{props['name']}.json"
    file.write_text(json.dumps(props))
    return [sys.executable, "-P", "-m", "headrace", "run", str(file), *ENGINES[engine], "--output", "json", *options]


def headrace(world: World, engine: str, data: Dataset, *, tasks: int = TASKS, **others: str) -> Measure:
    """One run of ours over all of the data."""
    topic = world.topic("headrace")
    props = properties(world, topic, tasks=tasks, input_format=data.form, aws_s3_prefix=f"{data.name}/", **others)
    props |= {**world.s3.properties, "aws.s3.endpoint": world.endpoint(data)}
    process = world.run(command(world, engine, props, "--available-now"))
    return world.measure(process, topic, data.records)


def headrace_files(world: World, engine: str, data: Dataset) -> Measure:
    """One run of ours over the same objects as local files, as Spark's own stream has them."""
    topic = world.topic("headrace")
    props = properties(world, topic, source="files", input_format=data.form, files_paths=str(world.files(data)))
    process = world.run(command(world, engine, props, "--available-now"))
    return world.measure(process, topic, data.records)


def bare(world: World, data: Dataset, *, tasks: int = TASKS) -> Measure:
    """One run of the bare loop over the same."""
    topic = world.topic("bare")
    given = {
        "bootstrap": world.bootstrap_servers,
        "endpoint": world.endpoint(data),
        "bucket": BUCKET,
        "keys": [f"{data.name}/{data.key(number)}" for number in range(data.objects)],
        "form": data.form,
        "topic": topic,
        "tasks": tasks,
        "per_transaction": PER_TRANSACTION,
    }
    file = world.folder / f"{topic}.json"
    file.write_text(json.dumps(given))
    process = world.run([sys.executable, "-P", PROGRAMS / "bare_loop.py", file])
    return world.measure(process, topic, data.records)
