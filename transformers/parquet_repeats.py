"""Texts that are in a Parquet file once and stand in many rows: what makes a few bytes of a file many in memory."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["bounded", "repeating_texts"]

_SMALL_BYTES = 8 * 1024


def repeating_texts(file: "pq.ParquetFile", wanted: Sequence[int]) -> list[str]:
    """The columns whose texts can be read as numbers and a list of texts, where it might matter how long these are."""
    return [
        file.schema.column(column).path
        for column in wanted
        if _is_plain_text(file, column) and any(_repeats(chunk) for chunk in _chunks(file, column))
    ]


def bounded(batch: Any, most_bytes: int) -> Iterator[Any]:
    """A batch, its texts written out, in pieces of about so many bytes; a row stays whole."""
    coded = [index for index, field in enumerate(batch.schema) if _is_coded_text(field.type)]
    begin = 0
    for end in _cuts([batch.column(index) for index in coded], batch.num_rows, most_bytes):
        piece = batch.slice(begin, end - begin)
        for index in coded:
            piece = piece.set_column(index, batch.schema.field(index).name, piece.column(index).dictionary_decode())
        yield piece
        begin = end


def _cuts(columns: Sequence[Any], rows: int, most_bytes: int) -> Iterator[int]:
    """Before which rows to cut, and the number of rows."""
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra brings it

    lengths = [pc.binary_length(column.dictionary) for column in columns]
    if sum(pc.max(one).as_py() or 0 for one in lengths) * rows > most_bytes:
        sizes = [one.take(column.indices).to_pylist() for column, one in zip(columns, lengths, strict=True)]
        held = 0
        for row, size in enumerate(zip(*sizes, strict=True)):
            wanted = sum(filter(None, size))
            if held and held + wanted > most_bytes:
                yield row
                held = 0
            held += wanted
    yield rows


def _is_plain_text(file: "pq.ParquetFile", column: int) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    found = file.schema.column(column)
    if found.physical_type != "BYTE_ARRAY" or found.max_repetition_level or found.path != found.name:
        return False
    return file.schema_arrow.field(found.path).type in {pa.string(), pa.binary()}


def _is_coded_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    return pa.types.is_dictionary(kind) and kind.value_type in {pa.string(), pa.binary()}


def _chunks(file: "pq.ParquetFile", column: int) -> Iterator[Any]:
    return (file.metadata.row_group(index).column(column) for index in range(file.metadata.num_row_groups))


def _repeats(chunk: Any) -> bool:
    return bool(chunk.has_dictionary_page) and int(chunk.total_uncompressed_size) > _SMALL_BYTES
