"""Objects read in parts: whatever the cuts, each record comes out of exactly one part, in the order of the parts."""

import gzip
import io
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from headrace.framework import registry
from headrace.framework.errors import DataError
from headrace.framework.parts import Extent
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.compression import open_decompressed
from headrace.transformers.tolerating import tolerated

NUMBERS = st.lists(st.integers(-(2**40), 2**40), max_size=9)
TEXT = st.text(alphabet="aäß€😀 ,;'\t", max_size=6)
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n", "\r\n\r\n"])
MARK = st.sampled_from([b"", b"\xef\xbb\xbf"])
ROW_ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\r\n"])
LAST = st.sampled_from(["", "\n", "\r\n", "\n\n"])
CUTS = st.lists(st.integers(min_value=0), max_size=5)
AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}],
}


@st.composite
def lines_of(draw, values, ends=ENDS):
    """Lines of these values, with every kind of end, and with or without one at the end."""
    found = draw(st.lists(values, max_size=8))
    text = "".join(value + draw(ends) for value in found[:-1])
    if found:
        text += found[-1] + draw(LAST)
    return draw(MARK) + text.encode() if ends is ENDS else text.encode()


def csv_of(header):
    @st.composite
    def build(draw):
        rows = draw(lines_of(st.tuples(st.integers(0, 999), TEXT).map(quoted), ends=ROW_ENDS))
        return draw(MARK) + draw(st.sampled_from([b"", b"\n", b"\r\n\n"])) + header + rows

    return build()


def quoted(row):
    return f'{row[0]},"{row[1]}"'


@st.composite
def avro(draw):
    target = io.BytesIO()
    rows = [{"n": number, "s": draw(TEXT)} for number in draw(NUMBERS)]
    codec, interval = draw(st.sampled_from(["null", "deflate"])), draw(st.sampled_from([1, 20, 16000]))
    fastavro.writer(target, AVRO, rows, codec=codec, sync_interval=interval)
    return target.getvalue()


@st.composite
def parquet(draw):
    target = io.BytesIO()
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    table = pa.Table.from_pylist([{"n": number, "s": draw(TEXT)} for number in draw(NUMBERS)], schema)
    pq.write_table(table, target, row_group_size=draw(st.integers(1, 4)))
    return target.getvalue()


@attrs.frozen
class Format:
    """A format, its options, and objects of it."""

    name: str
    data: Any
    options: dict[str, str] = attrs.field(factory=dict)


LINE_IS_ROW = {"csv.quoted.newlines": "false"}
JSON_LINES = st.one_of(st.integers(0, 10**6).map(str), TEXT.map(lambda text: f' {{"s": "{text}"}}'.replace("\t", " ")))
FORMATS = {
    "text": Format("text", lines_of(TEXT)),
    "jsonl": Format("jsonl", lines_of(JSON_LINES)),
    "csv": Format("csv", csv_of("n,sä\n".encode()), LINE_IS_ROW),
    "csv, columns named": Format("csv", csv_of(b"n,s\r\n"), {**LINE_IS_ROW, "csv.columns": "a,b"}),
    "csv, no header": Format("csv", csv_of(b""), {**LINE_IS_ROW, "csv.header": "false"}),
    "avro": Format("avro", avro()),
    "parquet": Format("parquet", parquet()),
}
every_format = pytest.mark.parametrize("kind", FORMATS.values(), ids=FORMATS)


def transformer_of(kind):
    made = registry.find("transformers", kind.name)()
    made.configure(dict(kind.options))
    assert made.can_split(dict(kind.options))
    return made


def whole(kind, data):
    values, error = drained(transformer_of(kind).batches(SeekableBytes(data), Position()))
    assert error is None
    return values


def read(kind, data, extent, start=None, largest=1024 * 1024):
    """The values of one part, and the places behind each of them."""
    values, places = [], []
    for batch in transformer_of(kind).part(SeekableBytes(data, largest), extent, start or Position()):
        values += batch.values
        places += [batch.position_at(count) for count in range(1, len(batch.values) + 1)]
    return values, places


def extents(data, cuts):
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [Extent(start, end) for start, end in itertools.pairwise(places)]


@every_format
@given(data=st.data(), cuts=CUTS, largest=st.sampled_from([1, 3, 1024 * 1024]))
def test_each_record_comes_out_of_one_part(kind, data, cuts, largest):
    """Parts that lie side by side, however small, have together what the whole object has, in its order."""
    content = data.draw(kind.data)
    parts = [read(kind, content, extent, largest=largest) for extent in extents(content, cuts)]
    assert [value for values, _ in parts for value in values] == whole(kind, content)
    counts = [places[-1].records if places else 0 for _, places in parts]
    assert counts == [len(values) for values, _ in parts]


