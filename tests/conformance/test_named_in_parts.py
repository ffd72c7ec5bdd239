"""How a record is named that its format has read, and that a converter or the sink refuses, in a part of an object."""

import io
import json
import math
import re

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import PipelineError, RecordTooLargeError
from headrace.testing import SplitHarness
from headrace.testing.memory import MemoryWriter

BAD = 900
ROWS = [{"n": number, "x": math.nan if number == BAD else 1.0} for number in range(1000)]
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "x", "type": "double"}]}
TOLERANT = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}


def avro():
    target = io.BytesIO()
    fastavro.writer(target, SCHEMA, ROWS, sync_interval=500)
    return target.getvalue()


def parquet():
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=50, use_dictionary=False, compression="none")
    return target.getvalue()


def jsonl():
    return b"".join(b"%s\n" % json.dumps(row).replace("NaN", '"%s"' % ("x" * 1000)).encode() for row in ROWS)


class SmallWriter(MemoryWriter):
    """Takes values of a thousand bytes at most."""

    def write(self, topic, key, values, **more):
        for index, value in enumerate(values):
            if len(value or b"") > 1000:
                error = RecordTooLargeError("too large")
                error.index = index
                raise error
            super().write(topic, key, [value], **more)


def harness_of(place, make, size, **props):
    put, known = place
    put("one", make())
    props = {**known, **props, "input.format": make.__name__, "tasks.max": "2", "split.size.bytes": str(size)}
    return SplitHarness(props, writer=SmallWriter)


def csv():
    return b"n,x\n" + b"".join(b"%d,%s\n\n" % (row["n"], b"1" + b"0" * (row["n"] == BAD) * 1000) for row in ROWS)


def letters(run):
    return [DeadLetter.from_headers(dict(one.headers)) for one in run.kafka.records if one.topic == "dead"]


@pytest.mark.parametrize("make", [avro, parquet, jsonl])
def test_a_refused_record_has_the_place_that_its_part_knows(place, make):
    """Where nobody has counted what comes before a part, its record is one of the part; a row of Parquet is its own."""
    size = len(make()) // 4
    run = harness_of(place, make, size, **TOLERANT)
    run.run()

    [letter] = letters(run)
    with pytest.raises(PipelineError) as failed:
        harness_of(place, make, size).run()

    known = f"{'line' if make is jsonl else 'record'} {letter.number}"
    if make is parquet:
        assert letter.number == BAD + 1
        assert "of the part" not in letter.error
    else:
        assert 0 < letter.number < BAD
        known += " of the part from byte "
    assert known in letter.error
    assert known in str(failed.value)


@pytest.mark.parametrize("make", [avro, parquet, jsonl])
def test_a_refused_record_has_its_own_place_in_the_whole(place, make):
    """Of an object that is read as a whole a record, or its line, has its number in the object."""
    run = harness_of(place, make, 0, **TOLERANT)
    run.run()
    [letter] = letters(run)
    assert f"{'line' if make is jsonl else 'record'} {BAD + 1}:" in letter.error
    assert letter.number == BAD + 1


def test_a_refused_row_of_a_part_is_named_by_its_line(place):
    """A row's line is counted from where the error says, blank ones too, and its bytes are the object's."""
    data = csv()
    run = harness_of(place, csv, len(data) // 4, **TOLERANT, **{"csv.quoted.newlines": "false"})
    run.run()

    [letter] = letters(run)

    begins = int(re.search(rf"line {letter.number} of the part from byte (\d+):", letter.error)[1])
    first = data.index(b"\n", begins - 1) + 1
    assert data[letter.start : letter.end] == b"900,1" + b"0" * 1000 + b"\n"
    assert letter.number == data.count(b"\n", first, letter.start) + 1 > 1
