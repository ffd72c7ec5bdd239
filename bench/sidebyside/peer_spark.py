"""Spark's own way: `readStream.text` into its Kafka sink, in an environment of its own.

Of the 4.x releases this is the one whose Kafka package Maven Central carries with all that it depends on. From S3 it
reads with Hadoop's S3A and the AWS client, of which only what S3A uses is fetched: all of it is half a gigabyte.
"""

import json
import subprocess
import sys
from pathlib import Path

from headrace.framework.cache import cache_folder, locked
from sidebyside.data import Dataset
from sidebyside.engines import PROGRAMS
from sidebyside.figures import Measure
from sidebyside.world import BUCKET, World

__all__ = ["FILES_WARM", "WARM", "spark_text", "spark_text_files"]

COLD, WARM = "Spark text, cold", "Spark text, warm"
FILES_COLD, FILES_WARM = "Spark text, files, cold", "Spark text, files, warm"
VERSION = "4.0.0"
HADOOP = "3.4.1"
AWS = "2.25.53"
KAFKA_PACKAGES = [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"]
S3_PACKAGES = [
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{name}:{AWS}" for name in ("s3", "s3-transfer-manager", "sts")),
]
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def environment() -> Path:
    """The Python of a virtual environment with that Spark, made once per user."""
    folder = cache_folder() / "bench"
    folder.mkdir(exist_ok=True)
    home = folder / f"pyspark-{VERSION}"
    python, made = home / "bin" / "python", home / ".made"
    with locked(folder / ".lock"):
        if not made.exists():
            print(f"making an environment with pyspark {VERSION} (half a gigabyte, once)", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            subprocess.run([*pip, f"pyspark=={VERSION}"], check=True)
            made.touch()
    return python


def spark_text(world: World, data: Dataset) -> dict[str, Measure]:
    """Two queries over the objects in one session: the first, which warms it, and the second."""
    settings = {
        "spark.jars.packages": ",".join([*KAFKA_PACKAGES, *S3_PACKAGES]),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": world.endpoint(data),
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "nobody",
        "spark.hadoop.fs.s3a.secret.key": "asks",
    }
    return _measured(world, data, f"s3a://{BUCKET}/{data.name}/", settings, (COLD, WARM))


def spark_text_files(world: World, data: Dataset) -> dict[str, Measure]:
    """The same over the same objects as local files."""
    settings = {"spark.jars.packages": ",".join(KAFKA_PACKAGES)}
    return _measured(world, data, world.files(data), settings, (FILES_COLD, FILES_WARM))


def _measured(
    world: World, data: Dataset, place: str | Path, settings: dict[str, str], names: tuple[str, str]
) -> dict[str, Measure]:
    python = environment()
    topics = [world.topic("spark-text") for _ in names]
    ivy = {"spark.jars.ivy": str(cache_folder() / "bench" / "ivy")}
    process = world.run(
        [
            python,
            PROGRAMS / "spark_text.py",
            json.dumps(SETTINGS | ivy | settings),
            world.bootstrap_servers,
            place,
            world.folder / f"checkpoints-{topics[0]}",
            *topics,
        ],
        env={"PYSPARK_PYTHON": str(python)},
    )
    marks = {str(event["topic"]): (event["started"], event["ended"]) for event in process.events()}
    return {
        name: world.measure(process, topic, data.records, started=marks[topic][0], ended=marks[topic][1])
        for name, topic in zip(names, topics, strict=True)
    }
