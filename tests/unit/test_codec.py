"""The bytes of the offsets topic are those that Kafka Connect writes; what it skips is refused with a reason."""

import json
from pathlib import Path

import pytest

from headrace.framework.errors import MalformedOffsetError, OffsetValueError
from headrace.offsets.codec import decode_key, decode_value, encode_key, encode_value, key_prefix, key_spellings
from headrace.offsets.key import OffsetManagerKey

VECTORS = json.loads((Path(__file__).parents[1] / "data/offset-vectors.json").read_text())
EACH_VECTOR = pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: ascii(vector["objectKey"]))


def partition_of(vector):
    return {"bucket": VECTORS["bucket"], "objectKey": vector["objectKey"]}


@EACH_VECTOR
def test_keys_are_connects_in_both_orders(vector):
    """A source partition is encoded byte for byte as Kafka Connect does, its names in the order given (finding 10)."""
    partition = partition_of(vector)

    assert encode_key("s3-source", partition).hex() == vector["key_bucket_first_hex"]
    assert encode_key("s3-source", dict(reversed(partition.items()))).hex() == vector["key_objectKey_first_hex"]


@EACH_VECTOR
def test_both_orders_are_decoded_to_one_key(vector):
    """What Kafka Connect wrote in either order of names is one and the same key (finding 1)."""
    expected = ("s3-source", OffsetManagerKey(partition_of(vector)))

    assert decode_key(bytes.fromhex(vector["key_bucket_first_hex"])) == expected
    assert decode_key(bytes.fromhex(vector["key_objectKey_first_hex"])) == expected


def test_values_are_connects():
    """A record count is encoded byte for byte as Kafka Connect does, and comes back as an integer."""
    raw = encode_value({"recordCount": 3})

    assert raw is not None
    assert raw.hex() == VECTORS["value_recordCount_3_hex"]
    assert type(decode_value(raw)["recordCount"]) is int


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('a"b\\c/d', '"a\\"b\\\\c/d"'),
        ("\b\f\n\r\t", '"\\b\\f\\n\\r\\t"'),
        ("\x00\x1f\x7f", '"\\u0000\\u001F\x7f"'),
        ("<>&'\u2028\u2029é€", '"<>&\'\u2028\u2029é€"'),
        ("😀", '"\\uD83D\\uDE00"'),
        ("\udc80", '"\\uDC80"'),
    ],
)
def test_text_is_escaped_as_jackson_does(text, written):
    """Quotes, control characters and what is above U+FFFF are escaped, with upper-case digits, and nothing else is."""
    assert encode_value({"v": text}) == f'{{"v":{written}}}'.encode()


@pytest.mark.parametrize("text", ["\x1f", "😀"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_standard_library_writes_other_bytes(text, ascii_only):
    """`json.dumps` makes other bytes of control characters and of non-BMP text whatever its options (finding 10)."""
    naive = json.dumps(["c", {"k": text}], ensure_ascii=ascii_only, separators=(",", ":")).encode()

    assert naive != encode_key("c", {"k": text})
    assert decode_key(naive) == decode_key(encode_key("c", {"k": text}))


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.234567e7, "1.234567E7"),
        (1e10, "1.0E10"),
        (-1.5e-10, "-1.5E-10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
    ],
)
def test_floats_are_written_as_java_writes_doubles(number, written):
    """A float has a digit after its point, and Java's exponent below 0.001 and from ten million on."""
    assert encode_value({"v": number}) == f'{{"v":{written}}}'.encode()


def test_other_primitives_are_plain_json():
    """Booleans, null and the integers at both ends of 64 bits are written as JSON has them, without spaces."""
    properties = {"t": True, "f": False, "n": None, "max": 2**63 - 1, "min": -(2**63)}

    expected = b'{"t":true,"f":false,"n":null,"max":9223372036854775807,"min":-9223372036854775808}'
    assert encode_value(properties) == expected
    assert decode_value(expected) == properties


