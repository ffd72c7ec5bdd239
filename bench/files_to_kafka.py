"""Files to Kafka, exactly once, beside S3 to Kafka on the same broker and the same lines.

20 files of 50,000 JSON lines of 200 bytes, jsonl to json; the objects are the files' very bytes. Files are to be no
slower than objects. CPU is that of the Python processes without the object store's own, in seconds for a million
records: on a noisy machine it says more than the rate.

    python bench/files_to_kafka.py [--files 20] [--lines 50000] [--tasks 2] [--rounds 3] [--engines local,spark]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # run with -P, a program does not see its neighbours
from s3_to_kafka import PARTITIONS, fill, headrace, properties

from headrace.testing import EmbeddedKafka, EmbeddedS3, create_topic

LIMIT = 1.0


def copy(s3: EmbeddedS3, folder: Path) -> None:
    """Put the objects there as files."""
    client = s3.client()
    for item in client.list_objects_v2(Bucket="bench")["Contents"]:
        (folder / item["Key"]).write_bytes(client.get_object(Bucket="bench", Key=item["Key"])["Body"].read())


def as_files(props: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The configuration of the same run over files."""
    kept = {key: value for key, value in props.items() if not key.startswith("aws.")}
    return {**kept, "name": f"{props['name']}-files", "connector.class": "files", "files.paths": str(folder)}


def main(arguments: Any = None) -> None:
    """Run the rounds, objects and files in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="local,spark")
    options = parser.parse_args(arguments)
    ratios: dict[str, list[float]] = {}
    prices: dict[str, list[float]] = {}
    with (
        EmbeddedKafka(heap="512m") as kafka,
        EmbeddedS3() as s3,
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as place,
    ):
        folder = Path(place)
        fill(s3, options.files, options.lines)
        copy(s3, folder)
        for number in range(options.rounds):
            for engine in options.engines.split(","):
                topic = f"bench-{engine}-{number}"
                create_topic(kafka.bootstrap_servers, topic, partitions=PARTITIONS)
                props = properties(kafka, s3, topic, options.tasks)
                objects = headrace(engine, props, options.files * options.lines)
                files = headrace(engine, as_files(props, folder), options.files * options.lines)
                ratios.setdefault(engine, []).append(files.records_per_s / objects.records_per_s)
                prices.setdefault(engine, []).append(files.cpu_s_per_million / objects.cpu_s_per_million)
                print(f"round {number}  {engine:9} s3     {objects}")
                print(f"round {number}  {engine:9} files  {files}  {ratios[engine][-1]:.2f} of s3", flush=True)
    for engine, found in ratios.items():
        rate, price = statistics.median(found), statistics.median(prices[engine])
        print(f"{engine}: files at {rate:.2f} of the rate of s3, {price:.2f} of its CPU (medians of {len(found)})")
    print(f"the limit is a rate of {LIMIT}")


if __name__ == "__main__":
    main()
