"""How long the texts are that a row group has once, and that may stand in any number of its values."""

import inspect
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate, islice, zip_longest
from typing import TYPE_CHECKING, Any

import attrs

from headrace.transformers.parquet_footer import Group, extent
from headrace.transformers.parquet_pages import Coded, coded

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["UNPACKED_BYTES", "Ahead", "ahead_of"]

UNPACKED_BYTES = 8 * 1024 * 1024
"""No more of such texts are unpacked at once, unless a row has more of them."""

_AT_ONCE = 2000
_VALUES_AT_ONCE = 250_000
_SHORT = 64
_LOOK_BYTES = 4 * 1024
_BUFFER_BYTES = 1024 * 1024


@attrs.define
class Ahead:
    """What is known of the next rows of a row group before they are unpacked.

    `each` is the most that a row has of texts outside of lists; `found` are the bytes of those in lists and maps, of
    one row after the other, as far as they matter.
    """

    each: int = 0
    found: Iterator[int] = attrs.field(factory=lambda: iter(()))
    _begin: int = attrs.field(default=0, init=False)
    _sums: list[int] = attrs.field(factory=lambda: [0], init=False)
    _ended: bool = attrs.field(default=False, init=False)

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
            sizes = list(islice(self.found, _AT_ONCE))
            self._ended = not sizes
            self._sums = [*self._sums[at:-1], *accumulate(sizes, initial=self._sums[-1])]
            self._begin = row


def ahead_of(
    file: "pq.ParquetFile", group: Group, opened: Callable[..., "pq.ParquetFile"], source: Any | None
) -> Ahead:
    """What is to be known of the rows of a row group, of which next to nothing is read where there is no need.

    `opened` opens the file once more; `source` is the file where pages can be gone through, which is better than the
    footer's word. What cannot be read is an error of pyarrow, here or later on.
    """
    columns = [(number, file.schema.column(number)) for number in group.repeats]
    chunks = file.metadata.row_group(group.index)
    again = partial(opened, metadata=file.metadata, **_as_stored(file))
    fixed = [(number, column.length, _is_in_lists(column)) for number, column in columns if not _is_text(column)]
    each = sum(_each(size, chunks.column(number).num_values if listed else 0) for number, size, listed in fixed)
    if min(_AT_ONCE, group.count) * group.unpacked > UNPACKED_BYTES:
        flat = [column.path for _, column in columns if _is_text(column) and not _is_in_lists(column)]
        each += sum(_longest_texts(again, group.index, flat))
    listed = {
        column.path: chunks.column(number) for number, column in columns if _is_text(column) and _is_in_lists(column)
    }
    return Ahead(each, _in_lists(again, group, listed, source))


