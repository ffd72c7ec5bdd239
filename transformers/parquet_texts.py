"""How long the texts are that a row group has once, and that may stand in any number of its values."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from headrace.transformers.parquet_arrays import by_row, leaves

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Texts"]

_AT_ONCE = 2000
_LOOK_BYTES = 4 * 1024
_BUFFER_BYTES = 1024 * 1024
_INDEX_BYTES = 1024 * 1024


@attrs.frozen(kw_only=True)
class Texts:
    """The texts of a row group. `opened` opens the file once more; what cannot be read is an error of pyarrow."""

    file: "pq.ParquetFile"
    group: int
    opened: Callable[..., "pq.ParquetFile"]

    def longest(self, paths: Sequence[str]) -> list[int]:
        """The bytes of the longest text in each of these columns' dictionaries; 0 where there is none.

        Read are the dictionary and what stands in front of the column's first text.
        """
        look = self._again(paths, _LOOK_BYTES)
        return [self._longest(look, path) for path in paths]

    def bytes_by_row(self, path: str, values: int, sizes: Iterator[int], *, rows: int, limit: int) -> Iterator[int]:
        """The bytes of the texts of a column in one row after the other, until so many values are behind us.

        `sizes` are what the rows have besides. Read are `rows` of them at once, or fewer where they have much; behind
        one that has more than `limit` is nothing.
        """
        look = self._again([path], _BUFFER_BYTES)
        found = self._batches(look, path, 1)
        for count in _together(sizes, rows, limit):
            left = count
            while left:
                look.reader.set_batch_size(left)
                batch = next(found, None)
                if batch is None:
                    return
                column = batch.column(0)
                yield from by_row(column, _bytes).to_pylist()
                left -= batch.num_rows
                values -= max(batch.num_rows, *map(len, leaves(column)))
            if values <= 0:
                return

    def _again(self, paths: Sequence[str], buffer_size: int) -> "pq.ParquetFile":
        """The file, with these columns as dictionaries.

        Texts of an extension type, as JSON is, are had as texts; a pyarrow that cannot be told has them as such.
        """
        as_stored = "arrow_extensions_enabled"
        more = {as_stored: False} if as_stored in inspect.signature(type(self.file)).parameters else {}
        opened = partial(self.opened, metadata=self.file.metadata, **more)
        return opened(read_dictionary=list(paths), buffer_size=buffer_size)

    def _batches(self, look: "pq.ParquetFile", path: str, rows: int) -> Iterator[Any]:
        yield from look.iter_batches(batch_size=rows, row_groups=[self.group], columns=[path], use_threads=False)

    def _longest(self, look: "pq.ParquetFile", path: str) -> int:
        from pyarrow import compute  # noqa: PLC0415 - an extra brings it

        for batch in self._batches(look, path, 1):
            look.reader.set_batch_size(_AT_ONCE)
            for texts in leaves(batch.column(0)):
                if not _is_coded(texts):
                    return 0
                if len(texts.dictionary):
                    return int(compute.max(compute.binary_length(texts.dictionary)).as_py() or 0)
        return 0


def _together(sizes: Iterator[int], rows: int, limit: int) -> Iterator[int]:
    """How many rows are read at once, one time after the other, in front of the first that is beyond the limit."""
    count = total = 0
    for size in sizes:
        if count and (count == rows or total + size > _INDEX_BYTES):
            yield count
            count = total = 0
        if size > limit:
            return
        count += 1
        total += size
    if count:
        yield count


def _bytes(texts: Any) -> Any:
    """The bytes of each text of a column."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    if not _is_coded(texts):
        return pa.repeat(pa.scalar(0, pa.int64()), len(texts))
    lengths = compute.binary_length(texts.dictionary).cast(pa.int64())
    return compute.fill_null(lengths.take(texts.indices), 0)


def _is_coded(column: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return isinstance(column, pa.DictionaryArray)
