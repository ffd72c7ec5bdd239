import io
from decimal import Decimal

import pytest

from headrace.framework.errors import ConfigError, DataError, RetriableError
from headrace.framework.schema import DATE, DECIMAL, TIMESTAMP
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers.base import Position
from headrace.transformers.csv import CsvTransformer


def csv(**props):
    transformer = CsvTransformer()
    transformer.configure({f"csv.{key}": value for key, value in props.items()})
    return transformer


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(csv(**props).batches(io.BytesIO(data), start))


def test_rows_are_objects_of_texts_by_header():
    """Every row is an object of strings, named by the header, in its order."""
    values, error = read(b"id,name\n1,one\n02,\n")

    assert (values, error) == ([{"id": "1", "name": "one"}, {"id": "02", "name": ""}], None)
    assert [*values[0]] == ["id", "name"]


def test_the_schema_is_that_of_the_header():
    """The batch has one schema, a struct of optional strings."""
    (batch,) = csv().batches(io.BytesIO(b"id,name\n1,one\n"), Position())

    assert [(field.name, field.schema.type, field.schema.optional) for field in batch.schema.fields] == [
        ("id", "string", True),
        ("name", "string", True),
    ]


@pytest.mark.parametrize(
    ("data", "props"),
    [
        (b'a,b\r\n1,"x, ""y""\r\nz"\r\n', {}),
        (b'\xef\xbb\xbfa,b\r\n1,"x, ""y""\r\nz"', {}),
        (b"a;b\n1;'x, \"y\"\r\nz'\n", {"delimiter": ";", "quote": "'"}),
        (b'a\tb\n1\tx, "y"\\\r\\\nz\n', {"delimiter": "tab", "quote": "none", "escape": "\\"}),
        (b'1,"x, ""y""\r\nz"\n', {"header": "false", "columns": "a,b"}),
        (b'A,B\n1,"x, ""y""\r\nz"\n', {"columns": "a,b"}),
    ],
)
def test_dialects(data, props):
    """Delimiters, quotes, escapes, line ends in fields, byte order marks and missing headers are read as told."""
    assert read(data, **props) == ([{"a": "1", "b": 'x, "y"\r\nz'}], None)


def test_without_header_and_names_fields_are_numbered():
    """Without a header, and without names, fields are c1, c2 and so on."""
    assert read(b"1,2\n3,4\n", header="false") == ([{"c1": "1", "c2": "2"}, {"c1": "3", "c2": "4"}], None)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"a,b\n", b"\xef\xbb\xbfa,b", b"\r\n"])
def test_a_header_alone_is_no_record(data):
    """An object without rows gives no batch and no error."""
    assert read(data) == ([], None)


def test_blank_lines_are_no_records_but_lines():
    """Blank lines are skipped, before the header too, and count where lines are numbered."""
    (batch,) = csv().batches(io.BytesIO(b"\na,b\n\n1,2\n\r\n3,4\n\n"), Position())

    assert [value["a"] for value in batch.values] == ["1", "3"]
    assert batch.position_at(1) == Position(records=1, byte=10, line=4)
    assert batch.end == Position(records=2, byte=16, line=6)
    assert read(b"a,b\n\n\n1\n")[1].where.position == "line 4"


