import datetime as dt
import io
import uuid
from contextlib import suppress
from decimal import Decimal
from itertools import combinations

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.errors import ConfigError, DataError, RetriableError
from headrace.framework.parts import Extent
from headrace.framework.schema import (
    DATE,
    DECIMAL,
    MICRO_TIME,
    MICRO_TIMESTAMP,
    NANO_TIMESTAMP,
    TIME,
    TIMESTAMP,
    UUID,
)
from headrace.testing.streams import ScriptedStream, SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.parquet import ParquetTransformer

CODECS = ("none", "snappy", "gzip", "zstd", "brotli", "lz4")


def written(table, codec="none", *, per_group=None, **options):
    target = io.BytesIO()
    pq.write_table(table, target, compression=codec, row_group_size=per_group, **options)
    return target.getvalue()


def rows(count):
    return pa.table({"n": pa.array(range(count)), "s": pa.array([f"row {number}" for number in range(count)])})


def transformer(**props):
    made = ParquetTransformer()
    made.configure({key.replace("_", "."): value for key, value in props.items()})
    return made


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(transformer(**props).batches(SeekableBytes(data), start))


@pytest.mark.parametrize("codec", CODECS)
def test_rows_come_back(codec):
    """What pyarrow writes comes back value for value, in every codec."""
    assert read(written(rows(300), codec, per_group=70)) == (rows(300).to_pylist(), None)


def test_an_object_that_cannot_be_gone_about_in_is_read_as_well():
    """A stream that only goes forward is copied to a file first, and gives the same."""
    data = written(rows(30), per_group=7)

    assert drained(transformer().batches(io.BytesIO(data), Position(records=20))) == (rows(30).to_pylist()[20:], None)


@pytest.mark.parametrize("data", [b"", written(rows(0)), written(rows(5).slice(0, 0))])
@pytest.mark.parametrize("kind", [SeekableBytes, io.BytesIO])
def test_nothing_in_it_is_no_record(data, kind):
    """An object without bytes, and a file without rows, have no record."""
    assert drained(transformer().batches(kind(data), Position())) == ([], None)


def test_a_place_is_a_number_of_rows():
    """Reading goes on at any row: the number of records says it all."""
    data = written(rows(30), per_group=7)
    whole = read(data)[0]

    for done in range(32):
        batches = list(transformer().batches(SeekableBytes(data), Position(records=done)))
        assert [value for batch in batches for value in batch.values] == whole[done:]
        assert not batches or batches[0].position_at(1) == Position(records=done + 1)


def test_a_resume_fetches_the_footer_and_the_tail():
    """Of row groups that are done, nothing is fetched; what is fetched comes in one piece for each row group."""
    table = pa.table({"n": range(20_000), "s": [f"{number:0100}" for number in range(20_000)]})
    data = written(table, per_group=1000)
    stream = SeekableBytes(data)

    values, error = drained(transformer().batches(stream, Position(records=18_500)))

    assert (len(values), error) == (1500, None)
    assert stream.fetched < 0.15 * len(data)


def test_columns_that_nobody_wants_are_not_fetched():
    """Of a projection come the columns that are named, in the file's order, and only their bytes are fetched."""
    table = pa.table({
        "a": range(1000), "big": ["x" * 1000 + str(number) for number in range(1000)],
        "s": [{"x": number, "y": "yes"} for number in range(1000)],
    })  # fmt: skip
    data = written(table, use_dictionary=False)
    stream = SeekableBytes(data)

    values, error = drained(transformer(parquet_columns="s.x, a").batches(stream, Position()))

    assert error is None
    assert values[:2] == [{"a": 0, "s": {"x": 0}}, {"a": 1, "s": {"x": 1}}]
    assert stream.fetched < 0.1 * len(data)


def test_a_column_that_is_not_there_is_named():
    """A projection that names what an object does not have is an error with the names that there are."""
    assert (
        "there is no column 'x', which parquet.columns names; there are n, s"
        in read(written(rows(1)), parquet_columns="n,x")[1].message
    )


