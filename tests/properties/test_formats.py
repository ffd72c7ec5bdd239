"""What holds for every format: round trips, resumes from every place, cuts at every byte."""

import base64
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
from hashlib import shake_128
from pathlib import Path
from typing import Any

import attrs
import cramjam
import fastavro
import lz4.frame
import pyarrow as pa
import pytest
from hypothesis import given, settings
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
    value: Callable[[dict[str, Any]], Any] = dict
    usual: Callable[[list[dict[str, Any]]], bytes] | None = None
    compressed: bool = True
    chunk: int | None = None
    """How many bytes a record has, where it is no row; 0 is the object."""

    inside: str = ""
    """The compression that the format has inside of itself, if it is not the usual one."""

    def write_many(self, rows):
        return (self.usual or self.write)(rows)

    def values(self, rows, write=None):
        if self.chunk is None:
            return [self.value(row) for row in rows]
        content = (write or self.write)(rows)
        size = self.chunk or max(1, len(content))
        return [content[at : at + size] for at in range(0, len(content), size)]

    @property
    def title(self):
        unit = {None: "", 0: ", whole"}.get(self.chunk, ", in chunks")
        return f"`{self.name}`{unit}{', its blocks ' * bool(self.inside)}{self.inside}"


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


def write_parquet(rows, codec="snappy"):
    target = io.BytesIO()
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), target, row_group_size=4, compression=codec)
    return target.getvalue()


def write_large_avro(rows, codec="null"):
    target = io.BytesIO()
    fastavro.writer(target, AVRO, rows, codec=codec, sync_marker=b"0123456789abcdef")
    return target.getvalue()


def write_large_parquet(rows, codec="none"):
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=100, use_dictionary=False, compression=codec)
    return target.getvalue()


def inside(name, codec, write, usual):
    """A format that compresses inside of itself, otherwise than it usually does."""
    write, usual = partial(write, codec=codec), partial(usual, codec=codec)
    return Format(name=name, write=write, usual=usual, compressed=False, inside=codec)


FORMATS = {
    one.name: one
    for one in (
        Format(name="jsonl", write=write_lines, value=compact),
        Format(name="text", write=write_lines, value=lambda row: compact(row).decode()),
        Format(name="json", write=lambda rows: json.dumps(rows, ensure_ascii=False, indent=1).encode(), value=compact),
        Format(name="csv", write=write_csv, value=lambda row: {"n": str(row["n"]), "s": row["s"]}),
        Format(name="avro", write=write_avro, usual=write_large_avro),
        Format(name="parquet", write=write_parquet, usual=write_large_parquet, compressed=False),
    )
}  # fmt: skip
RAW = [Format(name="bytes", write=write_lines, chunk=0), Format(name="bytes", write=write_lines, chunk=50)]
AVRO_CODECS = ("deflate", "snappy", "zstandard", "bzip2", "xz")
PARQUET_CODECS = ("snappy", "gzip", "zstd", "brotli", "lz4")
INSIDE = [
    *(inside("avro", codec, write_avro, write_large_avro) for codec in AVRO_CODECS),
    *(inside("parquet", codec, write_parquet, write_large_parquet) for codec in PARQUET_CODECS),
]
ALL = [*FORMATS.values(), *RAW, *INSIDE]
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

PAIRS = [(form, kind) for form in ALL for kind in PACKERS if form.compressed or kind == "none"]
EACH = pytest.mark.parametrize(("form", "kind"), PAIRS, ids=[f"{form.title}-{kind}" for form, kind in PAIRS])
WITH_AN_END = {"gzip", "bz2", "xz", "zstd", "lz4"}
"""The compressions whose data say where they end."""

SAMPLE = [{"n": number, "s": f'a,"{number}"\n' * (number % 2)} for number in range(7)]


def transformer(form):
    made = registry.find("transformers", form.name)()
    made.configure({} if form.chunk is None else {"transformer.max.buffer.size": str(form.chunk)})
    return made


def pairs(form, stream, start=Position()):  # noqa: B008 - frozen
    return [
        (value, batch.position_at(index))
        for batch in transformer(form).batches(stream, start)
        for index, value in enumerate(batch.values, start=1)
    ]