def test_position_behind_a_row_of_many_lines():
    """The place behind a row is behind its last line, and errors name its first."""
    data = b'a,b\n1,"x\ny"\n2,"\n\n"\n3\n'
    (batch,) = list(csv().batches(ScriptedStream([data[:-2]]), Position()))[:1]

    assert batch.position_at(1) == Position(records=1, byte=12, line=3)
    assert batch.position_at(2) == Position(records=2, byte=19, line=6)
    assert read(data)[1].where.position == "line 7"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"1\n", "has 1 fields, and there are 2 columns"),
        (b"1,2,3\n", "has 3 fields, and there are 2 columns"),
        (b'1,"2\n', "a quote is never closed"),
        (b'1,"2"3\n', "',' expected after '\"'"),
        (b"1,\xff\n", "not UTF-8 (invalid start byte at byte 3)"),
        (b"1,2\r3,4\n", "a carriage return without a line feed"),
        ("1,2\n".encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_is_bad_is_named(bad, words):
    """Finding 2: a bad row is an error with the number of its line, after all rows before it; never silence."""
    values, error = read(b"a,b\n5,6\n\n7,8\n" + bad)

    assert [value["a"] for value in values] == ["5", "7"]
    assert isinstance(error, DataError)
    assert error.where.position == "line 5"
    assert words in error.message
    assert "\n" not in str(error)


def test_a_header_with_one_name_twice_is_refused():
    """Two fields of one name would hide each other: the header's line is named, and the way out."""
    error = read(b"\na,b,a\n1,2,3\n")[1]

    assert error.where.position == "line 2"
    assert "'a' twice" in error.message
    assert read(b"a,b,a\n1,2,3\n", columns="a,b,c") == ([{"a": "1", "b": "2", "c": "3"}], None)


def test_types_by_name():
    """Named fields have the types that were asked for, null where they are empty; the others are texts."""
    (batch,) = csv(
        types="i:int64, s:int8,f:float64,b:boolean,d:decimal(2),day:date,at:timestamp,t:time",
    ).batches(
        io.BytesIO(
            b"i,s,f,b,d,day,at,t,x\n"
            b"9223372036854775807,-128,1e3,TRUE,12.5,1970-01-02,1970-01-01T01:00:00.25+01:00,00:00:01.5,7\n"
            b",,,,,,,,\n"
        ),
        Position(),
    )

    assert list(batch.values[0].values()) == [2**63 - 1, -128, 1000.0, True, Decimal("12.5"), 1, 250, 1500, "7"]
    assert list(batch.values[1].values()) == [None] * 8 + [""]
    names = {field.name: field.schema.name for field in batch.schema.fields}
    assert (names["d"], names["day"], names["at"], names["i"]) == (DECIMAL, DATE, TIMESTAMP, None)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int64", "9223372036854775808"),
        ("int8", "128"),
        ("int32", "1.0"),
        ("float64", "nan"),
        ("float64", "1e999"),
        ("boolean", "yes"),
        ("decimal(2)", "1.234"),
        ("decimal(2)", "inf"),
        ("date", "31.12.2024"),
        ("timestamp", "soon"),
        ("time", "25:00"),
        ("time", "00:00:00.0009"),
        ("time", "12:00:00+05:00"),
        ("timestamp", "2024-12-31T23:59:59.123456Z"),
        ("timestamp", "2024-12-31T23:59:59.1230000001+01:00"),
    ],
)
def test_a_text_of_another_type_is_an_error(kind, text):
    """Finding 2: what is not of the type that was asked for is named with line and field; nothing becomes null."""
    values, error = read(f"a,b\n1,\n2,{text}\n3,\n".encode(), types=f"b:{kind}")

    assert len(values) == 1
    assert error.where.position == "line 3"
    assert "the field 'b' is n" in error.message


def test_inferred_types_are_those_of_each_field():
    """Each field by itself is an integer, a number, true, false or null; what would lose something stays a text."""
    data = b"a\n1\n-0\n007\n9223372036854775808\n1.50\n1e3\n1e999\ntrue\nTrue\n''\nx\nNaN\n"
    values, error = read(data, types="inferred", quote="'")

    assert error is None
    assert [value["a"] for value in values] == [
        1, 0, "007", "9223372036854775808", 1.5, 1000.0, "1e999", True, "True", None, "x", "NaN",
    ]  # fmt: skip