def test_types_are_carried():
    """Each type has Connect's schema, and its values are Connect's; nothing of a time is rounded."""
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC)
    us = int(moment.timestamp()) * 10**6 + 678_901
    day = (moment.date() - dt.date(1970, 1, 1)).days
    known = {
        "day": (pa.date32(), moment.date(), day, DATE),
        "day64": (pa.date64(), moment.date(), day, DATE),
        "ms": (pa.timestamp("ms", "UTC"), us // 1000, us // 1000, TIMESTAMP),
        "s": (pa.timestamp("s"), us // 10**6, us // 10**6 * 1000, TIMESTAMP),
        "us": (pa.timestamp("us"), us, us, MICRO_TIMESTAMP),
        "ns": (pa.timestamp("ns"), us * 1000, us * 1000, NANO_TIMESTAMP),
        "tms": (pa.time32("ms"), 1500, 1500, TIME),
        "tus": (pa.time64("us"), 1500, 1500, MICRO_TIME),
        "d": (pa.decimal128(38, 3), Decimal("-1.250"), Decimal("-1.250"), DECIMAL),
        "d256": (pa.decimal256(60, 1), Decimal("1" * 50), Decimal("1" * 50 + ".0"), DECIMAL),
        "u8": (pa.uint8(), 255, 255, None),
        "u32": (pa.uint32(), 2**32 - 1, 2**32 - 1, None),
        "u64": (pa.uint64(), 2**63 - 1, 2**63 - 1, None),
        "f": (pa.float32(), 0.5, 0.5, None),
        "b": (pa.binary(), b"\xff", b"\xff", None),
        "fixed": (pa.binary(2), b"ab", b"ab", None),
        "dict": (pa.dictionary(pa.int32(), pa.string()), "x", "x", None),
        "list": (pa.list_(pa.timestamp("ms")), [us // 1000, None], [us // 1000, None], None),
        "map": (pa.map_(pa.string(), pa.date32()), [("k", moment.date())], {"k": day}, None),
        "struct": (
            pa.struct([("t", pa.date64()), ("n", pa.int8())]),
            {"t": moment.date(), "n": None}, {"t": day, "n": None}, None,
        ),
        "none": (pa.null(), None, None, None),
        "id": (pa.uuid(), uuid.UUID(int=7).bytes, str(uuid.UUID(int=7)), UUID),
    }  # fmt: skip
    table = pa.table({name: pa.array([given, None], kind) for name, (kind, given, _, _) in known.items()})

    (batch,) = transformer().batches(SeekableBytes(written(table)), Position())

    assert batch.values[0] == {name: expected for name, (_, _, expected, _) in known.items()}
    assert batch.values[1] == dict.fromkeys(known)
    assert {field.name: field.schema.name for field in batch.schema.fields} == {
        name: logical for name, (_, _, _, logical) in known.items()
    }
    kinds = {field.name: field.schema for field in batch.schema.fields}
    assert (kinds["u8"].type, kinds["u32"].type, kinds["u64"].type) == ("int16", "int64", "int64")
    assert kinds["d"].parameters == {"scale": "3"}
    assert kinds["map"].values.name == kinds["struct"].fields[0].schema.name == DATE


def test_an_integer_beyond_64_bits_is_an_error():
    """Finding 2: an unsigned integer that no long can hold is an error with its row, and is not wrapped round."""
    table = pa.table({"u": pa.array([1, 2**63, 3], pa.uint64())})

    values, error = read(written(table))

    assert values == [{"u": 1}]
    assert error.where.position == "record 2"
    assert "beyond 64 bits" in error.message


def test_required_columns_are_required():
    """Whether a column may be null is in the schema."""
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    (batch,) = transformer().batches(SeekableBytes(written(pa.table({"a": [1], "b": [2]}, schema))), Position())

    assert [field.schema.optional for field in batch.schema.fields] == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[:100],
        lambda data: data[:3],
        lambda data: data[:-4] + b"PAR2",
        lambda data: b"\x1f\x8b\x08" + data[3:-4] + b"junk",
        lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
    ],
)
def test_what_is_no_parquet_is_named(change):
    """Finding 2: a file that is cut, or that is none, is an error before its first record; never silence."""
    values, error = read(change(written(rows(30))))

    assert values == []
    assert isinstance(error, DataError)
    assert error.where.position == "record 1"
    assert "no Parquet file" in error.message
    assert "\n" not in str(error)


def test_damage_in_a_row_group_is_named():
    """Finding 2: a row group that cannot be read is an error with its first row, after those before it."""
    data = bytearray(written(rows(300), "zstd", per_group=100))
    start = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(1).data_page_offset
    data[start : start + 60] = bytes(60)

    values, error = read(bytes(data))

    assert values == rows(100).to_pylist()
    assert isinstance(error, DataError)
    assert error.where.position == "record 101"


def test_a_stream_that_fails_is_no_end():
    """Finding 2: the stream's error passes as it is, whoever was reading, after the rows that were complete."""
    fault = RetriableError("the connection broke")

    class Failing(SeekableBytes):
        def read(self, size, /):
            if self.fetched > 66_000:
                raise fault
            return super().read(size)

    table = pa.table({"s": [f"{number:01000}" for number in range(1000)]})
    values, error = drained(
        transformer().batches(Failing(written(table, per_group=10, use_dictionary=False)), Position())
    )

    assert error is fault
    assert values == table.to_pylist()[: len(values)]
    assert drained(transformer().batches(ScriptedStream([b"PAR1", fault]), Position())) == ([], fault)


def test_a_row_has_a_largest_size():
    """A row of more than max.record.bytes is an error with its number, after the rows before it."""
    table = pa.table({"s": ["x" * size for size in (10, 20, 5000, 30)]})

    values, error = read(written(table), max_record_bytes="1000")

    assert [len(value["s"]) for value in values] == [10, 20]
    assert error.where.position == "record 3"
    assert "max.record.bytes" in error.message


def test_a_row_beyond_all_limits_is_not_unpacked(monkeypatch):
    """A row that is larger than max.record.bytes by what the footer says is an error before it is in memory."""
    monkeypatch.setattr("headrace.transformers.parquet._HELD_BYTES", 1_000_000)
    stream = SeekableBytes(written(pa.table({"s": ["y" * 3_000_000]}), use_dictionary=False))

    values, error = drained(transformer(max_record_bytes="1000000").batches(stream, Position()))

    assert (values, error.where.position) == ([], "record 1")
    assert "max.record.bytes" in error.message
    assert stream.fetched < 200_000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_that_differs_from_its_checksum_is_an_error(version):
    """Where pages have checksums, one changed bit is an error in place of another value."""
    table = pa.table({"n": list(range(1000, 3000))})
    plain = {"use_dictionary": False, "write_page_checksum": True, "data_page_version": version}
    data = written(table, "none", **plain)
    at = data.index((1050).to_bytes(8, "little"))
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    assert read(data) == ([{"n": number} for number in range(1000, 3000)], None)
    values, error = read(damaged)
    assert (values, error.where.position) == ([], "record 1")


def test_unpacking_has_a_limit():
    """What is read of a row group may not say that it unpacks to more than max.decompression.ratio times its size."""
    data = written(pa.table({"s": [bytes(30_000_000)] * 3, "n": [1, 2, 3]}), "zstd", use_dictionary=False)

    assert "max.decompression.ratio" in read(data)[1].message
    assert "max.decompression.ratio" in read(data, parquet_columns="s")[1].message
    assert len(read(data, parquet_columns="n")[0]) == 3
    assert len(read(data, max_decompression_ratio="0")[0]) == 3


def test_wide_rows_come_in_small_batches():
    """A batch is about a megabyte, and never more than 2000 rows; positions join up."""
    wide = pa.table({"s": [f"{number:0100000}" for number in range(50)]})
    batches = list(transformer().batches(SeekableBytes(written(wide, use_dictionary=False)), Position()))
    narrow = list(transformer().batches(SeekableBytes(written(rows(12_000), use_dictionary=False)), Position()))

    assert max(len(batch.values) for batch in batches) <= 11
    assert [len(batch.values) for batch in narrow] == [2000] * 6
    assert [batch.end for batch in narrow[:-1]] == [batch.position_at(0) for batch in narrow[1:]]


def test_keys_are_checked():
    """An unknown key of the format's is a fault."""
    with pytest.raises(ConfigError, match=r"parquet\.colums.*parquet\.columns"):
        transformer(parquet_colums="a")


@pytest.mark.parametrize(
    "table",
    [
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
        pa.table({"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])}),
    ],
)
def test_columns_of_one_name_are_refused(table):
    """Finding 2: of two columns with one name none is lost in silence: the error names them."""
    values, error = read(written(table))

    assert values == []
    assert "two columns of the name 'a'" in error.message


def test_texts_that_are_no_utf8_are_an_error():
    """A text that is not UTF-8 is an error with its row, after the rows before it."""
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    )

    values, error = read(written(pa.table({"s": bad})))

    assert values == [{"s": "a"}]
    assert error.where.position == "record 2"


def footer_of(data):
    """The bytes of a file that are its footer."""
    return range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8)


def changed(data, **places):
    found = bytearray(data)
    for place, value in places.items():
        found[int(place[1:])] = value
    return bytes(found)


@pytest.mark.parametrize("value", [0, 6, 255])
def test_a_damaged_footer_loses_no_row_in_silence(value):
    """Whatever byte of the footer is another one: there are all rows or an error, and the process lives."""
    data = written(pa.table({"n": range(8), "s": ["x" * (n % 4) for n in range(8)]}), per_group=3, use_dictionary=False)

    for place in footer_of(data):
        values, error = read(changed(data, **{f"_{place}": value}))
        assert len(values) == 8 or isinstance(error, DataError), place
        assert error is None or "\n" not in str(error)


def test_a_footer_that_agrees_with_itself_is_held_against_the_rows():
    """Where only the rows can tell that there are fewer, they do, and they tell it again to whoever reads on."""
    data = written(pa.table({"l": [[0], [1], [2]]}))
    places = [place for place in footer_of(data) if data[place] == 3 * 2]
    for first, second in combinations(places, 2):
        wrong = changed(data, **{f"_{first}": 8, f"_{second}": 8})
        with suppress(Exception):
            found = pq.ParquetFile(io.BytesIO(wrong)).metadata
            if found.num_rows == found.row_group(0).num_rows == 4:
                break
    values, error = read(wrong)

    assert [value["l"] for value in values] == [[0], [1], [2]]
    assert "the row group has fewer rows than the footer says" in error.message
    assert str(read(wrong, Position(records=len(values)))[1]) == str(error)


def test_a_row_group_that_begins_nowhere_belongs_to_every_part():
    """A row group outside of the file is in no part: each of them says so, and none passes it over."""
    data = written(rows(4), per_group=2, use_dictionary=False)
    begins = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0).data_page_offset
    number = bytes([begins * 2 & 127 | 128, begins * 2 >> 7])
    footer = data[footer_of(data).start :]
    wrong = data[: -len(footer)] + footer.replace(number, number[:1] + b"\x7f")
    half = len(data) // 2

    for extent in (Extent(0, half), Extent(half, len(data))):
        values, error = drained(transformer().part(SeekableBytes(wrong), extent, Position()))
        assert isinstance(error, DataError)
        assert values == []


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_a_text_that_stands_in_many_rows_is_not_in_memory_as_often(nested, as_dictionary):
    """A long text that is in the file once and in thousands of rows comes a few rows at a time."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), ["y" * 300_000])
    table = pa.table({"s": pa.StructArray.from_arrays([texts], ["x"]) if nested else texts})
    data = written(table, "zstd", store_schema=as_dictionary)
    before, peak, count = pa.total_allocated_bytes(), 0, 0

    for batch in transformer().batches(SeekableBytes(data), Position()):
        count += len(batch.values)
        peak = max(peak, pa.total_allocated_bytes() - before, 300_000 * len(batch.values))
        if count > 100:
            break

    assert len(data) < 50_000
    assert peak < 12_000_000


NUMBERS = range(20_000)
REPEATED = {
    "texts": [f"customer {number % 97}" for number in NUMBERS],
    "bytes of one size": pa.array([b"%016d" % (number % 97) for number in NUMBERS], pa.binary(16)),
    "decimals": pa.array([Decimal(number % 97) for number in NUMBERS], pa.decimal128(9, 2)),
    "lists, empty at first": [[f"customer {number % 97}"] if number > 5000 else [] for number in NUMBERS],
    "maps": pa.array([[(f"k{number % 97}", "v")] for number in NUMBERS], pa.map_(pa.string(), pa.string())),
    "nothing at all": pa.array([None for number in NUMBERS], pa.string()),
}


@pytest.mark.parametrize("values", REPEATED.values(), ids=REPEATED)
def test_short_texts_that_stand_in_many_rows_come_many_at_a_time(values):
    """Where the longest of them is short, rows come as fast as ever."""
    data = written(pa.table({"s": values}))
    sizes = [len(batch.values) for batch in transformer().batches(SeekableBytes(data), Position())]

    assert sizes == [2000] * 10


def test_a_long_text_behind_short_ones_is_not_unpacked_with_thousands_of_rows():
    """Before any row is read it is known: thousands of rows with it, behind as many without, come a few at once."""
    which = [0] * 6000 + [1] * 3000
    texts = pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), ["short", "y" * 300_000])
    data = written(pa.table({"s": texts, "n": range(9000)}), "zstd", store_schema=False)

    batches = transformer().batches(SeekableBytes(data), Position())
    sizes = [len(next(batches).values) for _ in range(300)]

    assert max(sizes) * 300_000 <= 8 * 1024 * 1024
    assert sum(sizes) > 6000
