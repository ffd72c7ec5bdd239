import io
import json
import subprocess
import sys
import tracemalloc
from itertools import chain, islice, repeat

import pytest

from headrace.framework.errors import RetriableError
from headrace.framework.schema import JSON_TEXT
from headrace.framework.stage import Stage
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers import json_check
from headrace.transformers.base import Position
from headrace.transformers.jsonl import JsonlTransformer


@pytest.fixture(params=["msgspec", "stdlib"], autouse=True)
def parser(request, monkeypatch):
    if request.param == "stdlib":
        monkeypatch.setitem(sys.modules, "msgspec", None)
    json_check.quick_check.cache_clear()
    yield request.param
    json_check.quick_check.cache_clear()


def read(data, start=Position()):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(JsonlTransformer().batches(io.BytesIO(data), start))


def test_values_are_the_bytes_of_their_lines():
    """A value is its line, byte for byte: digits, inner spaces, member order and repeated names included."""
    lines = [b'{"b": 1.50, "a":1e400,"a":2}', b"12345678901234567890123", b'"\\u00e9"', b"null", b"[ ]"]

    assert (lines, None) == read(b"\n".join(lines))


def test_schema_is_json_text():
    """The values say that they are JSON texts, so that the json converter passes them on."""
    (batch,) = JsonlTransformer().batches(io.BytesIO(b"1\n"), Position())

    assert batch.schema is JSON_TEXT


def test_white_space_around_is_stripped():
    """Carriage returns, tabs and spaces around a value are none of its bytes."""
    assert read(b"  1\r\n\t[2] \r\n3\r") == ([b"1", b"[2]", b"3"], None)


def test_blank_lines_are_no_records_but_lines():
    """A blank line is skipped, not counted as a record, and counted where lines are numbered."""
    (batch,) = JsonlTransformer().batches(io.BytesIO(b"\n1\n \t\r\n\n2\n\n"), Position())

    assert batch.values == [b"1", b"2"]
    assert batch.position_at(1) == Position(records=1, byte=3, line=2)
    assert batch.end == Position(records=2, byte=10, line=5)


def test_last_line_needs_no_end():
    """An object's last line is a record with and without its end, and the place behind it is the object's end."""
    first, last = JsonlTransformer().batches(io.BytesIO(b"1\n22"), Position())

    assert (first.values, last.values) == ([b"1"], [b"22"])
    assert last.end == Position(records=2, byte=4, line=2)


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \r\n ", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_nothing_but_white_space_gives_nothing(data):
    """An object without a value gives no batch and no error."""
    assert read(data) == ([], None)


def test_byte_order_mark_is_skipped_at_the_start_only():
    """A byte order mark before the first line is no part of it; anywhere else it is bad JSON."""
    values, error = read(b"\xef\xbb\xbf1\n2\n\xef\xbb\xbf3\n")

    assert values == [b"1", b"2"]
    assert error.where.position == "line 3"


def test_byte_order_mark_behind_a_read_or_a_resume_is_bad():
    """Only the object can begin with a byte order mark: a read, or a place to go on at, cannot."""
    mark = b"\xef\xbb\xbf"
    reads = ScriptedStream([b"1\n", mark + b"2\n"])

    values, error = drained(JsonlTransformer().batches(reads, Position()))
    assert (values, error.where.position) == ([b"1"], "line 2")
    values, error = read(mark + b"2\n", Position(records=1, byte=2, line=1))
    assert (values, error.where.position) == ([], "line 2")


def test_byte_order_mark_counts_as_bytes():
    """Positions behind a byte order mark count its three bytes, and resuming there gives the rest."""
    data = b"\xef\xbb\xbf1\n2\n"
    (batch,) = JsonlTransformer().batches(io.BytesIO(data), Position())
    middle = batch.position_at(1)

    assert middle == Position(records=1, byte=5, line=1)
    assert read(data[middle.byte :], middle) == ([b"2"], None)


BAD = [
    b"{",
    b'{"a":1',
    b"1 2",
    b"{}{}",
    b"[1,]",
    b"{'a':1}",
    b"NaN",
    b"[-Infinity]",
    b"01",
    b"1.",
    b"+1",
    b"nul",
    b'"\x01"',
    b'"\\x"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"\xc3',
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b"1,2",
    b"1\x0b",
]


