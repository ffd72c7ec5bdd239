"""The same rows in every format that is measured."""

import csv as comma_separated
import io
from collections.abc import Callable, Iterator, Mapping

import fastavro
import orjson
import pyarrow as pa
from pyarrow import parquet as pq

__all__ = ["ENCODERS"]

KINDS = {"id": "long", "n": "long", "amount": "double", "ok": "boolean", "name": "string", "pad": "string"}
AVRO = {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in KINDS.items()]}


def jsonl(values: Iterator[bytes]) -> bytes:
    """A line each."""
    return b"".join(value + b"\n" for value in values)


def json(values: Iterator[bytes]) -> bytes:
    """The elements of an array."""
    return b"[" + b",\n".join(values) + b"]"


def csv(values: Iterator[bytes]) -> bytes:
    """Comma-separated, with a header."""
    target = io.StringIO(newline="")
    writer = comma_separated.DictWriter(target, [*KINDS])
    writer.writeheader()
    writer.writerows(map(orjson.loads, values))
    return target.getvalue().encode()


def avro(values: Iterator[bytes]) -> bytes:
    """An Avro file, its blocks deflated."""
    target = io.BytesIO()
    fastavro.writer(target, AVRO, map(orjson.loads, values), codec="deflate")
    return target.getvalue()


def parquet(values: Iterator[bytes]) -> bytes:
    """A Parquet file of row groups of 25,000."""
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([*map(orjson.loads, values)]), target, row_group_size=25_000)
    return target.getvalue()


ENCODERS: Mapping[str, Callable[[Iterator[bytes]], bytes]] = {
    "jsonl": jsonl,
    "json": json,
    "csv": csv,
    "avro": avro,
    "parquet": parquet,
}