def test_a_text_stands_for_null():
    """csv.null is null in every field, whatever its type."""
    assert read(b"a,b\n\\N,\\N\n", null="\\N", types="b:int32") == ([{"a": None, "b": None}], None)


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"delimiter": ",,"}, "csv.delimiter"),
        ({"delimiter": "none"}, "csv.delimiter"),
        ({"quote": "é"}, "csv.quote"),
        ({"header": "yes"}, "csv.header"),
        ({"types": "a:int128"}, "csv.types"),
        ({"types": "numbers"}, "csv.types"),
        ({"seperator": ";"}, "csv.seperator"),
        ({"quote": ","}, "csv.quote"),
        ({"delimiter": ";", "escape": ";"}, "csv.escape"),
        ({"escape": '"'}, "csv.escape"),
        ({"columns": "a,b,a"}, "csv.columns"),
        ({"columns": "a", "types": "b:int64"}, "csv.types"),
    ],
)
def test_impossible_settings_are_faults(props, key):
    """What a key cannot be, and a key that there is not, is a fault of the configuration with its key."""
    with pytest.raises(ConfigError) as raised:
        csv(**props)

    assert [fault.key for fault in raised.value.faults] == [key]


def test_a_type_for_no_field_is_an_error():
    """A type for a field that an object does not have is named, with the fields that there are."""
    assert "csv.types names 'c', and the fields are a, b" in read(b"a,b\n1,2\n", types="c:int32")[1].message


def test_a_stream_that_fails_is_no_end():
    """Finding 2: the stream's error passes as it is, after every row that was complete."""
    fault = RetriableError("the connection broke")
    stream = ScriptedStream([b"a,b\n1,2\n3,", b'"4\n', b'"\n5,', fault])

    values, error = drained(csv().batches(stream, Position()))

    assert [value["b"] for value in values] == ["2", "4\n"]
    assert error is fault


@pytest.mark.parametrize("row", [b"1,%s\n" % (b"x" * 200), b'1,"%s"\n' % (b"x\n" * 100), b'1,"' + b"x\n" * 500_000])
def test_a_row_has_a_largest_size(row):
    """A row of more than max.record.bytes is an error with its line, and is not read to its end."""
    data = b"a,b\n1,2\n" + row + b"3,4\n" * 2
    transformer = CsvTransformer()
    transformer.configure({"max.record.bytes": "150"})
    stream = ScriptedStream([data[at : at + 100] for at in range(0, len(data), 100)])

    values, error = drained(transformer.batches(stream, Position()))

    assert values == [{"a": "1", "b": "2"}]
    assert error.where.position == "line 3"
    assert "max.record.bytes" in error.message


def test_quotes_in_a_field_cost_time_in_proportion():
    """A field of five million doubled quotes is read at once; with a copy of it for each, the test would time out."""
    field = '"' * 5_000_000

    values, error = read(b'a,b\n1,"%b"\n' % field.replace('"', '""').encode())

    assert (values, error) == ([{"a": "1", "b": field}], None)


def test_a_field_may_be_larger_than_the_standard_library_likes():
    """Fields of more than 128 kB are no error."""
    assert len(read(b'a\n"' + b"x" * 1_000_000 + b'"\n')[0][0]["a"]) == 1_000_000


def test_progress_by_count_alone_skips_rows():
    """With records but no place, or in a stream without another way, that many rows are passed over."""
    data = b"a\n1\n\n2\n3\n"

    assert read(data, Position(records=2)) == ([{"a": "3"}], None)
    assert read(data, Position(records=2, byte=7, line=4)) == ([{"a": "3"}], None)
    assert read(data, Position(records=9)) == ([], None)


def test_a_long_object_comes_in_bounded_batches():
    """A batch has at most 2000 values, and its positions join up."""
    batches = list(csv().batches(io.BytesIO(b"a,b\n" + b"1,\n" * 12_000), Position()))

    assert max(len(batch.values) for batch in batches) <= 2000
    assert sum(len(batch.values) for batch in batches) == 12_000
    assert [batch.end for batch in batches[:-1]] == [batch.position_at(0) for batch in batches[1:]]