def _in_lists(
    again: Callable[..., "pq.ParquetFile"], group: Group, chunks: Mapping[str, Any], source: Any | None
) -> Iterator[int]:
    """The bytes of the texts of these columns in each row, as far as they matter."""
    found = [_coded(chunk, source) for chunk in chunks.values()]
    if sum(one.values * one.dictionary for one in found) <= UNPACKED_BYTES:
        return iter(())
    longest = _longest_texts(again, group.index, list(chunks))
    if sum(one.values * size for one, size in zip(found, longest, strict=True)) <= UNPACKED_BYTES:
        return iter(())
    look = again(read_dictionary=list(chunks), buffer_size=_BUFFER_BYTES)
    rows = [_VALUES_AT_ONCE * group.count // max(1, chunk.num_values) for chunk in chunks.values()]
    columns = [
        _bytes_by_row(look, group.index, path, one.values, max(1, min(_AT_ONCE, most)))
        for path, one, most in zip(chunks, found, rows, strict=True)
    ]
    return map(sum, zip_longest(*columns, fillvalue=0))


def _coded(chunk: Any, source: Any | None) -> Coded:
    if source is None:
        return Coded(chunk.num_values, chunk.total_uncompressed_size)
    return coded(source, extent(chunk), chunk.num_values)


def _longest_texts(again: Callable[..., "pq.ParquetFile"], group: int, paths: Sequence[str]) -> list[int]:
    look = again(read_dictionary=paths, buffer_size=_LOOK_BYTES)
    return [_longest_text(look, group, path) for path in paths]


def _as_stored(file: "pq.ParquetFile") -> dict[str, Any]:
    """How to have texts of an extension type, as JSON is, as texts; a pyarrow that cannot be told has them as such."""
    name = "arrow_extensions_enabled"
    return {name: False} if name in inspect.signature(type(file)).parameters else {}


def _is_in_lists(column: Any) -> bool:
    return bool(column.max_repetition_level)


def _is_text(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY")


def _each(size: int, values: int) -> int:
    """What a row has at the most of bytes that all have one size; one row at a time where so many are long."""
    return UNPACKED_BYTES if size > _SHORT and size * values > UNPACKED_BYTES else size


def _longest_text(file: "pq.ParquetFile", group: int, path: str) -> int:
    """The bytes of the longest text in the dictionary of a column, which the file was opened to read as one.

    Read are the dictionary and what stands in front of the column's first text. 0 where the column has none.
    """
    from pyarrow import compute  # noqa: PLC0415 - an extra brings it

    for batch in file.iter_batches(batch_size=1, row_groups=[group], columns=[path], use_threads=False):
        file.reader.set_batch_size(_AT_ONCE)
        for texts in _leaves(batch.column(0)):
            if not _is_coded(texts):
                return 0
            if len(texts.dictionary):
                return int(compute.max(compute.binary_length(texts.dictionary)).as_py() or 0)
    return 0


def _bytes_by_row(file: "pq.ParquetFile", group: int, path: str, values: int, rows: int) -> Iterator[int]:
    """The bytes of the texts of a column in each row until so many values are behind us, read so many rows at once."""
    for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=[path], use_threads=False):
        yield from _bytes(batch.column(0)).to_pylist()
        values -= max(batch.num_rows, *map(len, _leaves(batch.column(0))))
        if values <= 0:
            return


def _leaves(column: Any) -> Iterator[Any]:
    """The columns in a column that may have structs, lists and maps around them."""
    inner = _inner(column)
    if not inner:
        yield column
    for one in inner:
        yield from _leaves(one)


def _inner(column: Any) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(column, pa.StructArray):
        return [column.field(index) for index in range(column.type.num_fields)]
    if isinstance(column, pa.MapArray):
        return [column.keys, column.items]
    return [column.values] if _is_list(column) else []


def _bytes(column: Any) -> Any:
    """The bytes of the texts in each value of a column."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    inner = _inner(column)
    if inner:
        sizes = reduce(compute.add, [_bytes(one) for one in inner])
        return sizes if isinstance(column, pa.StructArray) else _sums(sizes, *_bounds(column))
    if not _is_coded(column):
        return pa.repeat(pa.scalar(0, pa.int64()), len(column))
    lengths = compute.binary_length(column.dictionary).cast(pa.int64())
    return compute.fill_null(lengths.take(column.indices), 0)


def _sums(sizes: Any, begins: Any, ends: Any) -> Any:
    """The sums of sizes, from one to in front of another."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    sums = pa.concat_arrays([pa.array([0], pa.int64()), compute.cumulative_sum(sizes)])
    return compute.subtract(sums.take(ends), sums.take(begins))


def _bounds(column: Any) -> tuple[Any, Any]:
    """Where each list of a column begins and ends in its values."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    if isinstance(column, pa.FixedSizeListArray):
        size = column.type.list_size
        offsets = pa.array(range(0, (len(column) + 1) * size, size) if size else [0] * (len(column) + 1), pa.int64())
    elif isinstance(column, (pa.ListViewArray, pa.LargeListViewArray)):
        return column.offsets, compute.add(column.offsets, column.sizes)
    else:
        offsets = column.offsets
    return offsets.slice(0, len(column)), offsets.slice(1)


def _is_list(column: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray, pa.ListViewArray, pa.LargeListViewArray)
    return isinstance(column, kinds)


def _is_coded(column: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return isinstance(column, pa.DictionaryArray)
