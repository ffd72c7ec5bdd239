import io
import json

import pytest

from headrace.framework.errors import ConfigError, DataError, RetriableError
from headrace.framework.schema import JSON_TEXT
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers import json_elements
from headrace.transformers.base import Position
from headrace.transformers.json import JsonTransformer


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    transformer = JsonTransformer()
    transformer.configure({key.replace("_", "."): value for key, value in props.items()})
    return drained(transformer.batches(io.BytesIO(data), start))


@pytest.mark.parametrize("data", [b'{"a": [1, 2.50]}', b' \r\n{"a":[1,2.50]}\n', b'\xef\xbb\xbf{"a"\t:[1,\n2.50]}'])
def test_a_document_is_one_record(data):
    """A document is one record, its digits kept, without the white space around it and in it."""
    assert read(data) == ([b'{"a":[1,2.50]}'], None)


@pytest.mark.parametrize("document", [b"12", b"-1.5e3", b'"a b"', b"null", b"true", b"{}"])
def test_a_scalar_is_a_document(document):
    """Whatever JSON calls a value may be the document."""
    assert read(document) == ([document], None)


def test_elements_of_an_array_are_records():
    """The elements of an array are records, of any kind, in their order, and with nothing in them changed."""
    data = b'\n[ {"b": 1.0, "a": "x  y"},\n 1e400 , [ 1 ],null,"\\u00e9, ]" , 12345678901234567890123]\n '

    values, error = read(data)

    assert values == [b'{"b":1.0,"a":"x  y"}', b"1e400", b"[1]", b"null", b'"\\u00e9, ]"', b"12345678901234567890123"]
    assert error is None


@pytest.mark.parametrize("data", [b"", b"[]", b" [ ] ", b"\xef\xbb\xbf[]"])
def test_nothing_in_it_is_no_record(data):
    """An object without bytes, and an empty array, have no record."""
    assert read(data) == ([], None)


def test_values_are_json_text():
    """The values say that they are JSON texts, so that the json converter passes them on."""
    (batch,) = JsonTransformer().batches(io.BytesIO(b"[1]"), Position())

    assert batch.schema is JSON_TEXT


def test_position_is_behind_an_element():
    """Reading goes on right behind an element, before the comma."""
    (batch,) = JsonTransformer().batches(io.BytesIO(b'[ 1 , "22"]'), Position())

    assert [batch.position_at(n) for n in range(3)] == [
        Position(),
        Position(records=1, byte=3, inside=1),
        Position(records=2, byte=10, inside=1),
    ]


@pytest.mark.parametrize(
    ("data", "values", "position", "words"),
    [
        (b"  ", [], "record 1", "ends in the middle"),
        (b"\xef\xbb\xbf", [], "record 1", "ends in the middle"),
        (b"[", [], "record 1", "ends in the middle"),
        (b"[1,2", [b"1", b"2"], "record 3", "ends in the middle"),
        (b"[1,", [b"1"], "record 2", "ends in the middle"),
        (b'[1,{"a', [b"1"], "record 2", "Unterminated string"),
        (b"[1 2]", [b"1"], "record 2", "neither a comma nor the array's end at byte 4"),
        (b"[1,]", [b"1"], "record 2", "(Expecting value) at byte 4"),
        (b"[1,2]x", [b"1", b"2"], "record 3", "something follows the array at byte 6"),
        (b"[1,NaN]", [b"1"], "record 2", "no NaN in JSON"),
        (b"[1,-Infinity]", [b"1"], "record 2", "no -Infinity in JSON"),
        (b'[1,{"a":\x00}]', [b"1"], "record 2", "not one JSON value"),
        (b'[1,"\xff"]', [b"1"], "record 2", "not UTF-8"),
        (b"[1," + b"[" * 600 + b"]" * 600 + b",3]", [b"1"], "record 2", "nested more than 500 deep"),
        (b"[1," + b"[" * 100_000, [b"1"], "record 2", "nested too deep"),
        (b'{"a":1}\n{"a":2}', [], "record 1", "input.format=jsonl"),
        (b'{"a":1', [], "record 1", "not a JSON value"),
        (b"tru", [], "record 1", "not a JSON value"),
        ("[1]".encode("utf-16"), [], "record 1", "not a JSON value"),
        (b"\x1f\x8b\x08abc", [], "record 1", "not a JSON value"),
    ],
)
def test_what_is_bad_is_named(data, values, position, words):
    """Finding 2: what cannot be read is an error with the record's number, after all before it; never silence."""
    found, error = read(data)

    assert found == values
    assert isinstance(error, DataError)
    assert error.where.position == position
    assert words in error.message
    assert "\n" not in str(error)


def test_a_stream_that_fails_is_no_end():
    """Finding 2: the stream's error passes as it is, after every element that was complete."""
    fault = RetriableError("the connection broke")

    assert drained(JsonTransformer().batches(ScriptedStream([b'[1,{"a":', b"2},3", fault]), Position())) == (
        [b"1", b'{"a":2}'],
        fault,
    )


