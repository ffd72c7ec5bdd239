"""Parquet's old timestamps of 96 bits, which are nanoseconds of a day, and what of them 64 bits do not hold."""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from headrace.transformers.parquet_arrays import by_row, leaves
from headrace.transformers.parquet_footer import Group

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Int96", "Int96Check", "int96_columns"]

_FIRST, _LAST = -9_223_372_036_854_776, 9_223_372_036_854_775
"""The microseconds in which the first and the last nanosecond of 64 bits are."""


class Int96(enum.StrEnum):
    """What a timestamp of 96 bits is read in."""

    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"

    @property
    def unit(self) -> str:
        """Its short name."""
        return "us" if self is Int96.MICROSECONDS else "ns"

    @property
    def other(self) -> "Int96":
        """What it is compared with."""
        return Int96.NANOSECONDS if self is Int96.MICROSECONDS else Int96.MICROSECONDS

    @property
    def fault(self) -> str:
        """What is wrong with a timestamp that cannot be read in it."""
        if self is Int96.MICROSECONDS:
            return "is finer than a microsecond"
        return "is beyond the 64 bits of nanoseconds, which go from 1677 to 2262"


def int96_columns(file: "pq.ParquetFile", wanted: Sequence[int]) -> list[int]:
    """Those of the columns that are such timestamps."""
    return [number for number in wanted if file.schema.column(number).physical_type == "INT96"]


@attrs.define
class Int96Check:
    """Such timestamps of a row group, read once more in step with its rows, and in the other unit.

    pyarrow leaves away what is finer, and wraps what is larger: only both units together say that it did.
    """

    read_in: Int96
    is_int96: Sequence[bool]
    _reader: Any
    _found: Iterator[Any]

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
        again = opened(metadata=file.metadata, coerce_int96_timestamp_unit=read_in.other.unit)
        paths = [file.schema.column(number).path for number in columns]
        found = again.iter_batches(batch_size=1, row_groups=[group.index], columns=paths, use_threads=False)
        return cls(read_in, [number in columns for number in wanted], again.reader, found)

    def wrong(self, rows: Any) -> dict[int, str]:
        """Of the next rows, which are a batch, those with a timestamp that is not what it is in the file.

        They are given by their numbers in the batch, with the name of a column each.
        """
        found: dict[int, str] = {}
        at = 0
        while at < rows.num_rows:
            self._reader.set_batch_size(rows.num_rows - at)
            others = next(self._found, None)
            if others is None:
                raise ValueError("a column has fewer rows than another one")
            here = self._wrong(rows.slice(at, others.num_rows), others)
            found |= {at + row: name for row, name in here.items()}
            at += others.num_rows
        return found

    def _wrong(self, rows: Any, others: Any) -> dict[int, str]:
        from pyarrow import compute  # noqa: PLC0415 - an extra brings it

        mine = [leaf for column in rows.columns for leaf in leaves(column)]
        mine = [leaf for leaf, is_int96 in zip(mine, self.is_int96, strict=True) if is_int96]
        theirs = [leaf for column in others.columns for leaf in leaves(column)]
        flags = (self._flags(one, other) for one, other in zip(mine, theirs, strict=True))
        found: dict[int, str] = {}
        for name, column in zip(others.schema.names, others.columns, strict=True):
            count = by_row(column, lambda _: next(flags))
            found |= dict.fromkeys(compute.indices_nonzero(count).to_pylist(), name)
        return found

    def _flags(self, mine: Any, other: Any) -> Any:
        """1 for each timestamp that is wrong."""
        import pyarrow as pa  # noqa: PLC0415 - as above
        from pyarrow import compute  # noqa: PLC0415

        mine, other = mine.cast(pa.int64()), other.cast(pa.int64())
        wrong = _is_finer(mine, other) if self.read_in is Int96.MICROSECONDS else _is_beyond(other, mine)
        return compute.fill_null(wrong, False).cast(pa.int64())


def _is_finer(us: Any, ns: Any) -> Any:
    """Whether there are digits below the microsecond, which come out right also where nanoseconds have wrapped."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    return compute.not_equal(compute.subtract(ns, compute.multiply(us, 1000)), 0)


def _is_beyond(us: Any, ns: Any) -> Any:
    """Whether nanoseconds have wrapped; in the microsecond at an end, this is where their sign is the wrong one."""
    from pyarrow import compute  # noqa: PLC0415 - as above

    outside = compute.or_(compute.less(us, _FIRST), compute.greater(us, _LAST))
    return compute.or_(outside, compute.not_equal(compute.less(us, 0), compute.less(ns, 0)))
