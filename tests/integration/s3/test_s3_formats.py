"""Formats through the S3 source's own reader: what comes out, and what is fetched for it."""

import bz2
import csv
import gzip
import io
import json
import random
import threading

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.distribution import TaskShare
from headrace.framework.distribution.object_hash import ObjectHashDistribution
from headrace.framework.errors import DataError, ObjectChangedError
from headrace.framework.metrics import TaskMetrics
from headrace.framework.task import TaskContext
from headrace.framework.worker.split_task import ReaderContext
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import S3OffsetEntry
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.reader import S3Reader
from headrace.sources.s3.splits import S3Split
from headrace.testing.faulty_s3 import CutBody, Meanwhile

COUNT = 10_000
NUMBERS = random.Random(31_337)  # noqa: S311 - any numbers do
ROWS = [{"n": number, "s": f"{NUMBERS.getrandbits(900):x}"} for number in range(COUNT)]
AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}


def write_jsonl():
    return b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def write_json():
    return json.dumps(ROWS).encode()


def write_csv():
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, ["n", "s"])
    writer.writeheader()
    writer.writerows(ROWS)
    return target.getvalue().encode()


def write_avro():
    target = io.BytesIO()
    fastavro.writer(target, AVRO, ROWS)
    return target.getvalue()


def write_parquet():
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=500, use_dictionary=False)
    return target.getvalue()


WRITERS = {"jsonl": write_jsonl, "json": write_json, "csv": write_csv, "avro": write_avro, "parquet": write_parquet}


@pytest.fixture(scope="module")
def contents():
    """Each format's object, written once."""
    return {name: write() for name, write in WRITERS.items()}


@pytest.fixture
def put(s3, bucket):
    """Puts an object into the bucket."""
    return lambda key, content: s3.put_object(Bucket=bucket, Key=key, Body=content)


@pytest.fixture
def reading(s3, bucket, faulty):
    """Reads an object as a task would, and gives its items one by one; `stored` is the progress to go on from."""
    opened = []

    def read(key, form, *, stored=None, **props):
        config = S3Config.from_props(
            {
                "name": "formats",
                "connector.class": "s3",
                "bootstrap.servers": "nobody:9092",
                "topic": "t",
                "aws.s3.bucket.name": bucket,
                "aws.s3.endpoint": faulty.endpoint,
                "aws.access.key.id": "key",
                "aws.secret.access.key": "secret",
                "aws.s3.backoff.delay.ms": "1",
                "input.format": form,
                **{name.replace("_", "."): value for name, value in props.items()},
            }
        )
        offsets = MemoryOffsetStore()
        if stored is not None:
            offsets.committed({stored.get_manager_key(): stored.get_properties()})
        context = TaskContext(
            connector="formats",
            task_id=0,
            tasks_max=1,
            offsets=OffsetManager(offsets),
            distribution=TaskShare(ObjectHashDistribution(), 0, 1),
            metrics=TaskMetrics(),
            stopping=threading.Event(),
        )
        reader = S3Reader(ReaderContext(context), config)
        opened.append(reader)
        reader.start()
        reader.add_splits([S3Split(find_object(s3, bucket, key, Attempts()))])
        while items := reader.poll():
            yield from items

    yield read
    for reader in opened:
        reader.close()


def entry_at(found, count):
    """The progress behind the first `count` records of some batches, as it is stored."""
    before = 0
    for batch in found:
        if count <= before + len(batch.values):
            return S3OffsetEntry(batch.source_partition, batch.offset_at(count - before))
        before += len(batch.values)
    raise AssertionError(count)


def numbers(items):
    values = [value for item in items for value in item.values]
    return [int((json.loads(value) if isinstance(value, bytes) else value)["n"]) for value in values]


@pytest.mark.parametrize("form", WRITERS)
def test_a_resume_fetches_the_tail_only(put, reading, faulty, contents, form):
    """Going on at 90 % of an uncompressed object fetches less than 15 % of it, and gives exactly what is left."""
    data = contents[form]
    put(f"object.{form}", data)
    found = list(reading(f"object.{form}", form))
    assert numbers(found) == [*range(COUNT)]
    assert len(faulty.gets) == 1 or form == "parquet"
    for done in (COUNT * 9 // 10, COUNT * 9 // 10 + 7):
        faulty.requests.clear()

        rest = numbers(reading(f"object.{form}", form, stored=entry_at(found, done)))

        assert rest == [*range(done, COUNT)]
        assert sum(get.sent for get in faulty.gets) < 0.15 * len(data)
        assert len(faulty.gets) == 2 or form == "parquet"


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "avro"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bz2"])
def test_a_resume_inside_a_compressed_object_gives_the_rest(put, reading, faulty, contents, form, pack):  # noqa: PLR0917
    """Going on inside a compressed object gives exactly what is left, in two GETs."""
    put("object", pack(contents[form]))
    found = list(reading("object", form))

    for done in (1, 4_999, COUNT):
        faulty.requests.clear()
        assert numbers(reading("object", form, stored=entry_at(found, done))) == [*range(done, COUNT)]
        assert len(faulty.gets) <= 2


@pytest.mark.parametrize("form", WRITERS)
def test_progress_of_kafka_connect_is_gone_on_from(put, bucket, reading, contents, form):
    """A number of records, as Kafka Connect's S3 source stores it, is good for every format."""
    put("object", contents[form])
    stored = S3OffsetEntry({"bucket": bucket, "objectKey": "object"}, {"recordCount": 9_111})

    assert numbers(reading("object", form, stored=stored)) == [*range(9_111, COUNT)]


@pytest.mark.parametrize("form", WRITERS)
def test_broken_connections_cost_a_little_and_nothing_else(put, reading, faulty, contents, form):
    """Wherever connections break, every record comes once."""
    put("object", contents[form])
    faulty.script(*(CutBody(at, reset=at % 2 == 0) for at in (0, 1, 50_000, 99_999, 7, 300_000)))

    assert numbers(reading("object", form, aws_s3_backoff_max_retries="9")) == [*range(COUNT)]


def test_an_object_that_is_overwritten_between_two_ranges_is_seen(put, reading, faulty, contents):
    """Every range of an object is of one version: another one is an error before a byte of it is given out."""
    put("object", contents["parquet"])
    other = contents["parquet"][:-200] + bytes(100) + contents["parquet"][-100:]
    items = reading("object", "parquet", s3_overwrite_policy="fail")
    next(items)
    faulty.script(Meanwhile(lambda: put("object", other)))

    with pytest.raises(ObjectChangedError):
        list(items)


def test_only_the_columns_that_are_wanted_are_fetched(put, reading, faulty, contents):
    """A projection of a Parquet object fetches the footer and these columns."""
    put("object", contents["parquet"])

    values = [value for item in reading("object", "parquet", parquet_columns="n") for value in item.values]

    assert values == [{"n": number} for number in range(COUNT)]
    assert sum(get.sent for get in faulty.gets) < 0.15 * len(contents["parquet"])


def test_a_bomb_is_named(put, reading):
    """An object that unpacks to more than max.decompression.ratio times its size is an error that says so."""
    put("bomb.jsonl.bz2", bz2.compress(b"%d\n" % 10**4000 * 20_000))

    with pytest.raises(DataError, match=r"bomb\.jsonl\.bz2, byte \d+: .* max\.decompression\.ratio"):
        for _ in reading("bomb.jsonl.bz2", "jsonl"):
            pass