@pytest.mark.parametrize("bad", BAD[:-1])
def test_bad_line_is_an_error_with_its_number(bad):
    """Finding 2: a bad record is an error that names stage, line and cause, after all before it; never silence."""
    values, error = read(b'{"n":1}\n\n[2]\n' + bad + b'\n{"n":5}\n')

    assert values == [b'{"n":1}', b"[2]"]
    assert error.where.stage is Stage.TRANSFORM
    assert error.where.position == "line 4"
    assert isinstance(error.__cause__, ValueError)
    assert "\n" not in str(error)
    assert "input.format=text" in str(error)


def test_all_other_white_space_of_ascii_counts_as_white_space():
    """Vertical tabs and form feeds around a value are stripped as trim() does in Kafka Connect's source."""
    assert read(BAD[-1]) == ([b"1"], None)


@pytest.mark.parametrize(
    "good",
    [
        b"1" * 5000,
        b"-0",
        b"1e999",
        b'"\\ud800"',
        b'{"a":1,"a":1}',
        '"é\u2028\U0001f600\x7f"'.encode(),
        b'{"\\u0000":[true,false,null,{}]}',
    ],
)
def test_every_json_value_passes(good):
    """Whatever RFC 8259 calls a value is a record, also where parsers give up: digits, lone surrogates, infinities."""
    assert read(good) == ([good], None)


def test_deep_nesting_is_an_error_at_one_depth():
    """Nesting passes to a fixed depth, and is named beyond it, whatever the parser and the stack could bear."""
    deep, deeper = (b"[" * depth + b"]" * depth for depth in (json_check.MAX_DEPTH, json_check.MAX_DEPTH + 1))
    brackets_in_strings = json.dumps({"text": "[{" * 5000, "list": [[]] * 600}).encode()

    assert read(deep + b"\n" + brackets_in_strings) == ([deep, brackets_in_strings], None)
    for bad in (deeper, b"[" * 100_000, b'[{"a":' * 600):
        values, error = read(b"1\n" + bad)
        assert values == [b"1"]
        assert error.where.position == "line 2"
        assert "nested" in error.message


def test_nesting_never_exhausts_the_stack():
    """Where the stack is nearly used up, nesting that would pass elsewhere passes or is an error of the data."""
    code = (
        "import sys\n"
        "from headrace.transformers.json_check import check\n"
        "sys.setrecursionlimit(200)\n"
        "try:\n"
        "    check(b'[' * 400 + b']' * 400)\n"
        "except ValueError as error:\n"
        "    assert 'nested' in str(error)\n"
    )

    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_line_number_of_a_bad_record_far_into_the_object():
    """A bad record at line 31,337 is named by that number, in plain digits, and 31,336 records come before it."""
    data = b"".join(chain(repeat(b'{"n":1}\n', 31_336), [b"{bad}\n"], repeat(b"{}\n", 10)))

    values, error = read(data)

    assert len(values) == 31_336
    assert error.where.position == "line 31337"


def test_line_numbers_go_on_after_a_resume():
    """After resuming at a byte, lines are numbered from the object's beginning."""
    data = b"1\n\n2\nbad\n"

    values, error = read(data[3:], Position(records=1, byte=3, line=2))

    assert values == [b"2"]
    assert error.where.position == "line 4"


def test_progress_from_kafka_connect_skips_records_unjudged():
    """With records but no byte, that many non-blank lines are skipped without being judged, and lines are counted."""
    data = b"1\n\nbad\n\n3\nworse\n"

    values, error = read(data, Position(records=2))

    assert values == [b"3"]
    assert error.where.position == "line 6"


def test_position_after_skipping_counts_everything():
    """After skipping by count, positions hold the records, bytes and lines that were skipped."""
    (batch,) = JsonlTransformer().batches(io.BytesIO(b"1\n\n2\n3\n"), Position(records=2))

    assert batch.values == [b"3"]
    assert batch.position_at(0) == Position(records=2, byte=5, line=3)
    assert batch.end == Position(records=3, byte=7, line=4)


def test_progress_beyond_the_end_gives_nothing():
    """More records to skip than there are gives nothing, as in Kafka Connect's source."""
    assert read(b"1\n2\n", Position(records=25)) == ([], None)


