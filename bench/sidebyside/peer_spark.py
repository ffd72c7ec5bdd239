"""Spark's own way: `readStream.text` into its Kafka sink, in an environment of its own.

Of the 4.x releases this is the one whose Kafka package Maven Central carries with all that it depends on. It reads
local files, which is to its advantage: no S3 client, no server that takes CPU.
"""

import subprocess
import sys
from pathlib import Path

from headrace.framework.cache import cache_folder, locked
from sidebyside.data import Dataset
from sidebyside.engines import PROGRAMS
from sidebyside.figures import Measure
from sidebyside.world import World

__all__ = ["COLD", "WARM", "environment", "spark_text"]

COLD, WARM = "Spark text, cold", "Spark text, warm"
VERSION = "4.0.0"
PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"


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


def spark_text(world: World, data: Dataset) -> tuple[Measure, Measure]:
    """Two queries over the same files in one session: the first, which warms it, and the second."""
    python, files = environment(), world.files(data)
    topics = [world.topic("spark-text") for _ in (COLD, WARM)]
    process = world.run(
        [
            python,
            PROGRAMS / "spark_text.py",
            PACKAGE,
            cache_folder() / "bench" / "ivy",
            world.bootstrap_servers,
            files,
            world.folder / f"checkpoints-{topics[0]}",
            *topics,
        ],
        env={"PYSPARK_PYTHON": str(python)},
    )
    marks = {str(event["topic"]): (event["started"], event["ended"]) for event in process.events()}
    cold, warm = (
        world.measure(process, topic, data.records, started=marks[topic][0], ended=marks[topic][1]) for topic in topics
    )
    return cold, warm
