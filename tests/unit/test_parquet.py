import datetime as dt
import io
import uuid
from contextlib import suppress
from decimal import Decimal
from itertools import accumulate, combinations

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


def test_old_timestamps_of_spark_are_read():
    """Timestamps of 96 bits come as microseconds, also those that nanoseconds could not hold."""
    table = pa.table({"t": pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)], pa.timestamp("us"))})  # noqa: DTZ001 - as Spark has them
    (batch,) = transformer().batches(SeekableBytes(written(table, use_deprecated_int96_timestamps=True)), Position())

    assert [value["t"] for value in batch.values] == table.column("t").cast(pa.int64()).to_pylist()


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


LONG = "y" * 100_000
MANY = 1_000_000


def repeated(count, text=LONG):
    """A column of one text, so many times."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([text]))


def lists(values, *sizes):
    """Lists of so many values each, and behind them lists of one value as long as there are any."""
    ends = list(accumulate(sizes, initial=0))
    return pa.ListArray.from_arrays(pa.array([*ends, *range(ends[-1] + 1, len(values) + 1)], pa.int32()), values)


def maps(values, *sizes):
    keyed = lists(values, *sizes)
    return pa.MapArray.from_arrays(keyed.offsets, pa.array(range(len(values))), keyed.values)


def structs(values):
    return pa.StructArray.from_arrays([values, pa.nulls(len(values), pa.int8())], ["x", "n"])


SIZES = (2, 0, 1, MANY)
BOMBS = {
    "list": lists(repeated(MANY + 5), *SIZES),
    "list of bytes": lists(repeated(MANY + 5, LONG.encode()), *SIZES),
    "list of large texts": lists(repeated(MANY + 5, pa.scalar(LONG, pa.large_string())), *SIZES),
    "map": maps(repeated(MANY + 5), *SIZES),
    "list of structs": lists(structs(repeated(MANY + 5)), *SIZES),
    "struct of a list": structs(lists(repeated(MANY + 5), *SIZES)),
    "list of lists": lists(lists(repeated(MANY + 5), 2, 1, MANY // 2, MANY // 2), 1, 0, 1, 2),
}


@pytest.fixture
def most_memory():
    """Arrow's memory from now on, at the most."""
    mine, usual = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(mine)
    yield mine.max_memory
    pa.set_memory_pool(usual)


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("stored", [False, True])
def test_a_row_in_which_a_text_stands_a_million_times_is_not_unpacked(kind, stored, most_memory):
    """A row whose texts are in the file once, and larger than max.record.bytes, is an error that costs no memory."""
    data = written(pa.table({"v": BOMBS[kind]}), "zstd", store_schema=stored)
    before = most_memory()

    values, error = read(data)

    assert len(values) == 3
    assert len(str(values[0])) > 2 * len(LONG)
    assert error.where.position == "record 4"
    assert "the row has more than 67108864 bytes, see max.record.bytes" in error.message
    assert most_memory() - before < 64 * 1024 * 1024


@pytest.mark.parametrize("kind", ["list", "map"])
def test_behind_a_row_that_is_not_unpacked_reading_goes_on_with_the_next_row_group(kind):
    """With errors.tolerance=all such a row is a piece, with what is left of its row group, and the rest is read."""
    data = written(pa.table({"v": BOMBS[kind], "n": range(6)}), "zstd", per_group=5)

    batches = list(transformer(errors_tolerance="all").batches(SeekableBytes(data), Position()))

    assert [value["n"] for batch in batches for value in batch.values] == [0, 1, 2, 5]
    (rejected,) = [batch.rejected for batch in batches if batch.rejected]
    assert (rejected.number, rejected.count) == (4, 2)
    assert "max.record.bytes" in rejected.error.message


@pytest.mark.parametrize("done", range(7))
def test_reading_goes_on_around_a_row_that_is_not_unpacked(done):
    """In front of it any row can be gone on at; behind it in its row group none, which the error says."""
    data = written(pa.table({"v": BOMBS["list"], "n": range(6)}), "zstd", per_group=5)

    values, error = read(data, Position(records=done))

    if done < 5:
        which = "the row" if done < 4 else "record 4, in front of it in its row group,"
        assert [value["n"] for value in values] == list(range(done, 3))
        assert error.where.position == f"record {max(done + 1, 4)}"
        assert f"{which} has more than 67108864 bytes" in error.message
    else:
        assert ([value["n"] for value in values], error) == ([5][done - 5 :], None)


def test_a_part_refuses_only_its_own_rows():
    """Who reads a part of an object meets a row that is not unpacked only where it is of that part."""
    data = written(pa.table({"v": BOMBS["list"], "n": range(6)}), "zstd", per_group=5)
    second = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0).dictionary_page_offset

    first, error = drained(transformer().part(SeekableBytes(data), Extent(0, second), Position()))
    assert ([value["n"] for value in first], error.where.position) == ([0, 1, 2], "record 4")
    values, error = drained(transformer().part(SeekableBytes(data), Extent(second, len(data)), Position()))
    assert ([value["n"] for value in values], error) == ([5], None)


