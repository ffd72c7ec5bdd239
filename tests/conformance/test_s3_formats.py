"""Formats from S3 to a real broker, with the converters of a stock worker of Kafka Connect."""

import base64
import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.testing import S3Harness, read_topic
from headrace.testing.engines import Engine
from headrace.testing.trial import Trial, fresh_name

JAVA = "org.apache.kafka.connect.json.JsonConverter"
AVRO = {
    "type": "record",
    "name": "org.example.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
}
ORDERS = [{"id": number, "price": Decimal(number).scaleb(-2), "at": None} for number in range(7)]


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


def avro(rows, *, per_block=3, damaged=False):
    target = io.BytesIO()
    for at in range(0, len(rows), per_block):
        fastavro.writer(target, AVRO, rows[at : at + per_block], sync_marker=b"0123456789abcdef")
    return target.getvalue() + b"\x02\x02\xff0123456789abcdef" * damaged


def test_the_stock_converters_write_connects_envelope(trial):
    """With the Java class names and nothing else said, key and value have Connect's envelope, schema and all."""
    put(trial, "orders.avro", avro(ORDERS))

    trial.run(input__format="avro", key__converter=JAVA, value__converter=JAVA)

    messages = list(read_topic(trial.bootstrap_servers, trial.topic))
    assert [json.loads(message.value())["payload"]["id"] for message in messages] == [*range(7)]
    assert messages[3].value() == (
        b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},'
        b'{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        b'"parameters":{"scale":"2"},"field":"price"},{"type":"int64","optional":true,'
        b'"name":"org.apache.kafka.connect.data.Timestamp","version":1,"field":"at"}],"optional":false,'
        b'"name":"org.example.Order"},"payload":{"id":3,"price":"Aw==","at":null}}'
    )
    assert messages[0].key() == b'{"schema":null,"payload":"%b"}' % base64.b64encode(b"orders.avro")


def test_a_bad_record_in_a_block_stops_behind_what_is_good(trial):
    """What comes before a damaged block is committed once, in however many runs, and the record is named."""
    put(trial, "orders.avro", avro(ORDERS, damaged=True))

    failed = [trial.attempt(input__format="avro") for _ in range(2)]

    assert [json.loads(value)["id"] for value in trial.values()] == [*range(7)]
    assert [summary.state for summary in failed] == ["FAILED"] * 2
    assert all("orders.avro, record 8" in summary.error for summary in failed)
    assert trial.records_done("orders.avro") == 7


def test_rows_of_parquet_and_csv_arrive_once(trial):
    """Objects of every kind of row arrive as objects by field name, once, also over several runs."""
    table = pa.table({"id": range(10), "name": [f"n{number}" for number in range(10)]})
    target = io.BytesIO()
    pq.write_table(table, target, row_group_size=4)
    put(trial, "rows.parquet", target.getvalue())
    trial.run(input__format="parquet", file__name__template=r".*\.parquet")
    put(trial, "rows.csv", b"id;name\n" + b"".join(b"%d;n%d\n" % (number, number) for number in range(10, 20)))
    trial.run(input__format="csv", csv__delimiter=";", csv__types="id:int64", file__name__template=r".*\.csv")
    trial.run(input__format="parquet", file__name__template=r".*\.parquet")

    assert trial.values() == [b'{"id":%d,"name":"n%d"}' % (number, number) for number in range(20)]