def test_an_error_comes_as_soon_as_it_is_seen():
    """Bad JSON is found where it stands, without reading up to the limit for a record's end."""
    stream = ScriptedStream([b"[1,{]" + b" " * 100, RetriableError("nobody reads so far")])

    values, error = drained(JsonTransformer().batches(stream, Position()))

    assert values == [b"1"]
    assert isinstance(error, DataError)


@pytest.mark.parametrize(
    "data", [b'[1,"%s",2]' % (b"x" * 100), b'[1,"%s' % (b"x" * 3_000_000), b"[1," + b" " * 999_999]
)
def test_a_record_has_a_largest_size(data):
    """A record of more than max.record.bytes is an error that says so, and is not read to its end."""
    stream = ScriptedStream([data[at : at + 1000] for at in range(0, len(data), 1000)])
    transformer = JsonTransformer()
    transformer.configure({"max.record.bytes": "100"})

    values, error = drained(transformer.batches(stream, Position()))

    assert values == [b"1"]
    assert error.where.position == "record 2"
    assert "max.record.bytes" in error.message
    assert not stream.closed_cleanly


def test_the_limit_itself_is_allowed():
    """A record of exactly max.record.bytes is read, and 0 is no limit."""
    data = json.dumps(["x" * 98]).encode()

    assert read(data, max_record_bytes="100")[1] is None
    assert read(data, max_record_bytes="99")[1] is not None
    assert read(data, max_record_bytes="0")[1] is None


def test_a_limit_that_is_none_is_a_fault():
    """A limit that is no number is refused with its key."""
    with pytest.raises(ConfigError, match=r"max\.record\.bytes: must be a whole number"):
        read(b"", max_record_bytes="many")


def test_a_half_read_array_is_still_half_after_a_resume():
    """Finding 2: an array that lacks its end lacks it for whoever goes on behind its last element, too."""
    values, error = read(b'[{"a":1}', Position(records=1, byte=8, inside=1))

    assert values == []
    assert "ends in the middle" in error.message
    assert error.where.position == "record 2"


def test_behind_a_document_there_is_nothing():
    """A document that was given out is not given out again, and what follows it is an error."""
    assert read(b"{} \n", Position(records=1, byte=2, inside=2)) == ([], None)
    assert "something follows" in read(b"{} {}", Position(records=1, byte=2, inside=2))[1].message


def test_progress_by_count_alone_skips_elements():
    """With records but no place in the array, that many elements are passed over."""
    assert read(b"[1,2,3]", Position(records=2)) == ([b"3"], None)
    assert read(b"[1,2,3]", Position(records=2, byte=5)) == ([b"3"], None)
    assert read(b"[1,2,3]", Position(records=9)) == ([], None)


def test_a_long_array_comes_in_bounded_batches():
    """A batch has at most 5000 values, and its positions join up."""
    data = b"[" + b"1," * 12_000 + b"1]"
    batches = list(JsonTransformer().batches(io.BytesIO(data), Position()))

    assert max(len(batch.values) for batch in batches) <= 5000
    assert sum(len(batch.values) for batch in batches) == 12_001
    assert [batch.end for batch in batches[:-1]] == [batch.position_at(0) for batch in batches[1:]]


def test_a_large_record_is_scanned_a_few_times_only():
    """An element of many reads is put together without looking at its beginning again for each of them."""
    element = json.dumps({"text": "x" * 8_000_000}, separators=(",", ":")).encode()
    stream = ScriptedStream(
        [b"[" + element[:1000], *(element[at : at + 20_000] for at in range(1000, len(element), 20_000)), b"]"]
    )

    assert drained(JsonTransformer().batches(stream, Position())) == ([element], None)


@pytest.mark.parametrize("number", [b"1.5e+10", b"-0.25", b"1E-5", b"12"])
def test_a_number_is_whole_wherever_a_read_ends(number):
    """Half a number may be one as well: where a read ends in it, the rest is waited for."""
    data = b"[" + number + b"," + number + b"]"

    for cut in range(len(data)):
        found = drained(JsonTransformer().batches(ScriptedStream.cut(data, cut), Position()))
        assert found == ([number, number], None)


def test_looking_for_objects_that_begin_alike_costs_no_more_than_they_are(monkeypatch):
    """In an array of objects with something else after every other one, few bytes are looked at more than once."""
    looked_at = []
    data = b"[" + b",".join([b'{"id":1,"v":2}', b'{"id":2,"v":3}', b"null"] * 3000) + b"]"

    def noted(values, checked=json_elements.first_bad):
        looked_at.append(sum(map(len, values)))
        return checked(values)

    monkeypatch.setattr(json_elements, "first_bad", noted)
    values, error = read(data)

    assert (len(values), error) == (9000, None)
    assert sum(looked_at) < 60 * len(data)
