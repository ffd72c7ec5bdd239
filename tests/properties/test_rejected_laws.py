"""Bad records anywhere: everything else comes out once and in its order, and a repair brings back just the bad ones."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.framework import registry
from headrace.testing.streams import ScriptedStream, SeekableBytes
from headrace.transformers.base import Position

BAD = {"jsonl": b"{bad", "csv": b"too,many,fields", "json": b"{bad}"}
SAME_SIZE = {"jsonl": b'"xy"', "csv": b"is,repaired now", "json": b'"abc"'}
OTHER_SIZE = {"jsonl": b'"of another size"', "csv": b"of,another", "json": b'["much", "longer"]'}
ROWS = st.lists(st.one_of(st.integers(0, 10**6), st.none()), max_size=30)


def transformer(form):
    made = registry.find("transformers", form)()
    made.configure({"errors.tolerance": "all"})
    return made


def written(form, rows, bad):
    """An object of rows, in which `bad` stands for each None."""
    if form == "json":
        return b"[" + b", ".join(bad if row is None else b"%d" % row for row in rows) + b"]"
    if form == "csv":
        return b"a,b\n" + b"".join((bad if row is None else b"%d,x" % row) + b"\n" for row in rows)
    return b"".join((bad if row is None else b"%d" % row) + b"\n" for row in rows)


def numbers(form, values):
    return [int(value["a"]) if form == "csv" else json.loads(value) for value in values]


def read(form, stream, start):
    """Every value and every piece in order, each with the place behind it."""
    for batch in transformer(form).batches(stream, start):
        if batch.rejected is not None:
            yield batch.rejected, batch.end
        for index, value in enumerate(batch.values):
            yield value, batch.position_at(index + 1)


@given(st.sampled_from(sorted(BAD)), ROWS, st.lists(st.integers(0, 400), max_size=5))
def test_all_that_is_good_comes_out_in_order(form, rows, cuts):
    """However the stream is cut, values and pieces come in the order of the object, and each is counted once."""
    data = written(form, rows, BAD[form])
    found = list(read(form, ScriptedStream.cut(data, *cuts), Position()))
    values = [one for one, _ in found if not hasattr(one, "error")]
    assert numbers(form, values) == [row for row in rows if row is not None]
    assert [hasattr(one, "error") for one, _ in found] == [row is None for row in rows]
    assert [end.records for _, end in found] == list(range(1, len(rows) + 1))
    pieces = [one for one, _ in found if hasattr(one, "error")]
    assert all(data[one.start : one.end].strip(b"\n") == BAD[form] == one.raw for one in pieces)


@given(st.sampled_from(sorted(BAD)), ROWS.filter(bool), st.data())
def test_reading_goes_on_behind_anything(form, rows, data):
    """From the place behind any value or piece come the others, the same ones."""
    content = written(form, rows, BAD[form])
    found = list(read(form, SeekableBytes(content), Position()))
    cut = data.draw(st.integers(1, len(found)))
    place = found[cut - 1][1]
    made = transformer(form)
    rest = SeekableBytes(content)
    if made.resumes_at_byte:
        rest.go_to(place.byte)
    again = [end for _, end in read(form, rest, place)]
    assert again == [end for _, end in found[cut:]]


@given(st.sampled_from(sorted(BAD)), ROWS, st.booleans(), st.booleans())
def test_a_repair_brings_back_just_the_bad_ones(form, rows, same_size, seekable):
    """Read again in the repaired object, each piece is the record that was put in its place, and no other."""
    pieces = [one for one, _ in read(form, io.BytesIO(written(form, rows, BAD[form])), Position())]
    pieces = [one for one in pieces if hasattr(one, "error")]
    mended = written(form, rows, (SAME_SIZE if same_size else OTHER_SIZE)[form])

    def opened():
        return SeekableBytes(mended) if seekable else io.BytesIO(mended)

    for piece in pieces:
        batches = transformer(form).again(opened, piece, same=False, same_size=same_size)
        [value] = [value for batch in batches for value in batch.values]
        expected = next(
            iter(
                read(
                    form, io.BytesIO(written(form, [None], (SAME_SIZE if same_size else OTHER_SIZE)[form])), Position()
                )
            )
        )
        assert value == expected[0]