@every_format
def test_at_every_single_cut(kind):
    """One object of each format, cut in two at every byte, and into parts of one byte each."""
    content = SAMPLES[kind.name](kind)
    expected = whole(kind, content)
    assert len(expected) >= 4
    for cut in range(len(content) + 1):
        found = [read(kind, content, extent)[0] for extent in extents(content, [cut])]
        assert found[0] + found[1] == expected, cut
    bytewise = [read(kind, content, Extent(byte, byte + 1))[0] for byte in range(len(content))]
    assert [value for values in bytewise for value in values] == expected


def _lines(_):
    return '1\r\n\n"äß€"\n \n{"s": 3}\n\r\n4'.encode()


def _csv(kind):
    header = b"" if "csv.header" in kind.options else "\n\nn,ß\r\n".encode()
    return header + 'a,"x""ä"\r\n\nb,\n\nc,3\nd,"€"'.encode()


def _avro(_):
    target = io.BytesIO()
    rows = [{"n": n, "s": "x" * n} for n in range(7)]
    fastavro.writer(target, AVRO, rows, sync_interval=10, sync_marker=b"0123456789abcdef")
    return target.getvalue()


def _parquet(_):
    target = io.BytesIO()
    pq.write_table(pa.table({"n": range(7)}), target, row_group_size=2)
    return target.getvalue()


SAMPLES: dict[str, Callable[[Format], bytes]] = {
    "text": _lines,
    "jsonl": _lines,
    "csv": _csv,
    "avro": _avro,
    "parquet": _parquet,
}


@every_format
@given(data=st.data(), cuts=CUTS, largest=st.sampled_from([2, 1024 * 1024]))
def test_reading_goes_on_at_any_place_of_a_part(kind, data, cuts, largest):
    """From the place behind any record of a part come the records that are left of it, with the same places."""
    content = data.draw(kind.data)
    for extent in extents(content, cuts):
        values, places = read(kind, content, extent)
        for index, place in enumerate(places):
            found = read(kind, content, extent, place, largest)
            assert found == (values[index + 1 :], places[index + 1 :])


BAD_LINES = st.sampled_from(["1", '"x"', "x\xff", "x" * 40, "", '{"a"', '"x"y,1', "1,2", '1,"2"', '1,"2', "1,2,3"])
BAD = {
    "text": Format("text", None),
    "jsonl": Format("jsonl", None),
    "csv": Format("csv", None, LINE_IS_ROW),
    "csv, columns named": Format("csv", None, {**LINE_IS_ROW, "csv.columns": "a,b"}),
    "csv, no header": Format("csv", None, {**LINE_IS_ROW, "csv.header": "false", "csv.columns": "a,b"}),
}


def with_bad_ones(make):
    """Values, and pieces that are none with their places and what they are."""
    found = []
    for batch in tolerated(make, Position(), tolerant=True):
        found += batch.values
        if batch.rejected is not None:
            one = batch.rejected
            is_the_rest = one.end is None and one.count is None
            found.append("the rest" if is_the_rest else (one.start, one.end, one.count, one.raw))
    return found


@pytest.mark.parametrize("kind", BAD.values(), ids=BAD)
@given(lines=st.lists(BAD_LINES, max_size=8), end=ROW_ENDS, cuts=CUTS, largest=st.sampled_from([3, 1024 * 1024]))
def test_bad_records_come_out_of_one_part(kind, lines, end, cuts, largest):
    """Parts have together the values, and the bad records with the bytes of each, that the whole object has."""
    content = (f"a,b{end}" if kind.name == "csv" else "").encode() + end.join(lines).encode("latin-1")
    made = registry.find("transformers", kind.name)()
    made.configure({**kind.options, "errors.tolerance": "all", "max.record.bytes": "30"})
    parts = [
        with_bad_ones(partial(made.part, SeekableBytes(content, largest), extent, Position()))
        for extent in extents(content, cuts)
    ]

    assert [one for part in parts for one in part] == with_bad_ones(
        partial(made.batches, SeekableBytes(content), Position())
    )


@pytest.mark.parametrize("kind", ["avro", "parquet"])
@given(data=st.data(), cuts=CUTS)
def test_damaged_blocks_come_out_of_one_part(kind, data, cuts):
    """Blocks of Avro and row groups of Parquet that are damaged are the same pieces in parts as in the whole object."""
    content = bytearray(SAMPLES[kind](None))
    first = content.index(b"0123456789abcdef") + 16 if kind == "avro" else 4
    last = len(content) if kind == "avro" else len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(first, last - 1))] = data.draw(st.integers(0, 255))
    content = bytes(content)
    made = registry.find("transformers", kind)()
    made.configure({"errors.tolerance": "all"})
    parts = [
        with_bad_ones(partial(made.part, SeekableBytes(content), extent, Position()))
        for extent in extents(content, cuts)
    ]

    assert [one for part in parts for one in part] == with_bad_ones(
        partial(made.batches, SeekableBytes(content), Position())
    )