def test_without_a_largest_size_a_row_is_unpacked_by_itself():
    """With max.record.bytes=0 rows of any size are read, those of more than 8 MB one at a time."""
    data = written(pa.table({"v": lists(repeated(2000), *[200] * 9)}), "zstd")
    sizes = [len(batch.values) for batch in transformer(max_record_bytes="0").batches(SeekableBytes(data), Position())]

    assert sizes[:9] == [1] * 9
    assert sum(sizes) == 209


WORDS = ["", "a", "customer", "x" * 100, None]
INNER = pa.array([WORDS[number * 7 % 5] for number in range(3000)]).dictionary_encode()
KINDS = {
    "lists": pa.array([None if n % 11 == 3 else [WORDS[k % 5] for k in range(n % 7)] for n in range(1000)]),
    "large lists": pa.array([[WORDS[n % 5]] * (n % 4) for n in range(1000)], pa.large_list(pa.string())),
    "lists of a size": pa.array([None if n % 3 else [WORDS[n % 5]] * 3 for n in range(1000)], pa.list_(pa.string(), 3)),
    "lists of lists": lists(lists(INNER, *[3, 0, 5] * 300), *[2, 0, 1] * 300),
    "lists of structs": lists(structs(INNER), *[3, 0, 5] * 300),
    "maps of texts to texts": pa.array(
        [[(f"k{k}" * 9, WORDS[k % 5]) for k in range(n % 7)] for n in range(1000)], pa.map_(pa.string(), pa.string())
    ),
}
if hasattr(pa, "json_"):  # since 19
    json_texts = pa.array([f'{{"a": {n % 7:040}}}' for n in range(1000)], pa.json_())
    KINDS["JSON"] = pa.ListArray.from_arrays([*range(1001)], json_texts)


