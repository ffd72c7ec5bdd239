"""Texts in Parquet that are written as what differs from the one before: long ones take next to nothing in the file."""

import io
from itertools import pairwise, product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from headrace.framework.errors import DataError
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers import parquet_deltas
from headrace.transformers.base import Position
from headrace.transformers.parquet import ParquetTransformer
from headrace.transformers.parquet_deltas import lengths
from headrace.transformers.parquet_footer import groups_of

LONG = "x" * 200_000
COLUMN = "c"


def written(values, kind=None, *, version="1.0", codec="none", path=COLUMN):
    target = io.BytesIO()
    pq.write_table(
        pa.table({COLUMN: pa.array(values, kind or pa.string())}),
        target,
        use_dictionary=False,
        column_encoding={path: "DELTA_BYTE_ARRAY"},
        data_page_version=version,
        compression=codec,
        store_schema=False,
    )
    return target.getvalue()


def batches(data, **props):
    made = ParquetTransformer()
    made.configure(props)
    return made.batches(SeekableBytes(data), Position())


def known(data, ratio=1000):
    """What is known of the texts of a file's first row group."""
    file = pq.ParquetFile(io.BytesIO(data))
    (group,) = groups_of(file, [0], len(data))
    assert group.deltas == [0]
    return lengths(file, group, 0, io.BytesIO(data), ratio=ratio)


EACH_WAY = pytest.mark.parametrize(("version", "codec"), [*product(["1.0", "2.0"], ["none", "snappy", "zstd"])])


@EACH_WAY
def test_long_texts_of_few_bytes_are_unpacked_eight_megabytes_at_a_time(version, codec):
    """Two thousand texts of 200 KB, which are a few KB in the file, are never in memory together."""
    values = [LONG + str(number) for number in range(2000)]
    data = written(values, version=version, codec=codec)
    before, most = pa.total_allocated_bytes(), 0

    found = []
    for batch in batches(data):
        most = max(most, pa.total_allocated_bytes() - before)
        found += [value[COLUMN][len(LONG) :] for value in batch.values]

    assert found == [str(number) for number in range(2000)]
    assert most < 3 * 8 * 1024 * 1024
    assert len(data) < 500_000


@EACH_WAY
def test_texts_that_are_paid_for_come_many_at_a_time(version, codec):
    """Ordinary texts, nulls and empty ones among them, are read in batches as large as any."""
    values = [None if number % 7 == 0 else "" if number % 5 == 0 else f"text {number}" for number in range(6000)]

    found = list(batches(written(values, version=version, codec=codec)))

    assert [value[COLUMN] for batch in found for value in batch.values] == values
    assert max(len(batch.values) for batch in found) == 2000


def test_bytes_of_one_size_by_their_differences_are_bounded():
    """So are bytes of a fixed size."""
    values = [b"x" * 99_990 + f"{number:010d}".encode() for number in range(1000)]

    found = list(batches(written(values, pa.binary(100_000))))

    assert sum(len(batch.values) for batch in found) == 1000
    assert max(len(batch.values) for batch in found) <= 84


@EACH_WAY
def test_lists_of_more_than_their_bytes_may_hold_are_refused(version, codec):
    """A row whose texts are more than max.decompression.ratio allows is an error before it is unpacked."""
    rows = [["a"], [LONG + str(number) for number in range(1500)]]
    data = written(rows, pa.list_(pa.string()), version=version, codec=codec, path=f"{COLUMN}.list.element")

    values, error = drained(batches(data, **{"max.decompression.ratio": "100"}))

    assert values == []
    assert isinstance(error, DataError)
    assert "see max.decompression.ratio" in error.message
    whole, nothing = drained(batches(data, **{"max.decompression.ratio": "0", "max.record.bytes": "0"}))
    assert [value[COLUMN] for value in whole] == rows
    assert nothing is None


def test_lists_of_long_texts_are_unpacked_one_by_one():
    """Rows of lists that may be much are read by themselves."""
    rows = [[LONG + str(number), f"{LONG}b"] for number in range(60)]
    data = written(rows, pa.list_(pa.string()), path=f"{COLUMN}.list.element")

    found = list(batches(data))

    assert [value[COLUMN] for batch in found for value in batch.values] == rows
    assert {len(batch.values) for batch in found} == {1}


ANY = st.none() | st.text(max_size=6) | st.integers(0, 300).map(lambda size: "p" * size)
TEXTS = st.lists(ANY, min_size=1, max_size=300)


@given(values=TEXTS, version=st.sampled_from(["1.0", "2.0"]), codec=st.sampled_from(["none", "zstd"]))
def test_lengths_are_those_of_the_texts(values, version, codec):
    """What is added up without unpacking it is what the texts have."""
    texts = [value.encode() for value in values if value is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_deltas, "_PAID", -1)
        found = known(written(values, version=version, codec=codec))

    assert found.total == sum(map(len, texts))
    assert found.longest >= max(map(len, texts), default=0)
    assert found.longest <= longest_same(texts) + longest_new(texts)


def longest_same(texts):
    return max((same(one, other) for one, other in pairwise(texts)), default=0)


def longest_new(texts):
    others = [len(other) - same(one, other) for one, other in pairwise(texts)]
    return max([len(text) for text in texts[:1]] + others, default=0)


def same(one, other):
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_column_without_nulls_has_no_levels(codec):
    """In the second version of pages, what is not compressed is known by its sizes, also where it has no levels."""
    target = io.BytesIO()
    texts = [chr(97 + number % 26) * 3 for number in range(26)]
    table = pa.table({COLUMN: texts}, schema=pa.schema([pa.field(COLUMN, pa.string(), nullable=False)]))
    options = {"use_dictionary": False, "column_encoding": {COLUMN: "DELTA_BYTE_ARRAY"}, "data_page_version": "2.0"}
    pq.write_table(table, target, compression=codec, **options)

    assert known(target.getvalue()).longest < 10


def test_damaged_lengths_are_an_error_or_other_texts():
    """Whatever byte of a page is another one: it is an error of the object, or as many texts as there were."""
    values = [f"text {number}" for number in range(40)]
    data = written(values)
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    for at in range(chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size):
        damaged = bytearray(data)
        damaged[at] ^= 0x5A
        found, error = drained(batches(bytes(damaged)))
        assert isinstance(error, DataError) or len(found) == len(values)