@every_format
def test_a_part_fetches_its_own_bytes(kind):
    """Of a large object, a part asks for what is in it and a little more."""
    content = LARGE[kind.name](kind)
    extent = Extent(len(content) // 2, len(content) // 2 + len(content) // 10)
    stream = SeekableBytes(content)
    values, error = drained(transformer_of(kind).part(stream, extent, Position()))
    assert error is None
    assert values
    assert stream.fetched < 0.35 * len(content)


def _many_lines(_):
    return b"".join(b'{"number": %d, "pad": "%s"}\n' % (number, b"x" * 80) for number in range(40_000))


def _many_rows(kind):
    header = b"" if "csv.header" in kind.options else b"n,s\n"
    return header + b"".join(b'%d,"%s"\n' % (number, b"x" * 80) for number in range(40_000))


def _many_avro(_):
    target = io.BytesIO()
    fastavro.writer(target, AVRO, [{"n": n, "s": "x" * 80} for n in range(40_000)])
    return target.getvalue()


def _many_parquet(_):
    target = io.BytesIO()
    table = pa.table({"n": range(400_000)})
    pq.write_table(table, target, row_group_size=10_000, use_dictionary=False, compression="none")
    return target.getvalue()


LARGE = {"text": _many_lines, "jsonl": _many_lines, "csv": _many_rows, "avro": _many_avro, "parquet": _many_parquet}


@pytest.mark.parametrize(
    ("name", "options", "content", "start", "position"),
    [
        ("jsonl", {}, b"1\n2\n\n3\n!\n5\n", 3, "line 3 of the part from byte 3"),
        ("jsonl", {}, b"1\n2\n\n3\n!\n5\n", 0, "line 5"),
        ("csv", LINE_IS_ROW, b"a,b\n1,2\n3,4\n5\n", 5, "line 2 of the part from byte 5"),
        ("csv", LINE_IS_ROW, b'a,b\n1,2\n3,"4\n4"\n', 5, "line 1 of the part from byte 5"),
    ],
)
def test_errors_say_from_where_they_count(name, options, content, start, position):
    """A line is counted from the beginning of its part, since nobody knows how many are before; the error says so."""
    _, error = drained(
        transformer_of(Format(name, None, options)).part(
            SeekableBytes(content), Extent(start, len(content)), Position()
        )
    )
    assert isinstance(error, DataError)
    assert error.where.position == position


def test_a_row_of_parquet_is_counted_from_the_beginning():
    """The footer says how many rows are before a part: an error names a row as it does for a whole object."""
    target = io.BytesIO()
    table = pa.table({"s": ["a"] * 10 + ["b" * 4000] + ["c"] * 9})
    pq.write_table(table, target, row_group_size=4)
    content, kind = target.getvalue(), Format("parquet", None, {"max.record.bytes": "2000"})
    _, in_all = drained(transformer_of(kind).batches(SeekableBytes(content), Position()))
    errors = [
        drained(transformer_of(kind).part(SeekableBytes(content), extent, Position()))[1]
        for extent in extents(content, range(50, len(content), 50))
    ]
    (error,) = [error for error in errors if error is not None]
    assert error.where.position == in_all.where.position == "record 11"


def test_a_broken_promise_is_an_error():
    """With `csv.quoted.newlines=false`, a field with a line end in it is an error, in a whole object as well."""
    content = b'a,b\n1,2\n3,"4\n5"\n6,7\n'
    values, error = drained(transformer_of(FORMATS["csv"]).batches(SeekableBytes(content), Position()))
    assert values == [{"a": "1", "b": "2"}]
    assert (error.where.position, "csv.quoted.newlines" in error.message) == ("line 3", True)


def test_the_first_part_has_all_of_an_avro_object_with_a_poor_mark():
    """A mark of zeros may stand in the data as well: then nobody looks for it."""
    target = io.BytesIO()
    rows = [{"n": 0, "s": "\0" * number} for number in range(40)]
    fastavro.writer(target, AVRO, rows, sync_interval=30, sync_marker=bytes(16))
    content = target.getvalue()
    parts = [read(FORMATS["avro"], content, extent)[0] for extent in extents(content, range(70, len(content), 70))]
    assert [value for values in parts for value in values] == rows


@pytest.mark.parametrize(("name", "splits"), [("json", False), ("bytes", False), ("csv", False), ("text", True)])
def test_formats_that_cannot_begin_anywhere_say_so(name, splits):
    """Documents, raw bytes, and CSV of which nothing is promised are read as a whole."""
    assert registry.find("transformers", name).can_split({}) is splits


@given(content=lines_of(TEXT), cuts=CUTS)
def test_parts_of_an_object_opened_by_its_first_bytes(content, cuts):
    """A look at the first bytes, for a compression, takes nothing from the parts."""
    kind = FORMATS["text"]
    found = []
    for extent in extents(content, cuts):
        opened = open_decompressed(SeekableBytes(content), "a", "auto")
        found += drained(transformer_of(kind).part(opened, extent, Position()))[0]
    assert found == whole(kind, content)
    assert open_decompressed(SeekableBytes(gzip.compress(content)), "a", "auto").kind == "gzip"