def test_a_tombstone_is_none_in_both_directions():
    """No value is no bytes and the other way round; a JSON null, which Kafka Connect reads the same way, too."""
    assert encode_value(None) is None
    assert decode_value(None) is None
    assert decode_value(b"null") is None


@pytest.mark.parametrize(
    "properties", [{"v": 2**63}, {"v": -(2**63) - 1}, {"v": float("nan")}, {"v": [1]}, {"v": {}}, {1: "v"}]
)
def test_what_cannot_be_stored_is_not_encoded(properties):
    """Nested values, names that are no strings and numbers that JSON or 64 bits cannot hold are refused."""
    with pytest.raises(OffsetValueError):
        encode_value(properties)
    with pytest.raises(OffsetValueError):
        encode_key("c", properties)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "has no key"),
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"session-key", "is not JSON"),
        (b'["c",{"v":NaN}]', "is not JSON"),
        (b'["c",{}] x', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a":1}', "is an object, not a list"),
        (b'"text"', "is a string, not a list"),
        (b"null", "is null, not a list"),
        (b'["c"]', "has 1 elements, not 2"),
        (b'["c",{},{}]', "has 3 elements, not 2"),
        (b"[1,{}]", "has a number as its first element"),
        (b"[null,{}]", "has null as its first element"),
        (b'["c",["v"]]', "has a list as its second element"),
        (b'["c",true]', "has a boolean as its second element"),
        (b'["c",{"v":{"nested":1}}]', "spread a nested value"),
        (b'["c",{"v":9223372036854775808}]', "integers have at most 64 bits"),
    ],
)
def test_a_malformed_key_is_refused_with_the_reason(raw, reason):
    """A key that Kafka Connect would skip is refused in one line that says why and shows the bytes."""
    with pytest.raises(MalformedOffsetError, match=reason) as caught:
        decode_key(raw)

    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    assert raw is None or repr(raw[:20])[1:-1] in message


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is not JSON"),
        (b'{"recordCount":3', "is not JSON"),
        (b"3", "is a number, not an object"),
        (b'[{"recordCount":3}]', "is a list, not an object"),
        (b'{"position":{"file":1}}', "spread a nested value"),
        (b'{"positions":[1,2]}', "spread a nested value"),
        (b'{"recordCount":9223372036854775808}', "integers have at most 64 bits"),
        (b'{"v":1e999}', "JSON knows no such number"),
        (b'{"recordCount":' + b"1" * 5000 + b"}", "is not JSON"),
    ],
)
def test_a_malformed_value_is_refused_with_the_reason(raw, reason):
    """A value that is not flat, or has an integer beyond 64 bits, is a `MalformedOffsetError`: nothing is rounded."""
    with pytest.raises(MalformedOffsetError, match=reason):
        decode_value(raw)


def test_foreign_json_of_the_right_form_is_read():
    """Spaces, escapes and floats that another writer chose are read like our own."""
    assert decode_key(b' [ "c" , { "k" : "\\u00e9\\/" } ] ') == ("c", OffsetManagerKey({"k": "é/"}))
    assert decode_value(b'{ "n": 3, "f": 1e3, "s": "\\ud83d\\ude00" }') == {"n": 3, "f": 1000.0, "s": "😀"}


def test_spellings_are_all_orders_of_a_key():
    """Every order in which a writer may have put the names is among the spellings, the order given first."""
    key = OffsetManagerKey({"a": 1, "b": 2, "c": 3})

    spellings = list(key_spellings("c", key))

    assert spellings[0] == b'["c",{"a":1,"b":2,"c":3}]'
    assert len(set(spellings)) == 6
    assert {decode_key(raw) for raw in spellings} == {("c", key)}


def test_the_prefix_tells_connectors_apart():
    """A key begins with its own connector's prefix and with no other's, even where one name continues the other."""
    raw = encode_key('s3"', {"k": 1})

    assert raw.startswith(key_prefix('s3"'))
    assert not raw.startswith(key_prefix("s3"))
    assert not encode_key("s3", {"k": 1}).startswith(key_prefix('s3"'))
