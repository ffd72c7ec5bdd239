"""Dead letters of an object that is read in parts: counted from a part, and replayed once all the same."""

import io
import json

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.driver.replaying import replay
from headrace.testing import S3Harness
from headrace.testing.engines import Engine
from headrace.testing.trial import Trial, fresh_name

SYNC = b"0123456789abcdef"
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
ROWS = [{"n": number, "s": "x" * 100} for number in range(2000)]


@pytest.fixture
def trial(s3_endpoint, kafka_bootstrap_servers, request):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
        )


def put(trial, key, data):
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key=key, Body=data)


def props(trial, form, size):
    return trial.props(
        **trial.tolerant,
        **({"csv__quoted__newlines": "false"} if form == "csv" else {}),
        s3__overwrite__policy="ignore",
        input__format=form,
        tasks__max="4",
        split__size__bytes=str(size // 8 + 1),
    )


def jsonl():
    good = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    at = good.index(b'{"n": 1200,')
    return good, good[:at] + b"?" + good[at + 1 :]


def csv():
    good = b"n,s\n" + b"".join(b"%d,%s\n" % (row["n"], row["s"].encode()) for row in ROWS)
    at = good.index(b"1200,x")
    return good, good[:at] + b"1200;x" + good[at + 6 :]


def avro():
    target = io.BytesIO()
    for at in range(0, len(ROWS), 50):
        fastavro.writer(target, SCHEMA, ROWS[at : at + 50], sync_marker=SYNC)
    good = target.getvalue()
    blocks = good.split(SYNC)
    blocks[25] = b"\xff" * 12 + blocks[25][12:]
    return good, SYNC.join(blocks)


def parquet():
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=50, use_dictionary=False, compression="none")
    good = target.getvalue()
    at = pq.ParquetFile(io.BytesIO(good)).metadata.row_group(24).column(0).data_page_offset
    return good, good[:at] + b"\xff" * 20 + good[at + 20 :]


def numbers(trial):
    return sorted(int(json.loads(value)["n"]) for value in trial.values())


@pytest.mark.parametrize("make", [jsonl, csv, avro, parquet])
def test_a_bad_piece_of_a_part_is_replayed_once(trial, make):
    """All but the piece goes out at once; the piece does, and nothing besides it, when its bytes have been repaired."""
    form = make.__name__
    good, damaged = make()
    put(trial, f"one.{form}", damaged)
    summary = trial.engine.run(props(trial, form, len(good)))
    missing = len(ROWS) - summary.records
    assert (summary.error, summary.dead_lettered, 0 < missing <= 50) == (None, 1, True)
    [still] = replay(props(trial, form, len(good)))
    assert ("of the part from byte " in str(still.error)) is (form != "parquet")
    put(trial, f"one.{form}", good)
    [done] = replay(props(trial, form, len(good)))
    assert (done.error, done.records) == (None, missing)
    assert numbers(trial) == list(range(len(ROWS)))


@pytest.mark.parametrize(("make", "start", "end"), [(avro, 0, 4), (parquet, -4, None)], ids=["avro", "parquet"])
def test_parts_of_what_cannot_be_read_at_all_are_replayed_side_by_side(trial, make, start, end):
    """Each part of an object without its head, or its foot, is a letter; all of them are one object in the end."""
    form = make.__name__
    good, _ = make()
    damaged = bytearray(good)
    damaged[start:end] = b"nope"
    put(trial, f"one.{form}", bytes(damaged))
    summary = trial.engine.run(props(trial, form, len(good)))
    assert (summary.error, summary.records, summary.dead_lettered > 1) == (None, 0, True)
    put(trial, f"one.{form}", good)
    assert [done.error for done in replay(props(trial, form, len(good)))] == [None] * summary.dead_lettered
    assert numbers(trial) == list(range(len(ROWS)))


@pytest.mark.parametrize("make", [jsonl, csv])
def test_a_line_that_is_elsewhere_stays_a_letter(trial, make):
    """How many lines are before a part nobody knows: a repair that moves the lines is refused, and sends nothing."""
    form = make.__name__
    good, damaged = make()
    put(trial, f"one.{form}", damaged)
    sent = trial.engine.run(props(trial, form, len(good))).records
    put(trial, f"one.{form}", good.replace(b"1", b"one", 1))
    [done] = replay(props(trial, form, len(good)))
    assert "the object is another one now" in str(done.error)
    assert len(trial.values()) == sent
