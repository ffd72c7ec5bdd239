"""What was read to its end is not read again, in whatever format, by files and by S3, as a whole and in parts."""

import contextlib
import gzip
import io
import json

import attrs
import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.errors import SinkError
from headrace.testing import SplitHarness
from headrace.testing.memory import MemoryWriter

ROWS = [{"n": number, "s": f"{number:0400d}"} for number in range(1500)]
LINES = [json.dumps(row).encode() for row in ROWS]
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
AT_LEAST = 300_000
"""Larger than what is read at once: a format that leaves off early has not been at the object's end."""


def jsonl():
    return b"".join(line + b"\n" for line in LINES)


def csv():
    return b"n,s\n" + b"".join(f"{row['n']},{row['s']}\n".encode() for row in ROWS)


def array():
    return b"[" + b",\n".join(LINES) + b"]"


def avro():
    target = io.BytesIO()
    for at in range(0, len(ROWS), 100):
        fastavro.writer(target, SCHEMA, ROWS[at : at + 100], sync_marker=b"0123456789abcdef")
    return target.getvalue()


def parquet():
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=100, use_dictionary=False, compression="none")
    return target.getvalue()


def damaged(data, at, by):
    return data[:at] + by + data[at + len(by) :]


@attrs.frozen
class Case:
    """An object: its format, its bytes, and how many records are in it."""

    name: str
    form: str
    make: object
    records: int = len(ROWS)
    splits: bool = False
    props: dict = attrs.field(factory=dict)


WHOLE = [
    Case("text", "text", jsonl, splits=True),
    Case("jsonl", "jsonl", jsonl, splits=True),
    Case("json", "json", array),
    Case("document", "json", lambda: b'{"of":%s}' % array(), records=1),
    Case("csv", "csv", csv, splits=True, props={"csv.quoted.newlines": "false"}),
    Case("avro", "avro", avro, splits=True),
    Case("parquet", "parquet", parquet, splits=True),
    Case("columns", "parquet", parquet, splits=True, props={"parquet.columns": "n"}),
    Case("bytes", "bytes", jsonl, records=1),
    Case("chunks", "bytes", jsonl, records=-(-len(jsonl()) // 4096), props={"transformer.max.buffer.size": "4096"}),
    Case("lines.gz", "jsonl", lambda: gzip.compress(jsonl(), 0)),
    Case("array.gz", "json", lambda: gzip.compress(array(), 0)),
]
DAMAGED = [
    Case("line", "jsonl", lambda: damaged(jsonl(), 0, b"?"), splits=True),
    Case("header", "csv", lambda: damaged(csv(), 2, b"\xff")),
    Case("document", "json", lambda: b'{"of" ' + array()),
    Case("elements", "json", lambda: damaged(array(), len(LINES[0]) + 3, b'{"n";')),
    Case("magic.avro", "avro", lambda: damaged(avro(), 0, b"nope"), splits=True),
    Case("block.avro", "avro", lambda: damaged(avro(), len(avro()) - 30_000, b"\xff" * 9_000), splits=True),
    Case("magic.parquet", "parquet", lambda: b"PAR1" + b"?" * 400_000, splits=True),
    Case("group.parquet", "parquet", lambda: damaged(parquet(), len(parquet()) - 60_000, b"\xff" * 9_000), splits=True),
    Case("large", "bytes", jsonl, props={"max.record.bytes": "1000"}),
    Case("lines.gz", "jsonl", lambda: damaged(gzip.compress(jsonl(), 0), 20, b"\xff" * 40)),
]
IN_PARTS = {"tasks.max": "3", "split.size.bytes": "100000"}
TOLERANT = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}


def read_twice(place, case, **more):
    """What the runs have sent, as the numbers of records and of dead letters after each."""
    put, props = place
    data = case.make()
    assert len(data) > AT_LEAST
    put(case.name, data)
    run = SplitHarness({**props, "input.format": case.form, **case.props, **more})
    found = []
    for _ in range(2):
        run.run()
        found.append((len(run.kafka.values("records")), len(run.kafka.values("dead"))))
    return found


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_an_object_that_was_read_is_left_alone(place, case):
    """A second run over an object that nobody has touched sends nothing, whatever the format."""
    assert read_twice(place, case) == [(case.records, 0)] * 2


@pytest.mark.parametrize("case", [case for case in WHOLE if case.splits], ids=lambda case: case.name)
def test_an_object_that_was_read_in_parts_is_left_alone(place, case):
    """The same, where several tasks have read it."""
    assert read_twice(place, case, **IN_PARTS) == [(case.records, 0)] * 2


@pytest.mark.parametrize("case", DAMAGED, ids=lambda case: case.name)
def test_an_object_that_was_passed_over_is_left_alone(place, case):
    """A second run sends no dead letter again, wherever in the object reading has left off."""
    first, second = read_twice(place, case, **TOLERANT)
    assert first[1]
    assert second == first


@pytest.mark.parametrize("case", [case for case in DAMAGED if case.splits], ids=lambda case: case.name)
def test_an_object_that_was_passed_over_in_parts_is_left_alone(place, case):
    """The same, where several tasks have read it."""
    first, second = read_twice(place, case, **IN_PARTS, **TOLERANT)
    assert first[1]
    assert second == first


def cut():
    whole = gzip.compress(b"".join(LINES[number] + b"\n" for number in range(20)))
    return whole[: len(whole) // 2]


@attrs.define
class Dying(MemoryWriter):
    """Dies before one of its commits."""

    left: list = attrs.field(kw_only=True)

    def commit(self, offsets, counted):
        self.left[0] -= 1
        if self.left[0] < 0:
            raise SinkError("dead before a commit, as the test wants it")
        super().commit(offsets, counted)


@pytest.mark.parametrize(
    ("case", "letters"),
    [
        pytest.param(Case("cut.gz", "jsonl", cut), 1, id="cut"),
        pytest.param(Case("header", "csv", lambda: b"a,\xff\n1,2\n"), 1, id="header"),
        pytest.param(Case("magic", "avro", lambda: b"?" * 300_000, props=IN_PARTS), 3, id="parts"),
    ],
)
def test_what_is_left_of_an_object_is_one_letter_whenever_a_task_dies(place, case, letters):
    """Before whichever commit a task dies, each rest that was passed over is one dead letter in the end."""
    put, props = place
    put(case.name, case.make())
    for step in range(9):
        boundary = {"transaction.boundary.max.records": "1"}
        run = SplitHarness({**props, "input.format": case.form, **case.props, **TOLERANT, **boundary})
        left = [step]
        run.writer = lambda kafka, left=left: Dying(kafka, left=left)
        with contextlib.suppress(SinkError):
            run.run()
        run.writer = MemoryWriter
        run.run()
        assert (step, len(run.kafka.values("dead"))) == (step, letters)
