"""However large an object is: what it takes in memory is that of a piece of it."""

import bz2
import gzip
import io
import json
import lzma
import tracemalloc
from functools import partial
from itertools import islice, repeat

import cramjam
import fastavro
import lz4.frame
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework import registry
from headrace.framework.errors import DataError
from headrace.testing.streams import SeekableBytes
from headrace.transformers.base import Position
from headrace.transformers.compression import open_decompressed
from headrace.transformers.tolerating import tolerated

TOTAL = 100_000_000
HALF_A_GIGABYTE = 500 * 1024 * 1024
LIMIT = 1_000_000
ROW = {"n": 1, "s": "x" * 4000}


class Endless:
    """A beginning, then a piece again and again until there were so many bytes, then an end."""

    def __init__(self, first, piece, last=b"", total=TOTAL):
        self.pieces = iter([first, *repeat(piece, total // len(piece)), last])
        self.held = b""
        self.given = 0

    def read(self, size):
        while not self.held:
            piece = next(self.pieces, None)
            if piece is None:
                return b""
            self.held = piece
        given, self.held = self.held[:size], self.held[size:]
        self.given += len(given)
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


XS = b"x" * 250_000

ONE_RECORD = {
    "jsonl": ("jsonl", b'1\n"', XS, b'"\n2\n', 2),
    "text": ("text", b"1\n", XS, b"\n2\n", 2),
    "csv": ("csv", b"a\n1\n", XS, b"\n2\n", 2),
    "csv-quoted": ("csv", b'a\n1\n"', XS, b'"\n2\n', 2),
    "csv-header": ("csv", b"a,", XS, b"\n2\n", 0),
    "json-text": ("json", b'[1, "', XS, b'", 2]', 1),
    "json-array": ("json", b"[1, [", b"1," * 125_000, b"1], 2]", 1),
    "json-blanks": ("json", b"[1, ", b" " * 250_000, b"2]", 1),
    "json-document": ("json", b'{"a": "', XS, b'"}', 0),
}


@pytest.mark.parametrize("tolerance", ["none", "all"])
@pytest.mark.parametrize("name", ONE_RECORD)
def test_a_record_of_half_a_gigabyte_is_never_held(name, tolerance):
    """One record without an end takes no more memory than the limit on records; all before it comes out.

    It is an error that is raised before much more than the limit is read, or one piece, behind which lines go on.
    """
    form, *stream, good = ONE_RECORD[name]
    made = registry.find("transformers", form)()
    made.configure({"errors.tolerance": tolerance, "max.record.bytes": str(LIMIT)})
    content = Endless(*stream, total=HALF_A_GIGABYTE)
    is_tolerant = tolerance == "all"
    values, pieces, error = [], [], None

    tracemalloc.start()
    try:
        for batch in tolerated(lambda: made.batches(content, Position()), Position(), tolerant=is_tolerant):
            values += batch.values
            pieces += [batch.rejected] if batch.rejected else []
    except DataError as raised:
        error = raised
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 16 * LIMIT
    assert len(values) == (good if is_tolerant else min(good, 1))
    assert len(pieces) == is_tolerant
    found = pieces[0].error if is_tolerant else error
    assert "max.record.bytes" in str(found)
    assert is_tolerant or content.given < 8 * LIMIT


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": partial(lzma.compress, preset=0),
    "zst": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lz4.frame.compress,
    "sz": lambda data: bytes(cramjam.snappy.compress(data)),
}


@pytest.mark.parametrize("ratio", [0, 10])
@pytest.mark.parametrize("kind", PACKERS)
def test_a_bomb_of_one_line_is_never_held(kind, ratio):
    """A small object that unpacks to one huge line takes no more memory than the limit, whatever has packed it."""
    packed = PACKERS[kind](b"1\n" + b"x" * TOTAL + b"\n2\n")
    made = registry.find("transformers", "jsonl")()
    made.configure({"errors.tolerance": "all", "max.record.bytes": str(LIMIT)})

    def batches():
        opened = open_decompressed(io.BytesIO(packed), f"x.{kind}", max_ratio=ratio)
        return made.batches(opened, Position())

    tracemalloc.start()
    try:
        found = [(list(batch.values), batch.rejected) for batch in tolerated(batches, Position(), tolerant=True)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * LIMIT
    assert found[0] == ([b"1"], None)
    assert sum(piece is not None for _, piece in found) == 1
    assert [values for values, _ in found].count([b"2"]) == (not ratio or TOTAL / len(packed) < ratio)


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
