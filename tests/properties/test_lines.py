import io
import json
from itertools import takewhile
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.errors import DataError
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers.base import Position
from headrace.transformers.json_check import MAX_DEPTH, check, first_bad
from headrace.transformers.jsonl import JsonlTransformer
from headrace.transformers.text import TextTransformer
from headrace.transformers.whole_lines import GAP, whole_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
DOCUMENTS = st.builds(lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only), JSON, st.booleans()).map(
    lambda text: text.encode(errors="backslashreplace")
)
MARKS = st.text(alphabet='[]{}"\\\\ ,:é', max_size=12)
MARKED = st.recursive(
    st.none() | st.integers() | MARKS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(MARKS, inner, max_size=4),
    max_leaves=12,
)
PIECES = st.sampled_from([*b'{}[]",:\\ud8-.eE+01\x1f\x7f']).map(lambda byte: bytes([byte]))
SPACE = st.sampled_from([b"", b" ", b"\t", b"\r", b" \r"])
LINES = st.lists(st.tuples(SPACE, DOCUMENTS | st.just(b""), SPACE).map(b"".join), max_size=12)
PLACES = st.lists(st.integers(min_value=0), max_size=5)


def model(data, *, blank):
    """Values with the position behind each, one line after the other."""
    found, byte, records = [], 0, 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        byte += len(line)
        value = line.strip()
        if value or blank:
            records += 1
            found.append((value, Position(records=records, byte=byte, line=number)))
    return found


def pairs(transformer, stream, start=Position()):  # noqa: B008 - frozen
    return [
        (value, batch.position_at(index))
        for batch in transformer.batches(stream, start)
        for index, value in enumerate(batch.values, start=1)
    ]


def apart(blocks):
    """The lines of blocks one by one, and of each gap its size."""
    return [one for data, size in blocks for one in (io.BytesIO(data) if data != GAP else [size])]


@given(LINES, st.booleans(), PLACES, st.integers(0, 12))
def test_blocks_are_whole_lines_and_gaps(lines, ended, places, limit):
    """However the reads fall, every line comes whole or, where it is too long, as a gap; without tolerance up to it."""
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    known = [len(line) if limit and len(line.removesuffix(b"\n")) > limit else line for line in io.BytesIO(data)]
    first = next((index for index, one in enumerate(known) if isinstance(one, int)), len(known))

    blocks = list(whole_lines(ScriptedStream.cut(data, *places), limit, tolerant=True))
    strict = list(whole_lines(ScriptedStream.cut(data, *places), limit, tolerant=False))
    before_gap = list(takewhile(lambda block: block[0] != GAP, strict))

    assert apart(blocks) == known
    assert sum(size for _, size in blocks) == len(data)
    assert apart(before_gap) == known[:first]
    assert (len(strict) > len(before_gap)) == (len(known) > first)


@given(LINES, st.booleans(), PLACES)
def test_jsonl_says_what_a_line_by_line_reader_says(lines, ended, places):
    """However the reads fall, values and the place behind each are those of reading line by line."""
    data = b"\n".join(lines) + (b"\n" if ended else b"")

    assert pairs(JsonlTransformer(), ScriptedStream.cut(data, *places)) == model(data, blank=False)


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n\r", codec="utf-8")), max_size=12), PLACES)
def test_text_says_what_a_line_by_line_reader_says(lines, places):
    """However the reads fall, every line is a value, blank ones included, with the place behind it."""
    data = "".join(f"{line}\n" for line in lines).encode().removeprefix(b"\xef\xbb\xbf")
    found = pairs(TextTransformer(), ScriptedStream.cut(data, *places))

    assert [value for value, _ in found] == data.decode().split("\n")[:-1]
    assert [place for _, place in found] == [place for _, place in model(data, blank=True)]


@pytest.mark.parametrize("transformer", [JsonlTransformer(), TextTransformer()], ids=["jsonl", "text"])
@given(lines=LINES, places=PLACES, data=st.data())
def test_going_on_from_any_place_gives_the_rest(transformer, lines, places, data):
    """From the place behind any value, by byte or by count alone, come the values that follow, with the same places."""
    content = b"\xef\xbb\xbf" * data.draw(st.booleans()) + b"\n".join(lines)
    whole = pairs(transformer, io.BytesIO(content))
    done = data.draw(st.integers(0, len(whole)))
    start = whole[done - 1][1] if done else Position()

    by_byte = pairs(transformer, ScriptedStream.cut(content[start.byte :], *places), start)
    by_count = pairs(transformer, ScriptedStream.cut(content, *places), Position(records=done))

    assert by_byte == by_count == whole[done:]


@given(LINES, st.data())
def test_object_cut_anywhere_is_never_silent(lines, data):
    """Cut at any byte, an object gives all records before it, and what is left of a line is a value or an error."""
    content = b"\n".join(lines)
    cut = data.draw(st.integers(0, len(content)))
    complete = [value for value, place in model(content, blank=False) if place.byte <= cut]
    left = content[content.rfind(b"\n", 0, cut) + 1 : cut].strip()
    values, error = drained(JsonlTransformer().batches(io.BytesIO(content[:cut]), Position()))

    if error:
        assert values == complete
        assert isinstance(error, DataError)
        assert error.where.position == "line {}".format(1 + content[:cut].count(b"\n"))
    elif left and len(values) > len(complete):
        assert values == [*complete, left]
    else:
        assert values == complete
        assert not left or left == complete[-1]


@given(DOCUMENTS, st.integers(min_value=0), st.binary(max_size=2) | PIECES, st.integers(0, 2))
def test_verdict_is_the_same_with_and_without_msgspec(document, place, inserted, removed):
    """Whether bytes are one JSON value does not depend on what is installed."""
    place %= len(document) + 1
    value = (document[:place] + inserted + document[place + removed :]).replace(b"\n", b"").strip()
    try:
        check(value)
    except ValueError:
        assert first_bad([b"1", value, b"2"])[0] == 1
    else:
        assert first_bad([b"1", value, b"2"]) is None


@given(DOCUMENTS)
def test_what_json_writes_is_one_value(document):
    """Whatever a JSON writer writes passes the check, and nothing behind it does."""
    check(document)

    assert first_bad([document + b" " + document])


@given(MARKED, st.sampled_from(["", "[", "\\\\", '"', "text"]), st.sampled_from([0, 40, 70_000]))
def test_depth_is_counted_whatever_strings_hold(value, padding, times):
    """Brackets, quotes and backslashes in strings, many of them or few, move the bound on nesting by nothing."""
    to_wrap = MAX_DEPTH - depth(value) - 1
    wrapped = b"[" * to_wrap + json.dumps(value).encode() + b"]" * to_wrap
    whole = b"[%s,%s]" % (json.dumps(padding * times).encode(), wrapped)

    assert first_bad([whole, b"[%s]" % whole]) == (1, ANY)
    assert first_bad([whole], whole) is None
    with pytest.raises(ValueError, match=f"nested more than {MAX_DEPTH} deep"):
        check(b"[%s]" % whole)


def depth(value):
    """How deep lists and dictionaries lie in each other."""
    if isinstance(value, list | dict):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0
