import datetime as dt
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.converters import json_text
from headrace.converters.json import JsonConverter
from headrace.converters.json_rows import rows_writer
from headrace.converters.json_schema import SchemaWriter
from headrace.framework.errors import ConfigError, DataError
from headrace.framework.schema import (
    BYTES,
    DATE,
    JSON_TEXT,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    decimal_schema,
    logical_schema,
)

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "json-converter-vectors.json").read_text())["vectors"]

INNER = Schema(
    "struct", name="org.example.Inner", version=3, doc="inside", optional=True,
    fields=(Field("x", Schema("float32", optional=True)),),
)  # fmt: skip
ROW = Schema(
    "struct", name="org.example.Row", version=1, doc='a "row"', parameters={"p": "1", "q": "é"},
    fields=(
        Field("id", Schema("int64")),
        Field("name", Schema("string", optional=True, doc="the name", default="none")),
        Field("price", decimal_schema(3, optional=True)),
        Field("at", logical_schema(TIMESTAMP)),
        Field("inner", INNER),
        Field("list", Schema("array", values=INNER)),
        Field("day", Schema("int32", name=DATE, version=1, optional=True, default=1)),
    ),
)  # fmt: skip
STRUCT = {"id": 7, "price": Decimal("1.500"), "at": 5, "inner": {"x": 1.5}, "list": [{"x": 1.5}, None]}

FLOATS = [
    0.1, 1, -0.0, 1e10, 1e-5, 3.4028235e38, 1.4e-45, 16777216, 123456.79, 0.001, 9999999, 1e7, None, 2e-45,
    33554432,
]  # fmt: skip
DOUBLES = [
    0.1, 1.0, -0.0, 1e10, 1e-5, 1.7976931348623157e308, 4.9e-324, 12345678.9, 0.001, 9999999.999, 1e7, 2e-3, 1e21,
]  # fmt: skip
DECIMALS = ["0.00", "1.25", "-1.25", "127.00", "1.28", "-1.28", "-1.29", "12345678901234567890.12", "0.01"]

KNOWN = {
    "int8": (Schema("int8"), -128),
    "int16": (Schema("int16"), 7),
    "int32": (Schema("int32"), -5),
    "int64": (Schema("int64"), -(2**63)),
    "bool": (Schema("boolean"), True),
    "string": (STRING, 'a"\\\x01\x1f/é\U0001f600\u2028'),
    "bytes": (BYTES, b"\x00\xff\x05"),
    "opt-bytes": (Schema("bytes", optional=True), b"\x01"),
    **{f"float-{index}": (Schema("float32"), value) for index, value in enumerate(FLOATS) if value is not None},
    **{f"double-{index}": (Schema("float64"), value) for index, value in enumerate(DOUBLES)},
    **{f"decimal-{index}": (decimal_schema(2), Decimal(value)) for index, value in enumerate(DECIMALS)},
    **{f"numeric-{index}": (decimal_schema(2), Decimal(value)) for index, value in enumerate(DECIMALS)},
    "numeric-scale0": (decimal_schema(0), Decimal(120)),
    "numeric-small": (decimal_schema(9), Decimal("0.00000012")),
    "numeric-negscale": (decimal_schema(-2), 1200),
    "decimal-negscale": (decimal_schema(-2), Decimal("12e2")),
    "date": (logical_schema(DATE), dt.date(2022, 1, 8)),
    "time": (logical_schema(TIME), dt.time(0, 0, 1, 500_000)),
    "timestamp": (logical_schema(TIMESTAMP), dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)),
    "timestamp-optional": (logical_schema(TIMESTAMP, optional=True), 1_700_000_000_123),
    "array": (Schema("array", values=Schema("string", optional=True), optional=True), ["a", None]),
    "map": (Schema("map", keys=STRING, values=Schema("int32")), {"a": 1, "b": 2}),
    "map-int": (Schema("map", keys=Schema("int32"), values=STRING), {1: "x", 2: "y"}),
    "struct": (ROW, STRUCT),
    "struct-keep-nulls": (ROW, STRUCT),
    "no-schema-map": (None, {"a": 1}),
    "no-schema-bytes": (None, b"\x01\x02"),
    "no-schema-string": (None, "x"),
    "optional": (Schema("int32", optional=True), None),
    "default": (Schema("int32", optional=True, default=5), None),
}


@pytest.fixture(params=["orjson", "stdlib"], autouse=True)
def writer(request, monkeypatch):
    if request.param == "stdlib":
        monkeypatch.setitem(sys.modules, "orjson", None)
    json_text.quick_dumps.cache_clear()
    yield request.param
    json_text.quick_dumps.cache_clear()


def converter(name="", **props):
    given = {"decimal.format": "NUMERIC"} if name.startswith("numeric") else {}
    given |= {"replace.null.with.default": "false"} if name == "struct-keep-nulls" else {}
    made = JsonConverter()
    made.configure({**given, **{key.replace("_", "."): value for key, value in props.items()}}, is_key=False)
    return made


def test_every_vector_is_tried():
    """Each thing that Connect was asked to write is written here, too."""
    assert set(KNOWN) == set(VECTORS)


