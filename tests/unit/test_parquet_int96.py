"""Parquet's old timestamps of 96 bits: what 64 bits cannot hold of them is an error, and never another time."""

import datetime as dt
import io

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.errors import ConfigError
from headrace.framework.schema import MICRO_TIMESTAMP, NANO_TIMESTAMP
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.parquet import ParquetTransformer

US, NS = pa.timestamp("us"), pa.timestamp("ns")
LAST = 2**63 - 1
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - as Spark has them
PYARROW = int(pa.__version__.partition(".")[0])


def writable(*moments):
    """Those that pyarrow can write: before 23, it has negative times of a day for all before 1970."""
    return [moment for moment in moments if PYARROW >= 23 or moment is None or moment >= 0]


def written(table, **options):
    target = io.BytesIO()
    pq.write_table(table, target, use_deprecated_int96_timestamps=True, **options)
    return target.getvalue()


def times(values, kind=NS):
    return written(pa.table({"t": pa.array(values, kind)}))


def transformer(**props):
    made = ParquetTransformer()
    made.configure({key.replace("_", "."): value for key, value in props.items()})
    return made


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    return drained(transformer(**props).batches(SeekableBytes(data), start))


def test_timestamps_of_spark_are_microseconds():
    """What has no finer digits comes as microseconds, also where nanoseconds could not hold it."""
    last = (dt.datetime(9999, 12, 31) - EPOCH) // dt.timedelta(microseconds=1)  # noqa: DTZ001 - as above
    moments = writable(-62_135_596_800_000_000, None, -1, 0, last)
    table = pa.table({"t": pa.array(moments, US)})

    (batch,) = transformer().batches(SeekableBytes(written(table)), Position())

    assert [value["t"] for value in batch.values] == moments
    assert batch.schema.fields[0].schema.name == MICRO_TIMESTAMP


@pytest.mark.parametrize("fine", writable(1001, -1, 999, LAST, -LAST))
def test_what_is_finer_than_a_microsecond_is_an_error(fine):
    """No digit of a timestamp is cut off: its row is an error that names the column and the option."""
    values, error = read(times([1000, None, fine, 3000]))

    assert values == [{"t": 1}, {"t": None}]
    assert error.where.position == "record 3"
    assert "an INT96 timestamp in the column 't' is finer than a microsecond, see parquet.int96" in error.message


def test_nanoseconds_are_had_where_they_are_asked_for():
    """With parquet.int96=nanoseconds every digit comes, from the first to the last that 64 bits hold."""
    moments = writable(1001, None, -1, 0, LAST, -LAST)

    (batch,) = transformer(parquet_int96="nanoseconds").batches(SeekableBytes(times(moments)), Position())

    assert [value["t"] for value in batch.values] == moments
    assert batch.schema.fields[0].schema.name == NANO_TIMESTAMP


FIRST_US, LAST_US = -(2**63) // 1000, 2**63 // 1000


@pytest.mark.parametrize(
    "us", writable(FIRST_US, FIRST_US - 1, LAST_US + 1, 253_402_214_400_000_000, -62_135_596_800_000_000)
)
def test_what_nanoseconds_cannot_hold_is_an_error(us):
    """A timestamp before 1677 or behind 2262 is an error of its row, and does not come as another one."""
    values, error = read(times([5, us, 6], US), parquet_int96="nanoseconds")

    assert values == [{"t": 5000}]
    assert error.where.position == "record 2"
    assert "in the column 't' is beyond the 64 bits of nanoseconds" in error.message
    assert "see parquet.int96" in error.message


@pytest.mark.parametrize(("digits", "fits"), [(807, True), (808, False)])
def test_the_last_microsecond_has_both(digits, fits):
    """Within the microsecond in which 64 bits end, a timestamp is read up to the last nanosecond, and not behind it."""
    of_day = LAST % 86_400_000_000_000
    data = times([LAST]).replace(of_day.to_bytes(8, "little"), (of_day + digits - 807).to_bytes(8, "little"))

    values, error = read(data, parquet_int96="nanoseconds")

    assert [value["t"] for value in values] == ([LAST] if fits else [])
    assert (error is None) == fits


DAYS_TO_1970, DAY_US = 2_440_588, 86_400_000_000
LAST_DAY = (2**63 - 1) // DAY_US


@pytest.mark.parametrize("days", [LAST_DAY + 1, 10 * LAST_DAY, 2**31 - 1 - DAYS_TO_1970, 2**32 - 1 - DAYS_TO_1970])
@pytest.mark.parametrize("unit", ["microseconds", "nanoseconds"])
def test_a_day_that_no_64_bits_hold_is_an_error(days, unit):
    """A day of a damaged file is an error of its row in whichever unit, and does not come as another one."""
    other = 12_345 * 86_400_000_000_000
    day = (12_345 + DAYS_TO_1970).to_bytes(4, "little")
    data = times([0, other]).replace(day, (days + DAYS_TO_1970).to_bytes(4, "little"))

    values, error = read(data, parquet_int96=unit)

    assert values == [{"t": 0}]
    assert error.where.position == "record 2"
    assert f"in the column 't' is beyond the 64 bits of {unit}" in error.message


