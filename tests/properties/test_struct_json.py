import json
import struct
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.converters.float32 import float32, floats32
from headrace.converters.json_rows import rows_writer
from headrace.converters.json_schema import SchemaWriter
from headrace.framework.schema import DATE, TIMESTAMP, Field, Schema, decimal_schema, logical_schema
from headrace.framework.table import Table

TEXT = (
    st.text(max_size=6)
    | st.text(alphabet='a\\"\x0b\x7f\uffff\U0001f600', max_size=4)
    | st.text(alphabet='a\\",', max_size=5)
    | st.sampled_from(["null", '","', ",null,", "%b"])
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SMALL_FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
LONGS = st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**30), max_value=10**30)

LEAVES = [
    (Schema("string"), TEXT),
    (Schema("int64"), LONGS),
    (Schema("boolean"), st.booleans()),
    (Schema("float64"), FLOATS),
    (Schema("float32"), SMALL_FLOATS),
    (Schema("bytes"), st.binary(max_size=5)),
    (decimal_schema(2), DECIMALS),
    (logical_schema(DATE), st.integers(-(2**31), 2**31 - 1) | st.dates()),
    (logical_schema(TIMESTAMP), LONGS | st.datetimes()),
]


def optional(pair):
    schema, values = pair
    return Schema(**{**_told(schema), "optional": True}), st.none() | values


def _told(schema):
    return {name: getattr(schema, name) for name in Schema.__slots__ if not name.startswith("__")}


def struct_of(pairs):
    names = [f"f{number}%b\u00e9" for number in range(len(pairs))]
    schema = Schema("struct", fields=tuple(Field(name, one) for name, (one, _) in zip(names, pairs, strict=True)))
    return schema, st.fixed_dictionaries(dict(zip(names, (values for _, values in pairs), strict=True)))


def array_of(pair):
    return Schema("array", values=pair[0]), st.lists(pair[1], max_size=3)


def map_of(pair):
    return Schema("map", keys=Schema("string"), values=pair[0]), st.dictionaries(TEXT, pair[1], max_size=3)


PAIRS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        inner.map(optional)
        | inner.map(array_of)
        | inner.map(map_of)
        | st.lists(inner, min_size=1, max_size=4).map(struct_of)
    ),
    max_leaves=6,
)


ROWS = st.lists(PAIRS, min_size=1, max_size=4).map(struct_of) | PAIRS.map(map_of)


@given(ROWS, st.booleans(), st.data())
def test_columns_say_what_values_say(pair, numeric, data):
    """Whatever the schema and the values: many structs or maps at once have the bytes that each by itself has."""
    schema, values = pair
    rows = data.draw(st.lists(values, min_size=1, max_size=4))
    writer = SchemaWriter(numeric_decimals=numeric)
    quick = rows_writer(schema, writer).texts(rows)

    slow = [writer.value(schema, row).encode() for row in rows]
    assert quick == slow
    assert [type(json.loads(text)) for text in slow] == [dict] * len(rows)
    if names := tuple(field.name for field in schema.fields):
        table = Table(names, [[row[name] for row in rows] for name in names], len(rows))
        assert rows_writer(schema, writer).texts(table) == slow


@given(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=3).map(struct_of), st.data())
def test_nothing_wrong_goes_by_the_quick_way(pair, data):
    """A struct with a value of another type is written by neither way, or by both alike."""
    schema, values = pair
    row = data.draw(values)
    row[data.draw(st.sampled_from([*row]))] = data.draw(st.none() | TEXT | LONGS | FLOATS | st.booleans() | st.just({}))
    writer = SchemaWriter()
    quick = rows_writer(schema, writer).texts([row])

    try:
        slow = writer.value(schema, row).encode()
    except (TypeError, ValueError):
        assert quick is None
    else:
        assert quick in (None, [slow])


@given(SMALL_FLOATS)
def test_floats_of_32_bits_come_back(value):
    """The number that is written for a float of 32 bits is that float, and no shorter digits are."""
    found = float32(value)

    assert struct.pack(">f", found) == struct.pack(">f", value)
    shorter = f"{value:.{max(0, len(repr(Decimal(repr(found)).as_tuple().digits)) // 3 - 2)}e}"
    assert float32(found) == found
    assert len(repr(float(shorter))) <= len(repr(found)) + 4


@given(st.lists(SMALL_FLOATS | st.floats(2**-9, 2**23, width=32) | st.integers(1, 10**6).map(lambda n: n / 1000)))
@example([1.5, float("nan")])
@example([float("nan"), 1.5])
@example([1.5, float("inf"), 0.0, -0.0])
def test_a_column_of_floats_is_what_each_of_them_is(column):
    """Floats of 32 bits that are written a column at a time have the digits that each has by itself."""
    assert list(map(repr, floats32(column))) == list(map(repr, map(float32, column)))
