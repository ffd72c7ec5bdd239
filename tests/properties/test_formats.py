"""What holds for every format: round trips, resumes from every place, cuts at every byte."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import cramjam
import fastavro
import lz4.frame
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from headrace.framework import registry
from headrace.framework.errors import DataError
from headrace.testing.streams import ScriptedStream, SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.compression import open_decompressed

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)
LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
ROWS = st.lists(st.fixed_dictionaries({"n": LONGS, "s": TEXT}), max_size=12)
PLACES = st.lists(st.integers(min_value=0), max_size=6)


@attrs.frozen(kw_only=True)
class Format:
    """How a format's own library writes rows, in small pieces and in such as are usual, and what comes back of them."""

    name: str
    write: Callable[[list[dict[str, Any]]], bytes]
    value: Callable[[dict[str, Any]], Any]
    usual: Callable[[list[dict[str, Any]]], bytes] | None = None
    compressed: bool = True

    def write_many(self, rows):
        return (self.usual or self.write)(rows)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def write_lines(rows):
    return b"".join(compact(row) + b"\n" for row in rows)


def write_csv(rows):
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, ["n", "s"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue().encode()


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
}


def write_avro(rows, codec="deflate"):
    target = io.BytesIO()
    for at in range(0, max(len(rows), 1), 3):
        fastavro.writer(target, AVRO, rows[at : at + 3], codec=codec, sync_marker=b"0123456789abcdef")
    return target.getvalue()


def write_parquet(rows):
    target = io.BytesIO()
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), target, row_group_size=4)
    return target.getvalue()


def write_large_avro(rows):
    target = io.BytesIO()
    fastavro.writer(target, AVRO, rows, codec="null", sync_marker=b"0123456789abcdef")
    return target.getvalue()


def write_large_parquet(rows):
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=100, use_dictionary=False, compression="none")
    return target.getvalue()


FORMATS = {
    one.name: one
    for one in (
        Format(name="jsonl", write=write_lines, value=compact),
        Format(name="text", write=write_lines, value=lambda row: compact(row).decode()),
        Format(name="json", write=lambda rows: json.dumps(rows, ensure_ascii=False, indent=1).encode(), value=compact),
        Format(name="csv", write=write_csv, value=lambda row: {"n": str(row["n"]), "s": row["s"]}),
        Format(name="avro", write=write_avro, value=dict, usual=write_large_avro),
        Format(name="parquet", write=write_parquet, value=dict, usual=write_large_parquet, compressed=False),
    )
}  # fmt: skip
EVERY = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)

PACKERS = {
    "none": bytes,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": partial(lzma.compress, preset=1),
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lz4.frame.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
}

SAMPLE = [{"n": number, "s": f'a,"{number}"\n' * (number % 2)} for number in range(7)]


def transformer(form):
    made = registry.find("transformers", form.name)()
    made.configure({})
    return made


def pairs(form, stream, start=Position()):  # noqa: B008 - frozen
    return [
        (value, batch.position_at(index))
        for batch in transformer(form).batches(stream, start)
        for index, value in enumerate(batch.values, start=1)
    ]


def resumed(form, data, start, largest=1 << 20):
    """A stream as a source gives it to a transformer that goes on at `start`."""
    stream = SeekableBytes(data, largest)
    made = transformer(form)
    opened = open_decompressed(stream, "x", "none", skip=start.byte if made.resumes_at_byte else 0)
    return made.batches(opened, start)


@EVERY
@given(rows=ROWS, places=PLACES)
def test_what_was_written_comes_back(form, rows, places):
    """What the format's own library writes comes back value for value, however the reads fall."""
    found = drained(transformer(form).batches(ScriptedStream.cut(form.write(rows), *places), Position()))

    assert found == ([form.value(row) for row in rows], None)


@EVERY
@given(rows=ROWS, largest=st.integers(1, 400), data=st.data())
def test_going_on_from_any_place_gives_the_rest(form, rows, largest, data):
    """From the place behind any value come the values that follow, in the same places: by place or by count alone."""
    content = form.write(rows)
    whole = pairs(form, SeekableBytes(content))
    done = data.draw(st.integers(0, len(whole)))
    start = whole[done - 1][1] if done else Position()

    by_place = [
        (value, batch.position_at(index))
        for batch in resumed(form, content, start, largest)
        for index, value in enumerate(batch.values, start=1)
    ]
    by_count = pairs(form, SeekableBytes(content, largest), Position(records=done))
    forward = start if not transformer(form).resumes_at_byte else Position(records=done)
    by_reading = pairs(
        form, ScriptedStream([content[at : at + largest] for at in range(0, len(content), largest)]), forward
    )

    assert by_place == by_count == by_reading == whole[done:]


@EVERY
def test_going_on_from_every_place_gives_the_rest(form):
    """The same for every single place of an object with a bit of everything in it."""
    content = form.write(SAMPLE)
    whole = pairs(form, SeekableBytes(content))

    assert [value for value, _ in whole] == [form.value(row) for row in SAMPLE]
    for done, (_, start) in enumerate(whole, start=1):
        assert drained(resumed(form, content, start)) == ([value for value, _ in whole[done:]], None)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("form", [form for form in FORMATS.values() if form.compressed], ids=lambda form: form.name)
def test_going_on_inside_compressed_objects_gives_the_rest(form, kind):
    """Every format comes out of every compression, whole and from every place on."""
    packed = PACKERS[kind](form.write(SAMPLE))
    whole = pairs(form, open_decompressed(io.BytesIO(packed), f"x.{form.name}"))

    assert [value for value, _ in whole] == [form.value(row) for row in SAMPLE]
    for done, (_, start) in enumerate(whole, start=1):
        made = transformer(form)
        opened = open_decompressed(
            SeekableBytes(packed), f"x.{form.name}", skip=start.byte if made.resumes_at_byte else 0
        )
        assert drained(made.batches(opened, start)) == ([value for value, _ in whole[done:]], None)