@pytest.mark.parametrize("name", KNOWN)
def test_the_envelope_is_connects(name):
    """With schemas, values are in Connect's envelope, byte for byte."""
    schema, value = KNOWN[name]
    made = converter(name, schemas_enable="true")

    assert made.convert("t", schema, value).decode() == VECTORS[name]["envelope"]
    assert [text.decode() for text in made.convert_all("t", schema, [value, value])] == [VECTORS[name]["envelope"]] * 2


@pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name][1] is not None])
def test_plain_values_are_connects(name):
    """Without schemas, values with a schema are written by it all the same, byte for byte."""
    schema, value = KNOWN[name]
    made = converter(name)

    assert made.convert("t", schema, value).decode() == VECTORS[name]["plain"]
    assert [text.decode() for text in made.convert_all("t", schema, [value, value])] == [VECTORS[name]["plain"]] * 2


def test_a_null_without_envelope_is_a_null_on_the_topic():
    """Without schemas None is a null on the topic, whatever its schema says of defaults: a tombstone stays one."""
    assert converter().convert("t", Schema("int32", optional=True, default=5), None) is None
    assert converter(schemas_enable="true").convert("t", None, None) is None


def test_json_text_in_the_envelope_is_untouched():
    """A JSON text has no schema for Connect, and keeps its digits in the envelope."""
    made = converter(schemas_enable="true")

    assert made.convert("t", JSON_TEXT, b'{"a":1.50}') == b'{"schema":null,"payload":{"a":1.50}}'
    assert made.convert_all("t", JSON_TEXT, [b"1e400", None]) == [b'{"schema":null,"payload":1e400}', _null(made)]


def _null(made):
    return made.convert("t", JSON_TEXT, None)


def test_other_keys_of_the_converter_pass():
    """Keys that Connect's converter knows, and this one has no use for, pass; a slip in a known one does not."""
    converter(schemas_cache_size="100", converter_type="value")

    with pytest.raises(ConfigError, match=r"value\.converter\.schemas\.enabled"):
        converter(schemas_enabled="true")
    with pytest.raises(ConfigError, match=r"value\.converter\.decimal\.format: must be base64 \| numeric"):
        converter(decimal_format="hex")


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (Schema("int32"), None, "null stands where a int32 is required"),
        (Schema("int32"), "1", "str is no int32"),
        (Schema("int32"), True, "bool is no int32"),
        (STRING, 1, "int is no string"),
        (BYTES, "x", "str is no bytes"),
        (Schema("boolean"), 1, "int is no boolean"),
        (Schema("float64"), float("nan"), "no NaN in JSON"),
        (Schema("float32"), 1e39, "beyond a float of 32 bits"),
        (Schema("float32"), float("-inf"), "no -Infinity in JSON"),
        (decimal_schema(2), Decimal("1.234"), "more than 2 digits"),
        (decimal_schema(2), Decimal("NaN"), "no NaN"),
        (decimal_schema(2), Decimal("1e999999999"), "has more than 10000 digits"),
        (decimal_schema(2), 1.5, "float is no Decimal"),
        (Schema("bytes", name=decimal_schema(1).name), Decimal(1), "lacks its scale"),
        (logical_schema(DATE), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "datetime is no Date"),
        (logical_schema(TIMESTAMP), "now", "str is no Timestamp"),
        (Schema("array", values=STRING), "abc", "str is no array"),
        (Schema("struct", fields=(Field("a", STRING),)), [1], "list is no struct"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_what_is_not_of_its_schema_is_named(schema, value, words, enabled):
    """Finding 2: a value that its schema does not allow is an error that says what it is, and no null in silence."""
    wrapped = Schema("struct", fields=(Field("f", schema),))
    made = converter(schemas_enable=enabled)

    for call in (
        lambda: made.convert("t", wrapped, {"f": value}),
        lambda: made.convert_all("t", wrapped, [{"f": value}]),
        lambda: made.convert_all("t", Schema("array", values=schema), [[value]]),
    ):
        with pytest.raises(DataError) as raised:
            call()
        assert words in str(raised.value)


def test_structs_are_written_in_the_order_of_their_fields():
    """Members come in the schema's order, a missing one is null, and one that the schema does not know is left out."""
    schema = Schema("struct", fields=(Field("a", STRING), Field("b", Schema("int32", optional=True))))

    assert converter().convert_all("t", schema, [{"x": 1, "b": 2, "a": "1"}, {"a": "2"}]) == [
        b'{"a":"1","b":2}',
        b'{"a":"2","b":null}',
    ]


def test_the_quick_way_is_gone(writer):
    """Where orjson is there, ordinary structs are written by it, column by column; without it, in the slow way."""
    rows = rows_writer(ROW, SchemaWriter())
    full = STRUCT | {"name": "n", "day": 3}
    ordered = {field.name: full[field.name] for field in ROW.fields}

    if writer == "stdlib":
        assert rows is None
    else:
        assert rows.texts([ordered]) == [SchemaWriter().value(ROW, ordered).encode()]
        assert rows.texts([full]) == rows.texts([ordered])
        assert rows.texts([ordered | {"at": None}]) is None
