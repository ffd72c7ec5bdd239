"""Avro and Parquet with whatever types: values come back, and their schema is one that the json converter writes by."""

import datetime as dt
import io
import itertools
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from headrace.converters.json import JsonConverter
from headrace.testing.streams import SeekableBytes
from headrace.transformers.avro import AvroTransformer
from headrace.transformers.base import Position
from headrace.transformers.parquet import ParquetTransformer

TEXT = st.text(max_size=5)
INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
DECIMALS = st.integers(-(10**8), 10**8).map(lambda number: Decimal(number).scaleb(-2))
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}

_number = itertools.count()


def plain(kind, values):
    """An Avro type, with pairs of what is written and what comes back."""
    return kind, values.map(lambda value: (value, value))


AVRO_LEAVES = st.sampled_from(
    [
        plain("int", INTS),
        plain("long", LONGS),
        plain("boolean", st.booleans()),
        plain("double", DOUBLES),
        plain("float", FLOATS),
        plain("string", TEXT),
        plain("bytes", st.binary(max_size=5)),
        plain({"type": "long", "logicalType": "local-timestamp-millis"}, LONGS),
        plain(DECIMAL, DECIMALS),
        ({"type": "int", "logicalType": "date"}, st.integers(0, 30_000).map(lambda day: (day, day))),
        ({"type": "long", "logicalType": "timestamp-micros"}, LONGS.map(lambda us: (us, us))),
    ]
)


def record_of(members):
    number = next(_number)
    fields = [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(members)]
    pairs = st.tuples(*(values for _, values in members)).map(
        lambda row: tuple({f"f{index}": pair[side] for index, pair in enumerate(row)} for side in (0, 1))
    )
    return {"type": "record", "name": f"R{number}", "fields": fields}, pairs


def array_of(member):
    kind, values = member
    return {"type": "array", "items": kind}, st.lists(values, max_size=3).map(
        lambda items: ([item[0] for item in items], [item[1] for item in items])
    )


def map_of(member):
    kind, values = member
    return {"type": "map", "values": kind}, st.dictionaries(TEXT, values, max_size=3).map(
        lambda items: tuple({name: item[side] for name, item in items.items()} for side in (0, 1))
    )


def optional(member):
    kind, values = member
    return ["null", kind], st.just((None, None)) | values


def one_of(member):
    """A union of a text, a fixed number of bytes and a record around the member, told apart by what they are."""
    number = next(_number)
    kind, values = member
    wrapped = {"type": "record", "name": f"W{number}", "fields": [{"name": "w", "type": kind}]}
    pairs = (
        TEXT.map(lambda text: (text, {"string": text}))
        | st.binary(min_size=3, max_size=3).map(lambda data: (data, {f"F{number}": data}))
        | values.map(lambda pair: ({"w": pair[0]}, {f"W{number}": {"w": pair[1]}}))
    )
    return ["string", {"type": "fixed", "name": f"F{number}", "size": 3}, wrapped], pairs


AVRO_TYPES = st.recursive(
    AVRO_LEAVES,
    lambda inner: (
        inner.filter(lambda member: not isinstance(member[0], list)).map(optional)
        | inner.map(array_of)
        | inner.map(map_of)
        | inner.map(one_of)
        | st.lists(inner, min_size=1, max_size=3).map(record_of)
    ),
    max_leaves=5,
)


@given(st.lists(AVRO_TYPES, min_size=1, max_size=3).map(record_of), st.data())
def test_avro_of_any_type_comes_back(member, data):
    """Whatever the Avro schema: what fastavro writes comes back, and the json converter writes it by its schema."""
    schema, values = member
    rows = data.draw(st.lists(values, min_size=1, max_size=4))
    target = io.BytesIO()
    fastavro.writer(target, schema, [given for given, _ in rows], codec="deflate")

    (batch,) = AvroTransformer().batches(SeekableBytes(target.getvalue()), Position())

    assert batch.values == [expected for _, expected in rows]
    check_json(batch)