def resumed(form, data, start, largest=1 << 20, kind="none"):
    """A stream as a source gives it to a transformer that goes on at `start`."""
    stream = SeekableBytes(data, largest)
    made = transformer(form)
    opened = open_decompressed(stream, "x", kind, skip=start.byte if made.resumes_at_byte else 0)
    return made.batches(opened, start)


@EACH
@settings(max_examples=20)
@given(rows=ROWS, places=PLACES)
def test_what_was_written_comes_back(form, kind, rows, places):
    """What the format's own library writes comes back value for value, compressed or not, however the reads fall."""
    stream = ScriptedStream.cut(PACKERS[kind](form.write(rows)), *places)
    opened = stream if form.name == "parquet" else open_decompressed(stream, "x", kind)

    assert drained(transformer(form).batches(opened, Position())) == (form.values(rows), None)


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


def reads_whole(form, kind):
    """Whether all of a small object comes out."""
    content = PACKERS[kind](form.write(SAMPLE))
    return drained(resumed(form, content, Position(), kind=kind)) == (form.values(SAMPLE), None)


def reads_the_rest(form, kind):
    """Whether from each place of a small object comes what is behind it."""
    content = PACKERS[kind](form.write(SAMPLE))
    values = form.values(SAMPLE)
    places = [
        batch.position_at(count)
        for batch in resumed(form, content, Position(), kind=kind)
        for count in range(1, len(batch.values) + 1)
    ]
    return all(
        drained(resumed(form, content, place, kind=kind)) == (values[done:], None)
        for done, place in enumerate(places, start=1)
    )


@EACH
def test_going_on_inside_compressed_objects_gives_the_rest(form, kind):
    """Every format comes out of every compression, whole and from every place on."""
    assert reads_whole(form, kind)
    assert reads_the_rest(form, kind)


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


@pytest.mark.parametrize(
    ("form", "kind"),
    [(form, kind) for form, kind in PAIRS if kind in WITH_AN_END],
    ids=[f"{form.title}-{kind}" for form, kind in PAIRS if kind in WITH_AN_END],
)
def test_a_compressed_object_cut_at_any_byte_is_an_error(form, kind):
    """Cut at any byte, an object whose compression has an end gives what is before the cut, and then an error."""
    content, values = PACKERS[kind](form.write(SAMPLE)), form.values(SAMPLE)
    for cut in range(1, len(content)):
        found, error = drained(cut_off(form, kind, content[:cut]))
        assert isinstance(error, DataError), cut
        assert found == values[: len(found)]


TOLD_BY_NOTHING = {"text", "csv", "bytes"}
"""The formats in which a damaged byte may make one record of two, for all that anybody can see."""


def damaged(data, content):
    """The bytes with a few of them changed."""
    found = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        if found:
            found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    return bytes(found)


@EVERY
@given(rows=ROWS, data=st.data())
def test_damage_is_an_error_or_other_values(form, rows, data):
    """Bytes that were changed give an error of the data or other values: as many, where that can be told."""
    content = damaged(data, form.write(rows))
    found, error = drained(transformer(form).batches(SeekableBytes(content), Position()))

    assert error is None or isinstance(error, DataError)
    assert error is None or "\n" not in str(error)
    assert error or form.name in TOLD_BY_NOTHING or len(found) == len(rows)


@EVERY
@pytest.mark.parametrize("kind", ["none", "gzip"])
@settings(max_examples=50)
@given(rows=ROWS, data=st.data())
def test_an_error_is_one_again_for_whoever_reads_on(form, kind, rows, data):
    """From where reading ended with an error, it ends with the same one at once: no restart gets past it."""
    packed = PACKERS[kind if form.compressed else "none"](damaged(data, form.write(rows)))
    read = partial(resumed, form, packed, kind=kind if form.compressed else "none")
    place = Position()

    def noting():
        nonlocal place
        for batch in read(Position()):
            place = batch.end
            yield batch

    _, error = drained(noting())
    found, again = drained(read(place))

    assert found == []
    assert str(again) == str(error)


PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
MANY = [{"n": number, "s": f"{number * 7919 % 1_000_003:0300}"} for number in range(10_000)]
MIXED = [{"n": n, "s": base64.b64encode(shake_128(b"%d" % n).digest(450)).decode()} for n in range(10_000)]


ENDINGS = {"none": "", "gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "lz4": ".lz4", "snappy": ".sz"}


def cut_off(form, kind, content):
    """What a format reads of an object that is cut, by its name."""
    made, stream = transformer(form), io.BytesIO(content)
    opened = stream if made.handles_compression else open_decompressed(stream, f"x.{form.name}{ENDINGS[kind]}")
    yield from made.batches(opened, Position())


def between_blocks(content):
    """Where a snappy stream has one block behind it and another before it."""
    at = 0
    while at < len(content):
        at += 4 + int.from_bytes(content[at + 1 : at + 4], "little")
        yield at


def silent_cuts(form, kind):
    """The cuts of a small object that give neither an error nor all records; whether each lost whole records only."""
    rows = SAMPLE * 700 if kind == "snappy" else SAMPLE
    content, values = PACKERS[kind](form.write(rows)), form.values(rows)
    for cut in [*between_blocks(content)][:-1] if kind == "snappy" else range(1, len(content)):
        found, error = drained(cut_off(form, kind, content[:cut]))
        assert error is None or isinstance(error, DataError)
        if error is None and found != values:
            yield found == values[: len(found)]


def fetched_at_90_percent(form, pack):
    rows = MIXED if form.inside else MANY
    content, values = pack(form.write_many(rows)), form.values(rows, form.usual)
    done = len(values) * 9 // 10
    made = transformer(form)
    opened = SeekableBytes(content) if made.handles_compression else open_decompressed(SeekableBytes(content), "x")
    place = Position()
    for batch in made.batches(opened, place):
        before = batch.position_at(0).records
        if before <= done <= before + len(batch.values):
            place = batch.position_at(done - before)
            break
    stream = SeekableBytes(content)
    stream.go_to(0, wanted=16 if made.resumes_at_byte else 65_536)
    skip = place.byte if made.resumes_at_byte else 0
    opened = stream if made.handles_compression else open_decompressed(stream, "x", skip=skip)
    assert drained(made.batches(opened, place)) == (values[done:], None)
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
    whole = "every value" if reads_whole(form, kind) else "NOT ALL OF IT"
    rest = "the rest, exactly" if reads_the_rest(form, kind) else "SOMETHING ELSE"
    fetched = "the tail" if fetched_at_90_percent(form, PACKERS[kind]) < 0.15 else "what comes before, too"
    grows = most_held(form, kind, MANY * 2) > most_held(form, kind, MANY[:5000]) + 2_000_000
    memory = "grows with the object" if grows else "bounded"
    return f"| {form.title} | {kind} | {whole} | {rest} | {fetched} | {seen(form, kind)} | {memory} |"


def seen(form, kind):
    """Where a cut is an error."""
    cuts = list(silent_cuts(form, kind))
    if not cuts:
        return "seen everywhere"
    if form.chunk is not None and kind == "none":
        return "not seen: it is another object"
    if all(cuts):
        return "seen, but not between records"
    return "seen, but not between two of its blocks" if kind == "snappy" else "seen, but not in or between lines"


def test_the_page_says_what_holds():
    """The table in docs/formats.md is made of what has just been tried, for each format and compression."""
    lines = [
        "| format | compression | read whole | read on from any record | fetched for it | cut at any byte | memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(line_of(form, kind) for form, kind in PAIRS),
    ]
    page = PAGE.read_text()
    head, _, rest = page.partition("-k page -->\n")
    _, _, tail = rest.partition("<!-- end -->\n")
    made = head + "-k page -->\n" + "\n".join(lines) + "\n<!-- end -->\n" + tail
    if os.environ.get("HEADRACE_WRITE_PAGES"):
        PAGE.write_text(made)

    assert PAGE.read_text() == made
