import pickle
import sys
from decimal import Decimal

import pytest

from headrace.converters import json_text
from headrace.converters.bytes import BytesConverter
from headrace.converters.json import JsonConverter
from headrace.converters.string import StringConverter
from headrace.framework.connect_text import java_double
from headrace.framework.errors import ConfigError, DataError
from headrace.framework.schema import BYTES, JSON_TEXT, STRING
from headrace.framework.stage import Stage

ALL = pytest.mark.parametrize(
    "converter", [BytesConverter(), StringConverter(), JsonConverter()], ids=lambda one: type(one).__name__
)


@pytest.fixture(params=["orjson", "stdlib"])
def writer(request, monkeypatch):
    if request.param == "stdlib":
        monkeypatch.setitem(sys.modules, "orjson", None)
    json_text.quick_dumps.cache_clear()
    yield request.param
    json_text.quick_dumps.cache_clear()


@ALL
def test_none_is_a_null_on_the_topic(converter):
    """None becomes a null, in every converter, with and without a schema."""
    assert converter.convert("t", None, None) is None
    assert converter.convert("t", STRING, None) is None
    assert list(converter.convert_all("t", STRING, [None, None])) == [None, None]


@ALL
def test_json_text_goes_on_untouched(converter):
    """A JSON text keeps its digits, spaces and member order in every converter, and many of them are not copied."""
    text = b'{"b": 1.50, "a":1e400}'
    values = [text, b"null"]
    schema = pickle.loads(pickle.dumps(JSON_TEXT))  # noqa: S301 - as on the way to an executor

    assert converter.convert("t", schema, text) == text
    assert converter.convert_all("t", schema, values) is values
    assert converter.convert_all("t", JSON_TEXT, values) is values


@ALL
def test_many_are_converted_as_one_by_one(converter):
    """Converting many values gives what converting each of them gives."""
    values = [b"a", None, b"b"]

    assert list(converter.convert_all("t", BYTES, values)) == [converter.convert("t", BYTES, value) for value in values]


@pytest.mark.parametrize("value", [b"", b"\xff\x00", bytearray(b"ab"), memoryview(b"ab")])
def test_bytes_take_bytes(value):
    """The bytes converter takes whatever is bytes, as it is."""
    converted = BytesConverter().convert("t", BYTES, value)

    assert type(converted) is bytes
    assert converted == bytes(value)
    assert BytesConverter().convert_all("t", BYTES, [value]) == [bytes(value)]


@pytest.mark.parametrize("value", ["text", 1, {"a": 1}])
def test_bytes_take_nothing_else(value):
    """The bytes converter names the type of what it does not take, and the converters that do."""
    with pytest.raises(DataError, match=f"takes bytes, not {type(value).__name__}") as raised:
        BytesConverter().convert_all("t", None, [b"a", value])

    assert raised.value.where.stage is Stage.CONVERT


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é\U0001f600", "é\U0001f600"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (1.0, "1.0"),
        (1e10, "1.0E10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (b"caf\xc3\xa9", "café"),
        ({"a": 1, "b": [None, True, "x"]}, "{a=1, b=[null, true, x]}"),
    ],
)
def test_string_writes_as_java_does(value, text):
    """The string converter writes what Java's toString writes, in UTF-8."""
    assert StringConverter().convert("t", None, value) == text.encode()
    assert StringConverter().convert_all("t", None, ["a", value]) == [b"a", text.encode()]


@pytest.mark.parametrize("value", [b"\xff", "\ud800", {"a": b"\xff"}])
def test_string_refuses_what_is_no_utf8(value):
    """The string converter replaces nothing: what is no UTF-8 is an error with its cause."""
    with pytest.raises(DataError, match="use the bytes converter") as raised:
        StringConverter().convert_all("t", None, ["a", value])

    assert raised.value.where.stage is Stage.CONVERT
    assert isinstance(raised.value.__cause__, UnicodeError)