def check_json(batch):
    """Both ways of the converter write the same, and it is JSON with the schema's members."""
    converter = JsonConverter()
    converter.configure({"schemas.enable": "true"}, is_key=False)
    texts = converter.convert_all("t", batch.schema, batch.values)
    assert texts == [converter.convert("t", batch.schema, value) for value in batch.values]
    names = [field.name for field in batch.schema.fields]
    assert all(list(json.loads(text)["payload"]) == names for text in texts)


def ms(value):
    return round((value - dt.datetime(1970, 1, 1)).total_seconds() * 1000)  # noqa: DTZ001 - as Arrow has it


MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)).map(  # noqa: DTZ001 - as above
    lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
)
ARROW_LEAVES = st.sampled_from(
    [
        (pa.int8(), st.integers(-128, 127).map(lambda value: (value, value))),
        (pa.uint32(), st.integers(0, 2**32 - 1).map(lambda value: (value, value))),
        (pa.int64(), LONGS.map(lambda value: (value, value))),
        (pa.bool_(), st.booleans().map(lambda value: (value, value))),
        (pa.float64(), DOUBLES.map(lambda value: (value, value))),
        (pa.float32(), FLOATS.map(lambda value: (value, value))),
        (pa.string(), TEXT.map(lambda value: (value, value))),
        (pa.large_string(), TEXT.map(lambda value: (value, value))),
        (pa.binary(), st.binary(max_size=5).map(lambda value: (value, value))),
        (pa.decimal128(12, 2), DECIMALS.map(lambda value: (value, value))),
        (pa.timestamp("ms"), MOMENTS.map(lambda value: (value, ms(value)))),
        (pa.timestamp("us", "Europe/Berlin"), MOMENTS.map(lambda value: (value, ms(value) * 1000))),
        (pa.dictionary(pa.int32(), pa.string()), TEXT.map(lambda value: (value, value))),
    ]
)


def nullable(pairs):
    return st.just((None, None)) | pairs


def list_of(member):
    kind, values = member
    return pa.list_(kind), st.lists(nullable(values), max_size=3).map(
        lambda items: ([item[0] for item in items], [item[1] for item in items])
    )


def struct_of(members):
    kind = pa.struct([(f"f{index}", inner) for index, (inner, _) in enumerate(members)])
    return kind, st.tuples(*(nullable(values) for _, values in members)).map(
        lambda row: tuple({f"f{index}": pair[side] for index, pair in enumerate(row)} for side in (0, 1))
    )


def arrow_map_of(member):
    kind, values = member
    return pa.map_(pa.string(), kind), st.dictionaries(TEXT, nullable(values), max_size=3).map(
        lambda items: (
            [(name, item[0]) for name, item in items.items()],
            {name: item[1] for name, item in items.items()},
        )
    )


ARROW_TYPES = st.recursive(
    ARROW_LEAVES,
    lambda inner: (
        inner.filter(lambda member: not pa.types.is_dictionary(member[0])).map(list_of)
        | inner.filter(lambda member: not pa.types.is_dictionary(member[0])).map(arrow_map_of)
        | st.lists(inner, min_size=1, max_size=3).map(struct_of)
    ),
    max_leaves=4,
)


@given(st.lists(ARROW_TYPES, min_size=1, max_size=3), st.data())
def test_parquet_of_any_type_comes_back(members, data):
    """Whatever the columns: what pyarrow writes comes back, and the json converter writes it by its schema."""
    count = data.draw(st.integers(1, 4))
    columns = [data.draw(st.lists(nullable(values), min_size=count, max_size=count)) for _, values in members]
    table = pa.table(
        {
            f"c{index}": pa.array([pair[0] for pair in column], kind)
            for index, ((kind, _), column) in enumerate(zip(members, columns, strict=True))
        }
    )
    target = io.BytesIO()
    pq.write_table(table, target)

    (batch,) = ParquetTransformer().batches(SeekableBytes(target.getvalue()), Position())

    assert batch.values == [
        {f"c{index}": column[row][1] for index, column in enumerate(columns)} for row in range(count)
    ]
    check_json(batch)
