"""Parquet's lists and maps, in which a few bytes of a file can be any number of values in one row."""

import io
from itertools import accumulate

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.parts import Extent
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.parquet import ParquetTransformer
from headrace.transformers.parquet_levels import Levels

NUMBERS = range(20_000)


def written(table, codec="none", *, per_group=None, **options):
    target = io.BytesIO()
    pq.write_table(table, target, compression=codec, row_group_size=per_group, **options)
    return target.getvalue()


def transformer(**props):
    made = ParquetTransformer()
    made.configure({key.replace("_", "."): value for key, value in props.items()})
    return made


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(transformer(**props).batches(SeekableBytes(data), start))


def footer_of(data):
    """The bytes of a file that are its footer."""
    return range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8)


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


POOLS = []
"""What is in a pool may be garbage that is collected when the test is long done."""


@pytest.fixture
def most_memory():
    """Arrow's memory from now on, at the most."""
    mine, usual = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    POOLS.append(mine)
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
WRITES_NULLS = int(pa.__version__.partition(".")[0]) >= 26  # in lists of a size
KINDS = {
    "lists": pa.array([None if n % 11 == 3 else [WORDS[k % 5] for k in range(n % 7)] for n in range(1000)]),
    "large lists": pa.array([[WORDS[n % 5]] * (n % 4) for n in range(1000)], pa.large_list(pa.string())),
    "lists of a size": pa.array(
        [None if n % 3 and WRITES_NULLS else [WORDS[n % 5]] * 3 for n in range(1000)], pa.list_(pa.string(), 3)
    ),
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
    monkeypatch.setattr("headrace.transformers.parquet_ahead.UNPACKED_BYTES", 1000)
    table = pa.table({"v": KINDS[kind]})
    data = written(table, data_page_version=version, data_page_size=500)

    batches = [list(batch.values) for batch in transformer().batches(SeekableBytes(data), Position())]

    given = [dict(row["v"]) if "maps" in kind else row["v"] for row in table.to_pylist()]
    assert [dict(row["v"]) if "maps" in kind else row["v"] for batch in batches for row in batch] == given
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
    """Where short, they come as fast as ever; where long, as many rows at a time as are 8 MB."""
    values = pa.array(
        [b"%016d" % (number % 7) * (size // 16) + b"." * (size % 16) for number in NUMBERS], pa.binary(size)
    )
    table = pa.table({"v": lists(values, *[10] * 2000)})

    batches = [batch.values for batch in transformer().batches(SeekableBytes(written(table)), Position())]

    assert [row for batch in batches for row in batch] == table.to_pylist()
    assert max(map(len, batches)) == (2000 if size == 16 else 8 * 1024 * 1024 // (10 * size))


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


MILLIONS = 3_000_000
SMALL = "10000000"


def equal(value, count, kind=None):
    return pa.repeat(pa.scalar(value, kind), count)


BY_ENCODING = {
    "dictionary": (equal(7, MILLIONS + 5, pa.int64()), {}),
    "delta": (equal(7, MILLIONS + 5, pa.int64()), {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}),
    "booleans": (equal(True, 4 * MILLIONS + 5), {"use_dictionary": False, "column_encoding": "RLE"}),
    "bytes of one size": (equal(b"x" * 500, MILLIONS // 50 + 5, pa.binary(500)), {}),
    "decimals": (equal(None, MILLIONS + 5, pa.decimal128(5, 2)), {}),
    "nulls": (pa.nulls(MILLIONS + 5, pa.float64()), {}),
    "texts without a letter": (equal("", MILLIONS + 5), {}),
}


def equal_maps(values, *sizes):
    keyed = lists(values, *sizes)
    return pa.MapArray.from_arrays(keyed.offsets, equal(1, len(values), pa.int8()), keyed.values)


AROUND = {
    "list": (lists, "v.list.element"),
    "map": (equal_maps, "v.key_value.value"),
    "list of structs": (lambda values, *sizes: lists(structs(values), *sizes), "v.list.element.x"),
    "list of lists": (lambda values, *sizes: lists(lists(values, *sizes), 1, 1, 1, 1), "v.list.element.list.element"),
}


def bomb(encoding, around="list"):
    """A table of six rows with one large list in the fourth, and how to write it."""
    values, how = BY_ENCODING[encoding]
    made, path = AROUND[around]
    how = {**how, "column_encoding": {path: how["column_encoding"]}} if "column_encoding" in how else how
    return pa.table({"v": made(values, 2, 0, 1, len(values) - 5), "n": range(6)}), how


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", BY_ENCODING)
def test_a_row_of_millions_of_equal_values_is_not_unpacked(encoding, version, codec, most_memory):
    """Whatever a few bytes say millions of values by: a row of too many is an error that costs no memory."""
    table, how = bomb(encoding)
    data = written(table, codec, data_page_version=version, **how)
    before = most_memory()

    values, error = read(data, max_record_bytes=SMALL if encoding != "texts without a letter" else "8500000")

    assert values == table.slice(0, 3).to_pylist()
    assert error.where.position == "record 4"
    assert "the row has more than" in error.message
    assert "see max.record.bytes" in error.message
    assert most_memory() - before < 2_000_000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("around", AROUND)
def test_values_are_counted_in_whatever_is_around_them(around, version, most_memory):
    """Lists, maps, structs in lists and lists in lists are refused alike, and rows in front of them are read."""
    table, how = bomb("dictionary", around)
    data = written(table.drop(["n"]), "zstd", data_page_version=version, **how)
    before = most_memory()

    values, error = read(data, max_record_bytes=SMALL)

    assert [dict(row["v"]) if around == "map" else row["v"] for row in table.slice(0, 3).to_pylist()] == [
        row["v"] for row in values
    ]
    assert error.where.position == "record 4"
    assert most_memory() - before < 2_000_000


@pytest.mark.parametrize("encoding", BY_ENCODING)
def test_behind_a_row_of_millions_reading_goes_on_with_the_next_row_group(encoding):
    """With errors.tolerance=all such a row is one piece, with what is left of its row group."""
    table, how = bomb(encoding)
    data = written(table, "zstd", per_group=5, **how)
    props = {"errors_tolerance": "all", "max_record_bytes": "8500000"}

    batches = list(transformer(**props).batches(SeekableBytes(data), Position()))

    assert [value["n"] for batch in batches for value in batch.values] == [0, 1, 2, 5]
    (rejected,) = [batch.rejected for batch in batches if batch.rejected]
    assert (rejected.number, rejected.count) == (4, 2)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_of_a_megabyte_each_are_unpacked_eight_megabytes_at_a_time(version, most_memory):
    """Where each row is within the limit all of them are read, however few bytes the file has for them."""
    data = written(
        pa.table({"v": lists(equal(7, 60 * 125_000, pa.int64()), *[125_000] * 60)}), "zstd", data_page_version=version
    )
    before, count = most_memory(), 0

    for batch in transformer(max_record_bytes="1100000").batches(SeekableBytes(data), Position()):
        assert all(set(row["v"]) == {7} and len(row["v"]) == 125_000 for row in batch.values)
        count += len(batch.values)

    assert count == 60
    assert most_memory() - before < 40_000_000


def test_columns_of_a_row_count_together(most_memory):
    """Four columns of lists, of which none alone is too large, are too large in one row."""
    one = lists(equal(7, 1_000_000, pa.int64()), 1, 999_999)
    data = written(pa.table(dict.fromkeys("abcd", one)), "zstd")
    before = most_memory()

    values, error = read(data, max_record_bytes="20000000")

    assert (len(values), error.where.position) == (1, "record 2")
    assert most_memory() - before < 2_000_000


def test_a_page_that_unpacks_to_too_much_is_not_unpacked(monkeypatch, most_memory):
    """A page that is looked into before its rows may not unpack to more than max.decompression.ratio times its size."""
    monkeypatch.setattr("headrace.transformers.parquet_bodies.TOO_MUCH_FROM", 1000)
    data = written(bomb("delta")[0].drop(["n"]), "zstd", **bomb("delta")[1])
    before = most_memory()

    values, error = read(data, max_decompression_ratio="100")

    assert (values, error.where.position) == ([], "record 1")
    assert "see max.decompression.ratio" in error.message
    assert most_memory() - before < 20_000


def test_a_large_row_group_is_looked_into_as_well(monkeypatch, most_memory):
    """Where a row group is not held in memory, its lists are looked into where the footer says that it matters."""
    monkeypatch.setattr("headrace.transformers.parquet._HELD_BYTES", 10)
    table, how = bomb("dictionary")
    data = written(table, "zstd", **how)
    before = most_memory()

    values, error = read(data, max_record_bytes=SMALL)

    assert (values, error.where.position) == (table.slice(0, 3).to_pylist(), "record 4")
    assert most_memory() - before < 4_000_000


@pytest.mark.parametrize("kind", [[0, 1], [None, 3]])
def test_long_lists_of_few_values_come_many_at_a_time(kind):
    """Ordinary lists that are short in the file are read as they are, thousands of rows at once."""
    table = pa.table(
        {"v": pa.array([[kind[n * k % 7 % 2] for k in range(60)] for n in range(30_000)], pa.list_(pa.int64()))}
    )
    data = written(table, "snappy")
    assert len(data) * 16 < 30_000 * 60 * 8

    batches = [list(batch.values) for batch in transformer().batches(SeekableBytes(data), Position())]

    assert [row for batch in batches for row in batch] == table.to_pylist()
    assert min(map(len, batches[1:-1])) > 1000


def test_what_is_damaged_behind_rows_is_an_error_behind_them():
    """Where lists are looked into before, rows in front of a damaged page are read all the same."""
    data = bytearray(written(pa.table({"v": lists(equal(7, 3_000_000, pa.int64()), *[1000] * 3000)}), "zstd"))
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    data[end - 20 : end] = bytes(20)

    values, error = read(bytes(data))

    assert all(row == {"v": [7] * 1000} for row in values)
    assert error.where.position == f"record {len(values) + 1}"
    assert "the row group cannot be read" in error.message


def nested(depth, sizes):
    """A column of lists in lists, and how many entries each of its rows has."""
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)

    def row(size, left):
        if not left:
            return 7
        return [row(size * 5 % 7, left - 1) for _ in range(size if left == depth else size % 4)]

    def entries(value):
        return sum(map(entries, value)) or 1 if isinstance(value, list) else 1

    rows = [row(size, depth) for size in sizes]
    return pa.array(rows, kind), [entries(one) if one else 1 for one in rows]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_entries_are_those_of_the_rows(depth, version, codec):
    """The levels of each page say how many entries each row has, and at a glance that none has more than so many."""
    sizes = [n * n % 11 for n in range(3000)] + [0] * 500 + [200] * 30 + [1] * 500 + [3000]
    column, expected = nested(depth, sizes)
    data = written(pa.table({"v": column}), codec, data_page_version=version, data_page_size=3000)
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    levels = Levels(
        source=io.BytesIO(data),
        extent=(4, 4 + chunk.total_compressed_size),
        values=chunk.num_values,
        bits=depth.bit_length(),
        codec=chunk.compression,
        ratio=1000,
    )

    assert list(levels.entries_by_row()) == expected
    assert not levels.fit(max(expected) - 1)
    assert levels.fit(2 * max(expected)) == (depth != 4)


def number(value):
    """A number of less than 14 bits, as Thrift has it."""
    return bytes([value << 1 & 127 | 128, value >> 6])


def page(levels, count, *, encoding=3, packed=None):
    """A data page of the first kind with these levels and nothing else."""
    body = levels if packed is None else packed
    sizes = b"\x15\x00\x15" + number(len(levels)) + b"\x15" + number(len(body))
    return sizes + b"\x2c\x15" + number(count) + b"\x15\x00\x15\x06\x15" + number(encoding) + b"\x00\x00" + body


def levels_of(data, count, *, codec="UNCOMPRESSED"):
    return Levels(source=io.BytesIO(data), extent=(0, len(data)), values=count, bits=1, codec=codec, ratio=1000)


def framed(data, size):
    """LZ4 blocks of so many bytes, as Hadoop has them."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    packed = [(piece, pa.Codec("lz4_raw").compress(piece, asbytes=True)) for piece in pieces]
    return b"".join(len(a).to_bytes(4, "big") + len(b).to_bytes(4, "big") + b for a, b in packed)


ONE_RUN = b"\x04\x00\x00\x00\x02\x00\x12\x01"
"""A level that is 0, and nine that are not."""


@pytest.mark.parametrize("size", [3, 100])
def test_pages_that_hadoop_has_packed_with_lz4_are_read(size):
    """Old writers have LZ4 in blocks of their own, which pyarrow reads, too."""
    data = page(ONE_RUN, 10, packed=framed(ONE_RUN, size))

    assert list(levels_of(data, 10, codec="LZ4").entries_by_row()) == [10]


def test_levels_without_runs_are_read():
    """Old writers have levels one behind the other."""
    data = page(b"\xfe\x03", 10, encoding=4)

    assert list(levels_of(data, 10).entries_by_row()) == [10]
    assert not levels_of(data, 10).fit(1000)


def test_a_row_goes_on_in_the_next_page():
    """A row ends where another one begins, and not with its page; what a page has beyond its values is no row."""
    goes_on = b"\x02\x00\x00\x00\x03\x1f"
    data = page(ONE_RUN, 10) + page(goes_on, 5) + page(goes_on, 6)

    assert list(levels_of(data, 21).entries_by_row()) == [20, 1]
    assert levels_of(data, 21).fit(40)
    assert not levels_of(data, 21).fit(19)


@pytest.mark.parametrize(
    "levels",
    [
        b"",
        b"\x02\x00\x00\x00\x02\x00",
        b"\x03\x00\x00\x00\x02\x00\x12",
        b"\x02\x00\x00\x00\x00\x00",
        b"\x05\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\x01\x00\x00\x00\x05",
    ],
)
def test_levels_that_are_fewer_than_the_values_are_damage(levels):
    """What is not there, or in runs that cannot be, is an error, and fits nowhere."""
    data = page(levels, 10)

    with pytest.raises(ValueError, match="fewer levels than values"):
        list(levels_of(data, 10).entries_by_row())
    assert not levels_of(data, 10).fit(1000)