def test_the_last_day_of_microseconds_is_read():
    """What 64 bits of microseconds hold is read up to the last day that they hold as a whole."""
    other = 12_345 * 86_400_000_000_000
    day = (12_345 + DAYS_TO_1970).to_bytes(4, "little")
    data = times([0, other]).replace(day, (LAST_DAY - 1 + DAYS_TO_1970).to_bytes(4, "little"))

    assert read(data) == ([{"t": 0}, {"t": (LAST_DAY - 1) * DAY_US}], None)


def test_such_a_row_can_be_passed_over():
    """With errors.tolerance=all it is one rejected piece, and the rows around it are read."""
    data = times([1000, 1001, 2000, 2002, 3000])

    batches = list(transformer(errors_tolerance="all").batches(SeekableBytes(data), Position()))

    assert [value["t"] for batch in batches for value in batch.values] == [1, 2, 3]
    assert [(found.number, found.count) for found in (batch.rejected for batch in batches) if found] == [(2, 1), (4, 1)]


@pytest.mark.parametrize("done", range(5))
def test_a_row_that_is_done_is_not_looked_at_again(done):
    """Who goes on behind such a row reads the rest, and who goes on in front of it meets it again."""
    values, error = read(times([1000, 2000, 2002, 3000]), Position(records=done))

    assert [value["t"] for value in values] == ([1, 2, 2, 3][done:2] if done < 3 else [3][done - 3 :])
    assert (error is None) == (done > 2)
    assert error is None or error.where.position == "record 3"


GOOD, BAD = 5000, 5001
STRUCT = pa.struct([("x", pa.string()), ("a", NS), ("o", NS)])
AROUND = {
    "struct": (STRUCT, lambda one: {"x": "b", "a": 0, "o": one}),
    "list": (pa.list_(NS), lambda one: [0, None, one, 0]),
    "large list": (pa.large_list(NS), lambda one: [0, one]),
    "list of a size": (pa.list_(NS, 2), lambda one: [one, 0]),
    "map": (pa.map_(pa.string(), NS), lambda one: [("a", 0), ("b", one)]),
    "map by times": (pa.map_(NS, pa.string()), lambda one: [(0, "a"), (one, "b")]),
    "struct of a list of structs": (
        pa.struct([("n", pa.int64()), ("l", pa.list_(STRUCT))]),
        lambda one: {"n": 1, "l": [None, {"x": "b", "a": 0, "o": one}]},
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("bad", [0, 1, 2999, 4321, 9999])
def test_it_is_found_wherever_it_is(around, bad):
    """In structs, lists and maps, and in whichever batch of rows: it is the row that has it, and no other."""
    kind, made = AROUND[around]
    nulls = not pa.types.is_fixed_size_list(kind) or PYARROW >= 26  # which others cannot write
    rows = [None if nulls and number % 5 == 4 else made(GOOD) for number in range(10_000)]
    rows[bad] = made(BAD)
    more = {
        "other": pa.array([BAD] * 10_000, pa.int64()),
        "n": range(10_000),
        "s": [f"{n:0200}" for n in range(10_000)],
    }
    data = written(pa.table({**more, "v": pa.array(rows, kind)}), row_group_size=6000)

    values, error = read(data)
    fine, none = read(data, parquet_int96="nanoseconds")

    assert [value["n"] for value in values] == list(range(bad))
    assert error.where.position == f"record {bad + 1}"
    assert "in the column 'v'" in error.message
    assert (len(fine), none) == (10_000, None)
    assert str(BAD) in str(fine[bad]["v"])


def test_only_columns_that_are_wanted_are_looked_at():
    """What is finer in a column that nobody reads is no error."""
    data = written(pa.table({"t": pa.array([1], NS), "n": [1], "ok": pa.array([1000], NS)}))

    assert read(data, parquet_columns="n, ok") == ([{"n": 1, "ok": 1}], None)
    assert read(data, parquet_columns="t")[1].where.position == "record 1"


def test_in_a_large_row_group_the_column_is_held(monkeypatch):
    """Of a row group that is not held in memory such a column is, as it is read twice, and is fetched once."""
    monkeypatch.setattr("headrace.transformers.parquet._HELD_BYTES", 1_000_000)
    table = pa.table({"t": pa.array(range(0, 50_000_000, 1000), NS), "s": [f"{n * n:0100}" for n in range(50_000)]})
    stream = SeekableBytes(written(table, use_dictionary=False, compression="none"))

    values, error = drained(transformer().batches(stream, Position()))

    assert error is None
    assert [value["t"] for value in values] == list(range(50_000))
    assert stream.fetched < 1.05 * stream.size


def test_the_option_is_one_of_two():
    """Anything else is a fault that names both."""
    with pytest.raises(ConfigError, match=r"parquet\.int96.*microseconds.*nanoseconds"):
        transformer(parquet_int96="milliseconds")