def unseen_ends(form, content):
    """The places where an object may end for all that anybody can see, with how many records it has then."""
    whole = pairs(form, SeekableBytes(content))
    if form.name in {"json", "parquet"}:
        return {len(content): len(whole), 0: 0}
    if form.name == "avro":
        header = content.index(b"0123456789abcdef") + 16
        ends = {place.byte: place.records for _, place in whole if place.inside == 1}
        return {0: 0, header: 0, **ends}
    ends = {0: 0}
    for _, place in whole:
        ends |= {place.byte: place.records, place.byte - 1: place.records}
    return ends


@EVERY
def test_an_object_cut_at_any_byte_is_never_silent(form):
    """Cut at any byte, an object gives what is before the cut, and an error with its position or a lawful end."""
    content = form.write(SAMPLE)
    ends = unseen_ends(form, content)
    values = [form.value(row) for row in SAMPLE]
    for cut in range(len(content)):
        found, error = drained(transformer(form).batches(io.BytesIO(content[:cut]), Position()))
        if cut in ends:
            assert (found, error) == (values[: ends[cut]], None)
        elif error is None:  # half a line may be a whole one
            assert form.name in {"text", "csv", "json"}, cut
            assert found[:-1] == values[: max(0, len(found) - 1)]
        else:
            assert isinstance(error, DataError), cut
            assert error.where.position
            assert found == values[: len(found)]


@EVERY
@given(rows=ROWS, data=st.data())
def test_damage_is_an_error_or_other_values(form, rows, data):
    """Bytes that were changed give an error of the data or other values, and never another kind of failure."""
    content = bytearray(form.write(rows))
    for _ in range(data.draw(st.integers(1, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    _, error = drained(transformer(form).batches(SeekableBytes(bytes(content)), Position()))

    assert error is None or isinstance(error, DataError) or "codec" in str(error)
    assert error is None or "\n" not in str(error)


PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
MANY = [{"n": number, "s": f"{number * 7919 % 1_000_003:0300}"} for number in range(10_000)]


ENDINGS = {"none": "", "gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "lz4": ".lz4", "snappy": ".sz"}


def silent_cuts(form, kind):
    """The cuts of a small object that give neither an error nor all records; whether each lost whole records only."""
    content = PACKERS[kind](form.write(SAMPLE))
    values = [form.value(row) for row in SAMPLE]
    for cut in range(1, len(content)):
        made = transformer(form)
        try:
            stream = io.BytesIO(content[:cut])
            opened = stream if made.handles_compression else open_decompressed(stream, f"x.{form.name}{ENDINGS[kind]}")
            found, error = drained(made.batches(opened, Position()))
        except DataError:
            continue
        if error is None and found != values:
            yield found == values[: len(found)]


def fetched_at_90_percent(form, pack):
    content = pack(form.write_many(MANY))
    made = transformer(form)
    opened = SeekableBytes(content) if made.handles_compression else open_decompressed(SeekableBytes(content), "x")
    place = Position()
    for batch in made.batches(opened, place):
        before = batch.position_at(0).records
        if before <= 9000 <= before + len(batch.values):
            place = batch.position_at(9000 - before)
            break
    stream = SeekableBytes(content)
    stream.go_to(0, wanted=16 if made.resumes_at_byte else 65_536)
    skip = place.byte if made.resumes_at_byte else 0
    opened = stream if made.handles_compression else open_decompressed(stream, "x", skip=skip)
    values, error = drained(made.batches(opened, place))
    assert (values, error) == ([form.value(row) for row in MANY[9000:]], None)
    return stream.fetched / len(content)


def most_held(form, kind, rows):
    """How many bytes reading an object took at the most, Arrow's among them, besides the object itself."""
    stream = SeekableBytes(PACKERS[kind](form.write_many(rows)))
    made = transformer(form)
    arrow = 0
    tracemalloc.start()
    try:
        opened = stream if made.handles_compression else open_decompressed(stream, "x")
        for _ in made.batches(opened, Position()):
            arrow = max(arrow, pa.total_allocated_bytes())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak + arrow


def line_of(form, kind):
    """A line of the table: it is what it says because it has just been tried."""
    cuts = list(silent_cuts(form, kind))
    seen = "seen everywhere"
    if cuts:
        seen = "seen, but not between records" if all(cuts) else "seen, but not in or between lines"
    fetched = "the tail" if fetched_at_90_percent(form, PACKERS[kind]) < 0.15 else "what comes before, too"
    grows = most_held(form, kind, MANY * 4) > most_held(form, kind, MANY) + 2_000_000
    memory = "grows with the object" if grows else "bounded"
    return f"| `{form.name}` | {kind} | every value | the rest, exactly | {fetched} | {seen} | {memory} |"


def test_the_page_says_what_holds():
    """The table in docs/formats.md is made of what has just been tried, for each format and compression."""
    lines = [
        "| format | compression | read whole | read on from any record | fetched for it | cut at any byte | memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(line_of(form, kind) for form in FORMATS.values() for kind in PACKERS if form.compressed or kind == "none"),
    ]
    page = PAGE.read_text()
    head, _, rest = page.partition("-k page -->\n")
    _, _, tail = rest.partition("<!-- end -->\n")
    made = head + "-k page -->\n" + "\n".join(lines) + "\n<!-- end -->\n" + tail
    if os.environ.get("HEADRACE_WRITE_PAGES"):
        PAGE.write_text(made)

    assert PAGE.read_text() == made
