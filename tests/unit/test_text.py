import io

import pytest

from headrace.framework.errors import DataError
from headrace.framework.schema import STRING
from headrace.framework.stage import Stage
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers.base import Position
from headrace.transformers.text import TextTransformer


def batches(data, start=Position()):  # noqa: B008 - frozen
    return list(TextTransformer().batches(io.BytesIO(data), start))


def test_values_are_lines_without_their_ends():
    """A value is its line as text: white space kept, line feed or carriage return and line feed taken off."""
    (batch,) = batches(" a\t\nb\r\n\u2028é\U0001f600\rx\n".encode())

    assert batch.values == [" a\t", "b", "\u2028é\U0001f600\rx"]
    assert batch.schema is STRING


def test_blank_lines_are_values():
    """A blank line of a text is a value, and counts as a record."""
    (batch,) = batches(b"a\n\n \nb\n")

    assert batch.values == ["a", "", " ", "b"]
    assert batch.end == Position(records=4, byte=7, line=4)


def test_empty_object_gives_nothing():
    """An object without bytes has no line; one with a single line feed has one, an empty one."""
    assert batches(b"") == []
    assert batches(b"\n")[0].values == [""]


def test_a_byte_order_mark_alone_is_no_line():
    """An object with nothing but a byte order mark has no record, and one with a line feed behind it has one."""
    assert batches(b"\xef\xbb\xbf") == []
    assert batches(b"\xef\xbb\xbf\n")[0].values == [""]


def test_byte_order_mark_is_no_text():
    """A byte order mark at the object's start is skipped."""
    (batch,) = batches(b"\xef\xbb\xbfa\n")

    assert batch.values == ["a"]
    assert batch.end.byte == 5


@pytest.mark.parametrize("bad", [b"\xff", b"abc\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_invalid_utf8_is_an_error_with_its_line(bad):
    """Finding 2: bytes that are no UTF-8 are an error with the line, after all lines before it; none is replaced."""
    values, error = drained(TextTransformer().batches(io.BytesIO(b"a\nb\n" + bad + b"\nc\n"), Position()))

    assert values == ["a", "b"]
    assert isinstance(error, DataError)
    assert error.where.stage is Stage.TRANSFORM
    assert error.where.position == "line 3"
    assert isinstance(error.__cause__, UnicodeDecodeError)


def test_bad_first_line_gives_no_empty_batch():
    """A bad first line is an error at once, without a batch of nothing before it."""
    with pytest.raises(DataError, match="line 1"):
        next(TextTransformer().batches(io.BytesIO(b"\xff\n"), Position()))


def test_character_over_two_reads_is_one():
    """A character whose bytes come in two reads is decoded as one."""
    stream = ScriptedStream.cut("é\né\n".encode(), 1, 4)

    assert drained(TextTransformer().batches(stream, Position())) == (["é", "é"], None)


def test_resume_skips_by_byte_or_by_count():
    """Reading goes on at a byte, or behind a number of lines, blank ones included."""
    data = b"a\n\nb\nc\n"

    assert batches(data[3:], Position(records=2, byte=3, line=2))[0].values == ["b", "c"]
    assert batches(data, Position(records=2))[0].values == ["b", "c"]
