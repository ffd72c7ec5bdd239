"""However large an object is: what it takes in memory is that of a piece of it."""

import io
import json
import tracemalloc
from itertools import islice, repeat

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework import registry
from headrace.testing.streams import SeekableBytes
from headrace.transformers.base import Position

TOTAL = 100_000_000
ROW = {"n": 1, "s": "x" * 4000}


class Endless:
    """A beginning, then a piece again and again until there were so many bytes, then an end."""

    def __init__(self, first, piece, last=b""):
        self.pieces = iter([first, *repeat(piece, TOTAL // len(piece)), last])
        self.held = b""

    def read(self, size):
        while not self.held:
            piece = next(self.pieces, None)
            if piece is None:
                return b""
            self.held = piece
        given, self.held = self.held[:size], self.held[size:]
        return given


def avro_blocks():
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
    target = io.BytesIO()
    fastavro.writer(target, schema, [], sync_marker=b"0123456789abcdef")
    header = target.getvalue()
    fastavro.writer(target, schema, [ROW] * 40, sync_marker=b"0123456789abcdef")
    return header, target.getvalue()[len(header) :]


def json_elements():
    text = json.dumps(ROW).encode()
    return b"[" + text, b"," + text + b"\n ", b"]"


def csv_rows():
    return b"n,s\n", b'1,"%s\n"\n' % (b"x" * 4000) * 20


STREAMS = {"avro": avro_blocks, "json": json_elements, "csv": csv_rows}


@pytest.mark.parametrize("form", STREAMS)
def test_memory_is_that_of_a_piece(form):
    """A hundred megabytes pass with a few megabytes of memory, positions included."""
    made = registry.find("transformers", form)()
    made.configure({})
    stream = Endless(*STREAMS[form]())
    size = 0

    next(made.batches(Endless(*STREAMS[form]()), Position()))  # imports are not what is measured
    tracemalloc.start()
    try:
        for batch in made.batches(stream, Position()):
            size += sum(map(len, map(str, batch.values)))
            assert batch.end.records > 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size > 0.9 * TOTAL
    assert peak < 16_000_000


def test_memory_of_parquet_is_that_of_a_row_group():
    """Arrow's own memory, too, is that of a row group, however many there are."""
    target = io.BytesIO()
    table = pa.table({"s": [f"{number:04000}" for number in range(500)]})
    with pq.ParquetWriter(target, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(20):
            writer.write_table(table)
    stream = SeekableBytes(target.getvalue())
    made = registry.find("transformers", "parquet")()
    made.configure({})
    before, peak, count = pa.total_allocated_bytes(), 0, 0

    for batch in islice(made.batches(stream, Position()), 10_000):
        peak = max(peak, pa.total_allocated_bytes() - before)
        count += len(batch.values)

    assert count == 10_000
    assert peak < 8_000_000


def test_large_row_groups_are_read_in_pieces(monkeypatch):
    """A row group that is larger than what is held at once is read piece by piece, and gives the same rows."""
    monkeypatch.setattr("headrace.transformers.parquet._HELD_BYTES", 1_000_000)
    target = io.BytesIO()
    table = pa.table({"a": [f"{number:01000}" for number in range(8000)], "b": range(8000)})
    pq.write_table(table, target, compression="none", use_dictionary=False)
    stream = SeekableBytes(target.getvalue())
    made = registry.find("transformers", "parquet")()
    made.configure({})
    before, peak, rows = pa.total_allocated_bytes(), 0, []

    for batch in made.batches(stream, Position(records=1000)):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows += batch.values

    assert rows == table.to_pylist()[1000:]
    assert peak < 6_000_000
    assert stream.fetched < 1.5 * stream.size
