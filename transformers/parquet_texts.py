"""How long the texts are that a row group has once, and that may stand in any number of its rows."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["longest_text"]

_AT_ONCE = 2000


def longest_text(file: "pq.ParquetFile", group: int, path: str) -> int:
    """The bytes of the longest text in the dictionary of a column, which the file was opened to read as one.

    Read are the dictionary and what stands in front of the column's first text. 0 where the column has none; an error
    of pyarrow, or a ValueError, where it cannot be told.
    """
    from pyarrow import compute  # noqa: PLC0415 - an extra brings it

    for batch in file.iter_batches(batch_size=1, row_groups=[group], columns=[path], use_threads=False):
        file.reader.set_batch_size(_AT_ONCE)
        found = _dictionary(batch.column(0), path)
        if len(found):
            return int(compute.max(compute.binary_length(found)).as_py() or 0)
    return 0


def _dictionary(column: Any, path: str) -> Any:
    """The dictionary of the one column in a column that may have structs, lists and maps around it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(column, pa.DictionaryArray):
        return column.dictionary
    if isinstance(column, pa.StructArray):
        return _dictionary(column.field(0), path)
    if isinstance(column, pa.MapArray):
        return _dictionary(column.keys if path.endswith("key") else column.items, path)
    if isinstance(column, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        return _dictionary(column.values, path)
    raise ValueError(f"the column {path} is not read as texts")
