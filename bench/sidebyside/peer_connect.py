"""Kafka Connect's standalone worker with its own FileStreamSource, from Maven Central's jars."""

import os
import time
from pathlib import Path

from headrace.framework.java import find_java
from headrace.testing import free_port
from headrace.testing.jars import fetch_jars, read_jar_list
from headrace.testing.kafka import JAR_LIST
from headrace.testing.topics import end_of_topic
from sidebyside.data import Dataset
from sidebyside.figures import Measure
from sidebyside.world import World

__all__ = ["CONNECT", "file_stream"]

CONNECT = "Connect FileStreamSource"
JARS = Path(__file__).with_name("connect-jars.txt")
ASK_EVERY_S = 0.25
# Connect's own start script gives it this much.
HEAP = ("-Xms256m", "-Xmx2g")
MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


def file_stream(world: World, data: Dataset) -> Measure:
    """One run over the same lines in one file, which is what it reads; it never ends, so it is ended."""
    topic = world.topic("connect")
    jars = [
        *fetch_jars(read_jar_list(JAR_LIST), name="kafka"),
        *fetch_jars(read_jar_list(JARS), name="connect-standalone"),
    ]
    worker = _properties(
        world.folder / f"{topic}-worker.properties",
        {
            "bootstrap.servers": world.bootstrap_servers,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename": str(world.folder / f"{topic}.offsets"),
            "listeners": f"http://127.0.0.1:{free_port()}",
        },
    )
    connector = _properties(
        world.folder / f"{topic}-connector.properties",
        {
            "name": topic,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(_as_one_file(world, data)),
            "topic": topic,
            "batch.size": "2000",
        },
    )
    java: list[str | Path] = [find_java().executable, *HEAP, "-cp", os.pathsep.join(map(str, jars))]
    asked = there = 0.0

    def all_there() -> bool:
        nonlocal asked, there
        if time.monotonic() - asked < ASK_EVERY_S:
            return False
        asked = time.monotonic()
        there = time.time()
        return end_of_topic(world.bootstrap_servers, topic) >= data.records

    process = world.run([*java, MAIN, worker, connector], until=all_there)
    return world.measure(process, topic, data.records, ended=there)


def _properties(file: Path, settings: dict[str, str]) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


def _as_one_file(world: World, data: Dataset) -> Path:
    file = world.folder / f"{data.name}.{data.form}"
    if not file.exists():
        with file.open("wb") as target:
            for number in range(data.objects):
                target.write(data.body(number))
    return file
