"""Parquet's old timestamps of 96 bits, which are nanoseconds of a day, and what of them 64 bits do not hold."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import attrs

from headrace.transformers.parquet_arrays import by_row, leaves
from headrace.transformers.parquet_footer import Group

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Int96", "Int96Check", "int96_columns"]

_LARGEST = 2**63 - 1


class Int96(enum.StrEnum):
    """What a timestamp of 96 bits is read in."""

    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"

    @property
    def unit(self) -> str:
        """Its short name."""
        return "us" if self is Int96.MICROSECONDS else "ns"


def int96_columns(file: "pq.ParquetFile", wanted: Sequence[int]) -> list[int]:
    """Those of the columns that are such timestamps."""
    return [number for number in wanted if file.schema.column(number).physical_type == "INT96"]


@attrs.frozen
class _Otherwise:
    """Another unit in which such timestamps are read, and what that shows of the one that they are read in."""

    unit: str
    fault: str
    is_wrong: Callable[[Any, Any], Any]
    """Of timestamps as they are read, and as they are otherwise: which of them are not those of the file."""


@attrs.define
class _Again:
    """The columns once more, in another unit, and in step with the rows."""

    otherwise: _Otherwise
    _reader: Any
    _found: Iterator[Any]

    def wrong(self, rows: Any, is_int96: Sequence[bool]) -> Iterator[tuple[int, str]]:
        """Of the next rows those that are wrong, and a column of each that is."""
        at = 0
        while at < rows.num_rows:
            self._reader.set_batch_size(rows.num_rows - at)
            others = next(self._found, None)
            if others is None:
                raise ValueError("a column has fewer rows than another one")
            for row, name in self._wrong(rows.slice(at, others.num_rows), others, is_int96):
                yield at + row, name
            at += others.num_rows

    def _wrong(self, rows: Any, others: Any, is_int96: Sequence[bool]) -> Iterator[tuple[int, str]]:
        from pyarrow import compute  # noqa: PLC0415 - an extra brings it

        mine = [leaf for column in rows.columns for leaf in leaves(column)]
        mine = [leaf for leaf, is_one in zip(mine, is_int96, strict=True) if is_one]
        theirs = [leaf for column in others.columns for leaf in leaves(column)]
        flags = (self._flags(one, other) for one, other in zip(mine, theirs, strict=True))
        for name, column in zip(others.schema.names, others.columns, strict=True):
            count = by_row(column, lambda _: next(flags))
            for row in compute.indices_nonzero(count).to_pylist():
                yield row, name

    def _flags(self, mine: Any, other: Any) -> Any:
        """1 for each timestamp that is wrong."""
        import pyarrow as pa  # noqa: PLC0415 - as above
        from pyarrow import compute  # noqa: PLC0415

        wrong = self.otherwise.is_wrong(mine.cast(pa.int64()), other.cast(pa.int64()))
        return compute.fill_null(wrong, False).cast(pa.int64())


@attrs.define
class Int96Check:
    """Such timestamps of a row group, read once more in step with its rows, and in other units.

    pyarrow leaves away what is finer, and wraps what is larger: only several units together say that it did.
    """

    is_int96: Sequence[bool]
    _again: Sequence[_Again]

    @classmethod
    def of(
        cls,
        file: "pq.ParquetFile",
        group: Group,
        wanted: Sequence[int],
        opened: Callable[..., "pq.ParquetFile"],
        read_in: Int96,
    ) -> Self | None:
        """What checks the `wanted` columns of a row group, if such a timestamp is among them.

        `opened` opens the file once more.
        """
        columns = int96_columns(file, wanted)
        if not columns:
            return None
        paths = [file.schema.column(number).path for number in columns]

        def again(otherwise: _Otherwise) -> _Again:
            by = opened(metadata=file.metadata, coerce_int96_timestamp_unit=otherwise.unit)
            found = by.iter_batches(batch_size=1, row_groups=[group.index], columns=paths, use_threads=False)
            return _Again(otherwise, by.reader, found)

        return cls([number in columns for number in wanted], [*map(again, _OTHERWISE[read_in])])

    def wrong(self, rows: Any) -> dict[int, str]:
        """Of the next rows, which are a batch, those with a timestamp that is not what it is in the file.

        They are given by their numbers in the batch, with what is wrong of each.
        """
        return {
            row: f"an INT96 timestamp in the column {name!r} {again.otherwise.fault}, see parquet.int96"
            for again in self._again
            for row, name in again.wrong(rows, self.is_int96)
        }


def _is_finer(us: Any, ns: Any) -> Any:
    """Whether there are digits below the microsecond, which come out right also where both have wrapped."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    return compute.not_equal(compute.subtract(ns, compute.multiply(us, 1000)), 0)


def _is_beyond(mine: Any, seconds: Any, *, of_second: int) -> Any:
    """Whether a number has wrapped; in the second at an end, this is where its sign is the wrong one."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    last = _LARGEST // of_second
    outside = compute.or_(compute.less(seconds, -last - 1), compute.greater(seconds, last))
    return compute.or_(outside, compute.not_equal(compute.less(seconds, 0), compute.less(mine, 0)))


_OTHERWISE: Mapping[Int96, Sequence[_Otherwise]] = {
    Int96.MICROSECONDS: (
        _Otherwise("ns", "is finer than a microsecond", _is_finer),
        _Otherwise("s", "is beyond the 64 bits of microseconds", partial(_is_beyond, of_second=10**6)),
    ),
    Int96.NANOSECONDS: (
        _Otherwise(
            "s",
            "is beyond the 64 bits of nanoseconds, which go from 1677 to 2262",
            partial(_is_beyond, of_second=10**9),
        ),
    ),
}
"""No time of 96 bits is beyond the 64 bits of seconds."""
