"""What the footer of a Parquet file says of its row groups, checked before anything is read by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.transformers.parquet_file import RangedFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Group", "extent", "groups_of"]

_OF_ANY_LENGTH = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})


@attrs.frozen(kw_only=True)
class Group:
    """A row group: `count` rows behind the first `before`, whose first byte is at `begins`.

    Of the columns that are wanted, `packed` and `unpacked` are the bytes that they have in the file and without their
    compression, `largest_mean` what a value has in the column of the largest; `repeats` are the columns in which a text
    may be in the file once, and stand in many rows, `lists` those in lists and maps, `deltas` those in which a text may
    be written as what differs from the one before.
    """

    index: int
    before: int
    count: int
    begins: int
    packed: int
    unpacked: int
    largest_mean: int
    repeats: Sequence[int]
    lists: Sequence[int]
    deltas: Sequence[int]


def groups_of(file: "pq.ParquetFile", wanted: Sequence[int], size: int) -> list[Group]:
    """The row groups of a file of so many bytes; `wanted` are the numbers of the columns.

    What cannot be, or is contradicted elsewhere in the footer, is an error of pyarrow or a ValueError.
    """
    _send_ahead(file, size)
    found: list[Group] = []
    before = 0
    flat = [not file.schema.column(index).max_repetition_level for index in range(len(file.schema))]
    lists = [column for column in wanted if not flat[column]]
    for index in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(index)
        _check(group, flat, size)
        found.append(_group(group, index, before, wanted, lists))
        before += found[-1].count
    if before != file.metadata.num_rows:
        raise ValueError(f"the file has {file.metadata.num_rows} rows, and its row groups {before}")
    return found


def extent(chunk: Any) -> tuple[int, int]:
    """The bytes of a column in a row group."""
    first = chunk.dictionary_page_offset
    start = chunk.data_page_offset if first is None or not 0 < first < chunk.data_page_offset else first
    return start, start + chunk.total_compressed_size


def _check(group: Any, flat: Sequence[bool], size: int) -> None:
    """Raise ValueError for a row group that cannot be; `flat` are the columns that have a value for each row."""
    rows = group.num_rows
    if rows < 0 or group.num_columns != len(flat):
        raise ValueError(f"a row group has {rows} rows of {group.num_columns} columns, and the file {len(flat)}")
    for column, is_flat in enumerate(flat):
        chunk = group.column(column)
        start, end = extent(chunk)
        if not 0 <= start <= end <= size:
            raise ValueError(f"a column has the bytes from {start} to {end} of {size}")
        if is_flat and chunk.num_values != rows:
            raise ValueError(f"a row group has {rows} rows, and {chunk.num_values} values in a column")


def _group(group: Any, index: int, before: int, wanted: Sequence[int], lists: Sequence[int]) -> Group:
    chunks = [group.column(column) for column in range(group.num_columns)]
    mine = [chunks[column] for column in wanted]
    return Group(
        index=index,
        before=before,
        count=group.num_rows,
        begins=min((extent(chunk)[0] for chunk in chunks), default=0),
        packed=sum(chunk.total_compressed_size for chunk in mine),
        unpacked=sum(chunk.total_uncompressed_size for chunk in mine),
        largest_mean=max((chunk.total_uncompressed_size // max(1, chunk.num_values) for chunk in mine), default=0),
        repeats=[
            column
            for column, chunk in zip(wanted, mine, strict=True)
            if chunk.physical_type in _OF_ANY_LENGTH and _may_repeat(chunk)
        ],
        lists=lists,
        deltas=[
            column
            for column, chunk in zip(wanted, mine, strict=True)
            if chunk.physical_type == "BYTE_ARRAY" and _has_deltas(chunk)
        ],
    )


def _has_dictionary(chunk: Any) -> bool:
    """Whether a column may have a dictionary: not every writer says where that is."""
    return chunk.has_dictionary_page or any("DICTIONARY" in encoding for encoding in chunk.encodings)


def _may_repeat(chunk: Any) -> bool:
    """Whether bytes of a column may be in the file once and in many values; how many, its deltas say by themselves."""
    return _has_dictionary(chunk) or (chunk.physical_type == "FIXED_LEN_BYTE_ARRAY" and _has_deltas(chunk))


def _has_deltas(chunk: Any) -> bool:
    return "DELTA_BYTE_ARRAY" in chunk.encodings


@attrs.define
class _NothingToRead:
    """A stream of so many bytes, of which none is given out."""

    size: int
    was_asked: bool = False

    def read(self, size: int, /) -> bytes:
        self.was_asked = True
        raise EOFError(f"of {self.size} bytes, not the next {size} are given out")

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        pass


def _send_ahead(file: "pq.ParquetFile", size: int) -> None:
    """Have pyarrow look at every column of every row group on its way to reading them, and no further.

    What cannot be is an error there. Asked for such a column by `column`, it would end the process.
    """
    from pyarrow import parquet as pq  # noqa: PLC0415 - an extra brings it

    nothing = _NothingToRead(size)
    ahead = pq.ParquetFile(RangedFile(nothing), metadata=file.metadata, pre_buffer=True)
    try:
        next(ahead.iter_batches(row_groups=list(range(file.metadata.num_row_groups)), use_threads=False), None)
    except Exception:
        # It reads when it has looked at all of them, and not before.
        if not nothing.was_asked:
            raise
