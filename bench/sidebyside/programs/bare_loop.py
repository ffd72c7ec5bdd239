"""The limit: the same objects, read with boto3 and produced in transactions with confluent-kafka, and nothing else.

No offsets, no recovery, no keys, one process a task. Given one JSON document: what `engines.bare` puts there.
"""

import csv as comma_separated
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable
from multiprocessing.synchronize import Barrier
from typing import Any

import boto3
import orjson
from botocore.config import Config
from confluent_kafka import Producer


def lines(body: Any) -> Iterable[bytes]:
    """The lines, as they are."""
    return (line for line in body.read().split(b"\n") if line)


def parsed(body: Any) -> Iterable[bytes]:
    """The elements of an array, each parsed and written again."""
    return (orjson.dumps(value) for value in orjson.loads(body.read()))


def csv(body: Any) -> Iterable[bytes]:
    """The rows of a CSV file, by the names of its header."""
    return map(orjson.dumps, comma_separated.DictReader(io.StringIO(body.read().decode(), newline="")))


def avro(body: Any) -> Iterable[bytes]:
    """The rows of an Avro file."""
    import fastavro  # noqa: PLC0415 - for this format only

    return (orjson.dumps(row) for row in fastavro.reader(io.BytesIO(body.read())))


def parquet(body: Any) -> Iterable[bytes]:
    """The rows of a Parquet file."""
    from pyarrow import parquet as pq  # noqa: PLC0415 - for this format only

    batches = pq.ParquetFile(io.BytesIO(body.read())).iter_batches(5000)
    return (orjson.dumps(row) for batch in batches for row in batch.to_pylist())


FORMS: dict[str, Callable[[Any], Iterable[bytes]]] = {
    "jsonl": lines,
    "json": parsed,
    "csv": csv,
    "avro": avro,
    "parquet": parquet,
}


def produce(given: dict[str, Any], task: int, together: Barrier) -> None:
    """One task: every so manieth object. Nobody begins before all can: the library may look for a coordinator twice."""
    client = boto3.client(
        "s3",
        endpoint_url=given["endpoint"],
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",  # noqa: S106 - the server asks nobody
        config=Config(proxies={}),
    )
    producer = Producer(
        {
            "bootstrap.servers": given["bootstrap"],
            "transactional.id": f"bare-{given['topic']}-{task}",
            "queue.buffering.max.messages": 500_000,
            "linger.ms": 5,
        }
    )
    producer.init_transactions(60)
    together.wait(60)
    producer.begin_transaction()
    pending, topic = 0, given["topic"]
    for key in given["keys"][task :: given["tasks"]]:
        for value in FORMS[given["form"]](client.get_object(Bucket=given["bucket"], Key=key)["Body"]):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.05)
            pending += 1
            if pending == given["per_transaction"]:
                producer.commit_transaction(60)
                producer.begin_transaction()
                pending = 0
    producer.commit_transaction(60)


def main() -> None:
    """Run the tasks."""
    given = json.loads(sys.stdin.read() if sys.argv[1] == "-" else open(sys.argv[1]).read())  # noqa: PTH123, SIM115
    # Forked, so that what is imported here is imported once.
    context = multiprocessing.get_context("fork")
    together = context.Barrier(given["tasks"])
    processes = [context.Process(target=produce, args=(given, task, together)) for task in range(given["tasks"])]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