def text_bytes(value):
    if isinstance(value, dict):
        return sum(map(text_bytes, [*(key for key in value if key not in {"x", "n"}), *value.values()]))
    return len(value) if isinstance(value, str) else sum(map(text_bytes, value or ()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_more_texts_in_lists_are_unpacked_at_once_than_are_bounded(kind, version, monkeypatch):
    """How many rows come at once follows from the texts that they have, and all values are right."""
    monkeypatch.setattr("headrace.transformers.parquet_texts.UNPACKED_BYTES", 1000)
    table = pa.table({"v": KINDS[kind]})
    data = written(table, data_page_version=version, data_page_size=500)

    batches = [list(batch.values) for batch in transformer().batches(SeekableBytes(data), Position())]

    given = [row["v"] for row in table.to_pylist(maps_as_pydicts="strict")]
    found = [row["v"] for batch in batches for row in batch]
    assert [dict(one) if "maps" in kind else one for one in found] == given
    sizes = [[text_bytes(row["v"]) for row in batch] for batch in batches]
    assert all(len(batch) == 1 or sum(batch) <= 1000 for batch in sizes)
    assert max(map(len, batches)) > 5


class Counted(SeekableBytes):
    """An object that counts how often one goes to a byte of it: each time is a request."""

    gone = 0

    def go_to(self, byte, /, *, wanted=None):
        self.gone += 1
        super().go_to(byte, wanted=wanted)


def test_lists_of_short_texts_come_many_at_a_time_and_with_no_more_requests():
    """Ordinary lists, of texts that repeat or do not, are read as fast as ever, and nothing is fetched twice."""
    texts = [[f"customer {number * 7 % 97}", f"{number:060}"] * 5 for number in range(30_000)]
    data = written(pa.table({"v": texts}), "zstd")
    stream = Counted(data)

    batches = [list(batch.values) for batch in transformer().batches(stream, Position())]

    assert [row["v"] for batch in batches for row in batch] == texts
    assert min(map(len, batches[1:-1])) > 1000
    assert stream.fetched <= len(data) + 64 * 1024
    assert stream.gone <= 4


def test_in_a_large_row_group_only_lists_of_texts_are_held(monkeypatch):
    """Of a row group that is not held in memory, the columns that are looked into before are, and are fetched once."""
    monkeypatch.setattr("headrace.transformers.parquet._HELD_BYTES", 1_000_000)
    texts = [[f"customer {number * number % 97}"] * 10 for number in range(100_000)]
    table = pa.table({"v": texts, "n": [bytes([n % 251]) * 7 + n.to_bytes(5, "big") for n in range(100_000)]})
    data = written(table, use_dictionary=["v.list.element"])
    stream = Counted(data)

    values, error = drained(transformer().batches(stream, Position()))

    assert (values, error) == (table.to_pylist(), None)
    assert stream.fetched <= len(data) + 64 * 1024


def test_damage_behind_the_first_page_of_a_list_is_named():
    """What is damaged where rows are looked at before they are unpacked is an error, after the rows before it."""
    data = bytearray(written(pa.table({"v": lists(repeated(30_000), *[10] * 3000)}), "zstd", data_page_size=1000))
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    data[end - 20 : end] = bytes(20)

    batches = transformer(errors_tolerance="all").batches(SeekableBytes(bytes(data)), Position())
    done, rejected = 0, None
    for batch in batches:
        done += len(batch.values)
        rejected = batch.rejected or rejected

    assert 0 < done == rejected.number - 1
    assert rejected.count == 3000 - done
    assert "the row group cannot be read" in rejected.error.message


def test_a_damaged_dictionary_is_an_error_before_any_row():
    """A dictionary that cannot be read is an error with the first row, and nothing is unpacked by guess."""
    data = bytearray(written(pa.table({"v": BOMBS["list"]}), "zstd"))
    start = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).dictionary_page_offset
    data[start + 20 : start + 25] = bytes(5)

    values, error = read(bytes(data))

    assert (values, error.where.position) == ([], "record 1")
    assert "the row group cannot be read" in error.message


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_that_are_written_out_are_not_looked_at_before(version, most_memory):
    """Where a dictionary has become too large, texts are in the file as often as in rows, and cost no more memory."""
    texts = [[f"{number:0200}"] * 2 for number in range(200_000)]
    texts[10] = [LONG]
    data = written(pa.table({"v": texts}), "zstd", data_page_version=version)
    before = most_memory()

    sizes = [len(batch.values) for batch in transformer().batches(SeekableBytes(data), Position())]

    assert sum(sizes) == 200_000
    assert min(sizes[-50:-1]) > 1000
    assert most_memory() - before < 24 * 1024 * 1024


@pytest.mark.parametrize("size", [16, 1000])
def test_lists_of_bytes_of_one_size(size):
    """Where short, they come as fast as ever; where long and many of them may be in a row, a row at a time."""
    values = pa.array(
        [b"%016d" % (number % 7) * (size // 16) + b"." * (size % 16) for number in NUMBERS], pa.binary(size)
    )
    table = pa.table({"v": lists(values, *[10] * 2000)})

    batches = [batch.values for batch in transformer().batches(SeekableBytes(written(table)), Position())]

    assert [row for batch in batches for row in batch] == table.to_pylist()
    assert max(map(len, batches)) == (2000 if size == 16 else 1)


def test_a_dictionary_that_the_footer_does_not_name_is_known():
    """Where only the encodings say that there is a dictionary, as with old writers, rows are looked at all the same."""
    data = written(pa.table({"v": BOMBS["list"]}), "none")
    begins = 2 * pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).data_page_offset
    offset = bytes([begins & 127 | 128, begins >> 7 & 127 | 128, begins >> 14])
    old = data.replace(b"\x26" + offset + b"\x26\x08", b"\x26\x88\x80\x00\x16\x08")
    assert not pq.ParquetFile(io.BytesIO(old)).metadata.row_group(0).column(0).has_dictionary_page

    values, error = read(old)

    assert (len(values), error.where.position) == (3, "record 4")
    assert "max.record.bytes" in error.message


def test_each_column_is_looked_at_only_as_far_as_it_matters(most_memory):
    """Beside a column of texts that repeat to its end, one whose texts are written out costs no memory."""
    texts = [[f"{number:0200}"] * 2 for number in range(200_000)]
    texts[10] = [LONG]
    repeats = lists(repeated(1_000_000, "customer"), *[5] * 200_000)
    data = written(pa.table({"v": texts, "r": repeats}), "zstd")
    before = most_memory()

    count = sum(len(batch.values) for batch in transformer().batches(SeekableBytes(data), Position()))

    assert count == 200_000
    assert most_memory() - before < 32 * 1024 * 1024


@pytest.mark.parametrize("said", ["values", "bytes"])
def test_a_footer_that_makes_a_list_small_is_not_believed(said):
    """A row is refused as well where the footer says that its column has a few values, or a few bytes."""
    data = written(pa.table({"v": BOMBS["list"]}), "zstd")
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    number = 2 * (chunk.num_values if said == "values" else chunk.total_uncompressed_size)
    known = bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14])
    begins = footer_of(data).start
    wrong = data[:begins] + data[begins:].replace(b"\x16" + known, b"\x16\x94\x80\x00")

    values, error = read(wrong)

    assert wrong != data
    assert (len(values), error.where.position) == (3, "record 4")
    assert "max.record.bytes" in error.message
