"""Arrays of objects that begin alike, with look-alikes inside of them, cut anywhere."""

import json
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.errors import DataError
from headrace.testing.streams import ScriptedStream
from headrace.transformers.base import Position
from headrace.transformers.json import JsonTransformer
from headrace.transformers.tolerating import tolerated

LIKE_A_SEAM = ['},{"a":', '}, {"a": ', "a b", ", ", "é", '"', "\\", ""]
LEAVES = st.none() | st.integers(0, 99) | st.sampled_from(LIKE_A_SEAM)
OBJECTS = st.recursive(
    st.fixed_dictionaries({"a": LEAVES}, optional={"b": LEAVES}),
    lambda inner: st.fixed_dictionaries({"a": st.lists(inner, max_size=3) | inner}, optional={"b": LEAVES | inner}),
    max_leaves=6,
)
ELEMENTS = st.lists(OBJECTS | LEAVES | st.just({"b": 1, "a": 2}), max_size=8)
FORMS = st.sampled_from([{"separators": (",", ":")}, {}, {"indent": 1}, {"ensure_ascii": False}])


def read(data, places):
    """The values of an object and the place after each, and what ended it."""
    transformer = JsonTransformer()
    transformer.configure({})
    found = []
    try:
        for value, position in transformer.transform(ScriptedStream.cut(data, *places), Position()):
            found.append((value.value, position))
    except DataError as error:
        return found, error
    return found, None


@given(ELEMENTS, FORMS, st.lists(st.integers(0, 10_000), max_size=3))
def test_look_alikes_are_no_seams(elements, form, places):
    """Whatever is in the elements and between them, they come out one by one, each with the place behind it."""
    data = json.dumps(elements, **form).encode()
    found, error = read(data, places)

    ascii_only = form.get("ensure_ascii", True)
    expected = [json.dumps(one, separators=(",", ":"), ensure_ascii=ascii_only).encode() for one in elements]
    assert error is None
    assert [value for value, _ in found] == expected
    for count, (_, position) in enumerate(found, 1):
        assert position.records == count
        assert json.loads(data[: position.byte] + b"]") == elements[:count]


@given(st.lists(OBJECTS, min_size=3, max_size=6), st.data())
def test_what_is_damaged_among_others_like_it_is_found(elements, data):
    """With one byte of an array gone, what is whole before that comes out and then an error, if it is no array now."""
    text = json.dumps(elements, separators=(",", ":")).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + text[at + 1 :]
    found, error = read(damaged, ())

    try:
        whole = json.loads(damaged)
    except ValueError:
        assert error is not None
        for count, (_, position) in enumerate(found, 1):
            values = [json.loads(value) for value, _ in found[:count]]
            assert json.loads(damaged[: position.byte] + b"]") == values
    else:
        assert error is None
        assert [json.loads(value) for value, _ in found] == (whole if isinstance(whole, list) else [whole])


BROKEN = [b"{bad}", b'{"a" 1}', b"[1,,2]", b"NaN", b"nope", b'{"a":[}', b'{"a":"}', b"1 2"]
GOOD = [b"1", b"-1.5e3", b'"x, ]"', b'{"a":1}', b'{"a":[{"a":2},3]}', b"null", b"[]"]


def read_on(data, places):
    """What comes of an object where bad elements are passed over: values and pieces, each with the place behind it."""
    transformer = JsonTransformer()
    transformer.configure({"errors.tolerance": "all"})
    found = []
    make = partial(transformer.batches, ScriptedStream.cut(data, *places), Position())
    for batch in tolerated(make, Position(), tolerant=True):
        found += [(value, batch.position_at(index)) for index, value in enumerate(batch.values, 1)]
        if batch.rejected:
            piece = batch.rejected
            found.append((piece.number, piece.start, piece.end, piece.count, piece.raw, str(piece.error), batch.end))
    return found


@given(st.lists(st.sampled_from(BROKEN + GOOD), max_size=8), st.lists(st.integers(0, 200), max_size=5))
def test_what_is_passed_over_does_not_depend_on_the_reads(elements, places):
    """A bad element is the same piece wherever reads end, and the elements behind it are the same values."""
    data = b"[" + b", ".join(elements) + b"]"

    assert read_on(data, places) == read_on(data, ())


def test_a_bad_element_across_a_read_is_one_piece():
    """An element that is larger than a read, and bad, is passed over by itself: those behind it come out."""
    bad = b'{"n" 1,"s":"' + b"y" * 600_000 + b'"}'
    found = read_on(b"[1," + bad + b",2,3]", ())

    assert [one[0] for one in found] == [b"1", 2, b"2", b"3"]
    assert found[1][1:4] == (3, 3 + len(bad), 1)
