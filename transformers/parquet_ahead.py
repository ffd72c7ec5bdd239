"""How large the next rows of a row group get, before they are unpacked."""

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice, repeat, tee, zip_longest
from typing import TYPE_CHECKING, Any

import attrs

from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.options import FormatOptions
from headrace.transformers.parquet_column import Coded, Listed
from headrace.transformers.parquet_deltas import lengths
from headrace.transformers.parquet_footer import Group
from headrace.transformers.parquet_texts import Texts

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["UNPACKED_BYTES", "Ahead", "ahead_of", "read_twice"]

UNPACKED_BYTES = 8 * 1024 * 1024
"""No more of what the file has once, and rows many times, is unpacked at once, unless a row has more of it."""

_AT_ONCE = 2000
_VALUES_AT_ONCE = 250_000
_SHORT = UNPACKED_BYTES // _AT_ONCE


@attrs.define
class Ahead:
    """What is known of the next rows of a row group before they are unpacked.

    `each` is the most that a row has of texts outside of lists; `found` are the bytes of what is in lists and maps, of
    one row after the other, as far as they matter.
    """

    each: int = 0
    found: Iterator[int] = attrs.field(factory=lambda: iter(()))
    _begin: int = attrs.field(default=0, init=False)
    _sums: list[int] = attrs.field(factory=lambda: [0], init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _failed: Exception | None = attrs.field(default=None, init=False)

    def at_once(self, row: int) -> int:
        """How many rows from that one on may be unpacked at once. No row comes in front of one that was asked for."""
        return max(1, self._fitting(row, UNPACKED_BYTES, self.each))

    def has_more_than(self, row: int, limit: int) -> bool:
        """Whether a row that is too large to be unpacked with another has more than so many bytes in lists and maps."""
        return not self._fitting(row, max(limit, UNPACKED_BYTES), 0)

    def _fitting(self, row: int, most: int, each: int) -> int:
        self._go_to(row)
        at, sums = row - self._begin, self._sums
        if at >= len(sums) - 1:
            return most // each if each else sys.maxsize
        most += sums[at] + each * at
        return bisect_right(range(len(sums)), most, key=lambda index: sums[index] + each * index) - 1 - at

    def _go_to(self, row: int) -> None:
        at = row - self._begin
        if not self._ended and len(self._sums) - 1 - at < _AT_ONCE:
            sizes = list(self._next())
            self._ended = len(sizes) < _AT_ONCE
            self._sums = [*self._sums[at:-1], *accumulate(sizes, initial=self._sums[-1])]
            self._begin, at = row, 0
        if self._failed is not None and at >= len(self._sums) - 1:
            raise self._failed

    def _next(self) -> Iterator[int]:
        """The next rows. What fails behind them is an error when they are done."""
        try:
            yield from islice(self.found, _AT_ONCE)
        except Exception as error:  # noqa: BLE001 - it is raised in its turn
            self._failed = error


def ahead_of(
    file: "pq.ParquetFile",
    group: Group,
    opened: Callable[..., "pq.ParquetFile"],
    source: Any,
    *,
    options: FormatOptions,
    by_pages: bool,
) -> Ahead:
    """What is to be known of the rows of a row group, of which next to nothing is read where there is no need.

    `opened` opens the file `source` once more. `by_pages` says that its pages can be gone through at no price, which is
    better than the footer's word. What cannot be read is an error of pyarrow or Python, here or later on.
    """
    texts = Texts(file=file, group=group.index, opened=opened)
    flat = [file.schema.column(number) for number in group.repeats]
    flat = [column for column in flat if not column.max_repetition_level]
    each = sum(column.length for column in flat if column.physical_type != "BYTE_ARRAY")
    if min(_AT_ONCE, group.count) * group.unpacked > UNPACKED_BYTES:
        each += sum(texts.longest([column.path for column in flat if column.physical_type == "BYTE_ARRAY"]))
    each += sum(_by_deltas(file, group, number, source, options) for number in group.deltas)
    columns = [Listed.of(file, group, number) for number in group.lists]
    known = [column.by_pages(source) if by_pages else column.by_footer() for column in columns]
    lists = _InLists(texts, group, source, options)
    counted = lists.doubtful(columns, known)
    long = [column for column in counted if not by_pages or not lists.are_short(column, len(counted))]
    each += _SHORT if len(long) < len(counted) else 0
    return Ahead(each, lists.found(columns, known, long))


def _by_deltas(file: "pq.ParquetFile", group: Group, number: int, source: Any, options: FormatOptions) -> int:
    """What a row has at the most of texts that are written as what differs from the one before.

    How many of them a list has is not looked at: its row is read by itself where all of them are much, and not at all
    where they are too much for the bytes that they have.
    """
    ratio = options.max_decompression_ratio
    found = lengths(file, group, number, source, ratio=ratio)
    if number not in group.lists:
        return found.longest
    packed = file.metadata.row_group(group.index).column(number).total_compressed_size
    if ratio and found.total > max(TOO_MUCH_FROM, ratio * packed):
        raise ValueError(f"{packed} bytes of a column hold {found.total}, see max.decompression.ratio")
    return UNPACKED_BYTES if max(found) > UNPACKED_BYTES else 0


def read_twice(file: "pq.ParquetFile", group: Group) -> list[int]:
    """The columns that may be looked into before they are read, by what the footer says."""
    columns = [Listed.of(file, group, number) for number in group.lists]
    found = [column.number for column in columns if column.number in group.repeats or column.by_footer().unpaid > 0]
    return sorted({*found, *group.deltas})


@attrs.frozen
class _InLists:
    """What rows have in lists and maps."""

    texts: Texts
    group: Group
    source: Any
    options: FormatOptions

    def doubtful(self, columns: Sequence[Listed], known: Sequence[Coded]) -> list[Listed]:
        """The columns in which a row may have much more than there is in the file for it."""
        if sum(one.unpaid for one in known) <= UNPACKED_BYTES:
            return []
        least = UNPACKED_BYTES // len(columns)
        return [column for column, one in zip(columns, known, strict=True) if one.unpaid > least]

    def are_short(self, column: Listed, count: int) -> bool:
        """Whether thousands of rows of so many columns like this one may be unpacked at once."""
        return column.fits(self.source, self.options, _SHORT // count)

    def found(self, columns: Sequence[Listed], known: Sequence[Coded], counted: Sequence[Listed]) -> Iterator[int]:
        """The bytes in each row, as far as they matter; `counted` are the columns whose values do."""
        pairs = list(zip(columns, known, strict=True))
        by_values = _added([column.bytes_by_row(self.source, self.options) for column in counted])
        coded = [(column, one) for column, one in pairs if column.is_text]
        if not self._matter(coded, counted):
            return by_values
        sizes = iter(tee(by_values if counted else repeat(0), len(coded) + 1))
        by_texts = [self._bytes_by_row(column, one, next(sizes)) for column, one in coded]
        return _added([*by_texts, next(sizes)] if counted else by_texts)

    def _matter(self, coded: Sequence[tuple[Listed, Coded]], counted: Sequence[Listed]) -> bool:
        """Whether texts may be much; how long they are is not looked at in rows of which nobody knows how many."""
        if sum(one.values * one.dictionary for _, one in coded) <= UNPACKED_BYTES:
            return False
        if counted:
            return True
        longest = self.texts.longest([column.path for column, _ in coded])
        return sum(one.values * size for (_, one), size in zip(coded, longest, strict=True)) > UNPACKED_BYTES

    def _bytes_by_row(self, column: Listed, one: Coded, sizes: Iterator[int]) -> Iterator[int]:
        limit = self.options.max_record_bytes
        rows = _VALUES_AT_ONCE * self.group.count // max(1, column.values)
        return self.texts.bytes_by_row(
            column.path,
            one.values,
            sizes,
            rows=max(1, min(_AT_ONCE, rows)),
            limit=max(limit, UNPACKED_BYTES) if limit else sys.maxsize,
        )


def _added(found: Sequence[Iterator[int]]) -> Iterator[int]:
    return map(sum, zip_longest(*found, fillvalue=0)) if found else iter(())