def test_many_short_lines_come_in_bounded_batches():
    """A batch has at most 5000 values, however short the lines, and its positions join up."""
    batches = list(JsonlTransformer().batches(io.BytesIO(b"1\n" * 12_000), Position()))

    assert max(len(batch.values) for batch in batches) == 5000
    assert sum(len(batch.values) for batch in batches) == 12_000
    assert [batch.end for batch in batches[:-1]] == [batch.position_at(0) for batch in batches[1:]]


def test_error_of_the_stream_passes_through():
    """Finding 2: a stream that fails is no end: its error passes as it is, after every line that was complete."""
    fault = RetriableError("the connection broke")
    stream = ScriptedStream([b"1\n2\n3", b"3\n4", fault])

    values, error = drained(JsonlTransformer().batches(stream, Position()))

    assert error is fault
    assert values == [b"1", b"2", b"33"]


def test_half_a_line_at_a_clean_end_is_judged():
    """Finding 2: an object that was cut within its last record is an error, not a shorter object."""
    values, error = read(b'{"a":1}\n{"a":')

    assert values == [b'{"a":1}']
    assert error.where.position == "line 2"


def test_memory_is_that_of_a_chunk():
    """Two hundred megabytes of lines pass with a few megabytes of memory."""
    line = json.dumps({"text": "x" * 4000}).encode() + b"\n"
    stream = _Endless(line * 64, 200_000_000)
    count = 0

    tracemalloc.start()
    try:
        for batch in JsonlTransformer().batches(stream, Position()):
            count += len(batch.values)
            assert batch.end.records == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count * len(line) >= 200_000_000
    assert peak < 16_000_000


class _Endless:
    """A piece again and again, until there were so many bytes."""

    def __init__(self, piece, total):
        self.pieces = islice(repeat(piece), -(-total // len(piece)))

    def read(self, size):
        piece = next(self.pieces, b"")
        assert len(piece) <= size
        return piece


def test_one_by_one_says_the_same():
    """transform() gives each value with its schema and the place right behind it."""
    pairs = list(JsonlTransformer().transform(io.BytesIO(b"1\n\n2\n"), Position()))

    assert [value.value for value, _ in pairs] == [b"1", b"2"]
    assert {value.schema.name for value, _ in pairs} == {"headrace.JsonText"}
    assert [place.byte for _, place in pairs] == [2, 5]


def test_key_is_the_name_of_the_object():
    """Records are keyed by their object's name."""
    assert JsonlTransformer().key("logs/é.jsonl") == "logs/é.jsonl".encode()


@pytest.mark.parametrize(
    "pieces",
    [
        [b"1\n22\n333\n4444\n5\n"],
        [b"1\n2", b"2\n33", b"3\n44", b"44\n5\n"],
        [b"1\n22\n333\n", b"4444", b"4" * 100_000, b"nobody reads this"],
        [b"1\n22\n333\n", b"4444"],
    ],
)
def test_a_line_has_a_largest_size(pieces):
    """A line of more than max.record.bytes is an error with its number, after all before it; it is not read whole."""
    transformer = JsonlTransformer()
    transformer.configure({"max.record.bytes": "3"})
    stream = ScriptedStream(pieces)

    values, error = drained(transformer.batches(stream, Position()))

    assert values == [b"1", b"22", b"333"]
    assert error.where.position == "line 4"
    assert "max.record.bytes" in error.message


def test_line_numbers_of_long_lines_go_on_after_a_resume():
    """After a resume, a line that is too long has its number from the object's beginning."""
    transformer = JsonlTransformer()
    transformer.configure({"max.record.bytes": "3"})

    _, error = drained(transformer.batches(io.BytesIO(b"1\n4444\n"), Position(records=7, byte=70, line=9)))

    assert error.where.position == "line 11"


def test_without_a_limit_lines_are_as_long_as_they_are():
    """With max.record.bytes=0 there is no limit, and by default it is 64 MB."""
    transformer = JsonlTransformer()
    transformer.configure({"max.record.bytes": "0"})
    long = b"1" * 3_000_000

    assert drained(transformer.batches(io.BytesIO(long), Position())) == ([long], None)
    transformer.configure({})
    _, error = drained(transformer.batches(ScriptedStream([b"[" * 1_000_000] * 70), Position()))
    assert "67108864 bytes" in error.message