def test_string_names_what_it_cannot_write():
    """A value without a form in Java is named by its type."""
    with pytest.raises(DataError, match="cannot write this object"):
        StringConverter().convert("t", None, object())


def test_string_writes_utf8_only():
    """Another encoding is refused with its key, not ignored."""
    StringConverter().configure({"converter.encoding": "utf8"}, is_key=False)

    with pytest.raises(ConfigError, match=r"key\.converter\.converter\.encoding: .* not written yet"):
        StringConverter().configure({"converter.encoding": "ISO-8859-1"}, is_key=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"b":1,"a":[true,null,"x"]}'),
        ("\"\\\b\f\n\r\t\x00\x1f/<>&'\x7f\u2028é", '"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001F/<>&\'\x7f\u2028é"'),
        ("\U0001f600", '"\\uD83D\\uDE00"'),
        ({"\U0001f600": "\x0b"}, '{"\\uD83D\\uDE00":"\\u000B"}'),
        ("\ud83d", '"\\uD83D"'),
        (b"\x00\xff", '"AP8="'),
        ({"raw": memoryview(b"ab"), "list": (1, 2)}, '{"raw":"YWI=","list":[1,2]}'),
        ([0.0, -0.0, 1.5, 1e7, 1e-5, 12345678.9], "[0.0,-0.0,1.5,1.0E7,1.0E-5,1.23456789E7]"),
        (12345678901234567890123, "12345678901234567890123"),
        ({1: "a", "b": 2}, '[[1,"a"],["b",2]]'),
        ("\\u00e9", '"\\\\u00e9"'),
        ("", '""'),
    ],
)
@pytest.mark.usefixtures("writer")
def test_json_writes_as_connect_does(value, text):
    """The json converter writes Kafka Connect's bytes, whatever is installed."""
    assert JsonConverter().convert("t", None, value) == text.encode()
    assert JsonConverter().convert_all("t", None, [value, None]) == [text.encode(), None]


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "no NaN in JSON"),
        ({"a": [float("inf")]}, "no Infinity in JSON"),
        ({"a": Decimal(1)}, "no form for Decimal"),
        (10**5000, "cannot write this int"),
        (_nested(100_000), "cannot write this list"),
    ],
    ids=["nan", "infinity", "decimal", "digits", "depth"],
)
@pytest.mark.usefixtures("writer")
def test_json_names_what_it_cannot_write(value, reason):
    """What JSON has no form for is an error that says what it is; nothing becomes null in silence."""
    with pytest.raises(DataError, match=reason) as raised:
        JsonConverter().convert("t", None, value)

    assert raised.value.where.stage is Stage.CONVERT


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"schemas.enable": "yes"}, r"value\.converter\.schemas\.enable: must be true or false"),
        ({"decimal.format": "text"}, r"value\.converter\.decimal\.format: must be base64 \| numeric"),
    ],
)
def test_json_refuses_impossible_settings(props, message):
    """What a key cannot be is a fault that names the key with its beginning."""
    with pytest.raises(ConfigError, match=message):
        JsonConverter().configure(props, is_key=False)


@pytest.mark.parametrize("props", [{}, {"schemas.enable": "false"}, {"schemas.enable": " FALSE "}])
def test_json_is_without_schemas(props):
    """Without being asked, the json converter writes no envelope."""
    converter = JsonConverter()
    converter.configure(props, is_key=True)

    assert converter.convert("t", STRING, "x") == b'"x"'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.234567e7, "1.234567E7"),
        (1e10, "1.0E10"),
        (1e-5, "1.0E-5"),
        (-2.5e-7, "-2.5E-7"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e23, "1.0E23"),
        (2e-323, "2.0E-323"),
    ],
)
def test_doubles_as_java_writes_them(value, text):
    """Doubles have the digits and the exponent that Double.toString gives them."""
    assert java_double(value) == text
