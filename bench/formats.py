"""What a record costs from an object's bytes to JSON, beside a bare loop with the formats' own libraries and orjson.

No broker: sending costs both sides the same. CPU time of this process, the best of three.
"""

import csv
import gc
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import orjson
import pyarrow as pa
from pyarrow import parquet as pq

from headrace.converters.json import JsonConverter
from headrace.framework import registry
from headrace.testing.streams import SeekableBytes
from headrace.transformers.base import Position

COUNT = 200_000
SEND_US = 1.3
ROWS = [
    {
        "id": number,
        "name": f"customer {number % 977}",
        "amount": number % 100_000 / 7 + 0.5,
        "ok": number % 3 == 0,
        "note": None if number % 5 else "été",
        "at": 1_700_000_000_000 + number,
    }
    for number in range(COUNT)
]
KINDS = {"id": "long", "name": "string", "amount": "double", "ok": "boolean", "note": ["null", "string"], "at": "long"}
AVRO = {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in KINDS.items()]}


def avro() -> bytes:
    """The rows as Avro."""
    target = io.BytesIO()
    fastavro.writer(target, AVRO, ROWS, codec="deflate")
    return target.getvalue()


def parquet() -> bytes:
    """The rows as Parquet."""
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=50_000)
    return target.getvalue()


def jsonl() -> bytes:
    """The rows as lines of JSON."""
    return b"".join(orjson.dumps(row) + b"\n" for row in ROWS)


def json() -> bytes:
    """The rows as an array."""
    return orjson.dumps(ROWS)


def as_csv() -> bytes:
    """The rows as CSV."""
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, [*KINDS])
    writer.writeheader()
    writer.writerows(ROWS)
    return target.getvalue().encode()


def bare_parquet(data: bytes) -> Iterator[bytes]:
    """Arrow's rows, each written by orjson."""
    batches = pq.ParquetFile(io.BytesIO(data)).iter_batches(5000)
    return (orjson.dumps(row) for batch in batches for row in batch.to_pylist())


BARE: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Iterator[bytes]]]] = {
    "avro": (avro, lambda data: (orjson.dumps(row) for row in fastavro.reader(io.BytesIO(data)))),
    "parquet": (parquet, bare_parquet),
    "csv": (as_csv, lambda data: (orjson.dumps(row) for row in csv.DictReader(io.StringIO(data.decode(), newline="")))),
    "jsonl": (jsonl, lambda data: (orjson.dumps(orjson.loads(line)) for line in data.splitlines())),
    "json": (json, lambda data: (orjson.dumps(row) for row in orjson.loads(data))),
}


def headrace(form: str, data: bytes) -> int:
    """Headrace's transformer and converter, batch by batch."""
    transformer = registry.find("transformers", form)()
    transformer.configure({})
    converter = JsonConverter()
    converter.configure({}, is_key=False)
    count = 0
    for batch in transformer.batches(SeekableBytes(data), Position()):
        count += len(converter.convert_all("topic", batch.schema, batch.values))
        _ = batch.end
    return count


def cost_us(work: Callable[[], Any]) -> float:
    """CPU time for a record, in microseconds."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / COUNT * 1e6


def main() -> None:
    """Print one line for each format."""
    gc.collect()
    gc.freeze()
    print(f"{'format':10}{'bare':>10}{'headrace':>10}{'with ' + str(SEND_US) + ' for sending':>24}")
    for form, (write, bare) in BARE.items():
        data = write()
        limit, ours = cost_us(lambda: sum(map(len, bare(data)))), cost_us(lambda: headrace(form, data))  # noqa: B023 - called at once
        print(f"{form:10}{limit:8.2f}us{ours:8.2f}us{(limit + SEND_US) / (ours + SEND_US):20.0%} of it")


if __name__ == "__main__":
    main()
