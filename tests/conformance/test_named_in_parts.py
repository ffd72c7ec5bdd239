"""How a record is named that its format has read, and that a converter or the sink refuses, in a part of an object."""

import io
import json
import math

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import PipelineError, RecordTooLargeError
from headrace.testing import SplitHarness
from headrace.testing.memory import MemoryWriter

pytestmark = pytest.mark.xdist_group("objects")

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

    known = f"record {letter.number}"
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
    """Of an object that is read as a whole a record has its number in the object."""
    run = harness_of(place, make, 0, **TOLERANT)
    run.run()
    [letter] = letters(run)
    assert f"record {BAD + 1}:" in letter.error
    assert letter.number == BAD + 1
