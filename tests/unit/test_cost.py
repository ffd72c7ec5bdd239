"""What a record costs, in calls and not in seconds: these hold on every machine."""

import csv
import gc
import io
import json
import operator
import sys
from collections import Counter

import pytest

from headrace.converters.json import JsonConverter
from headrace.framework import registry
from headrace.testing.streams import SeekableBytes
from headrace.transformers.base import Position

COUNT = 20_000
ROWS = [
    {"id": number, "name": f"customer {number % 97}", "amount": number / 8 + 0.5, "note": None if number % 5 else "été"}
    for number in range(COUNT)
]
AT_MOST_PER_THOUSAND = {"jsonl": 40, "json": 60, "csv": 80, "avro": 150, "parquet": 120}


def lines():
    return b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def array():
    return json.dumps(ROWS).encode()


def comma_separated():
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, [*ROWS[0]])
    writer.writeheader()
    writer.writerows(ROWS)
    return target.getvalue().encode()


def avro():
    fastavro = pytest.importorskip("fastavro")
    types = {"id": "long", "name": "string", "amount": "double", "note": ["null", "string"]}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    target = io.BytesIO()
    fastavro.writer(target, {"type": "record", "name": "Row", "fields": fields}, ROWS)
    return target.getvalue()


def parquet():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    target = io.BytesIO()
    pq.write_table(pyarrow.Table.from_pylist(ROWS), target)
    return target.getvalue()


FILES = {"jsonl": lines, "json": array, "csv": comma_separated, "avro": avro, "parquet": parquet}


def decode_and_write(form, data):
    transformer = registry.find("transformers", form)()
    transformer.configure({})
    converter = JsonConverter()
    converter.configure({}, is_key=False)
    done = 0
    for batch in transformer.batches(SeekableBytes(data), Position()):
        done += len(converter.convert_all("topic", batch.schema, batch.values))
        assert batch.end.records == done
    return done


@pytest.mark.parametrize("form", FILES)
def test_a_record_makes_no_calls_of_its_own(form):
    """From an object's bytes to those on the topic, there is no call of a Python function for every record."""
    data = FILES[form]()
    decode_and_write(form, data)
    calls = Counter()

    def note(_frame, event, _argument):
        calls[event] += 1

    before = sys.getprofile()
    # What other tests have left behind is not finalized meanwhile.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        done = decode_and_write(form, data)
    finally:
        sys.setprofile(before)
        gc.enable()

    assert done == COUNT
    assert calls["call"] * 1000 / COUNT <= AT_MOST_PER_THOUSAND[form], calls


def test_a_line_is_cut_out_once_and_not_copied_again():
    """What a line format cuts out of a read is the very object that goes to the producer: nothing is to change."""
    transformer, converter = registry.find("transformers", "jsonl")(), JsonConverter()
    transformer.configure({})
    converter.configure({}, is_key=False)
    found = 0
    for batch in transformer.batches(SeekableBytes(lines()), Position()):
        converted = converter.convert_all("topic", batch.schema, batch.values)
        assert all(map(operator.is_, converted, batch.values))
        found += len(converted)
    assert found == COUNT
