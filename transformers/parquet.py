"""`parquet`: row group by row group, and of these only the columns that are asked for."""

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Fault, PipelineError, Where
from headrace.framework.options import option
from headrace.framework.parsers import member, names
from headrace.framework.parts import Extent
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Place, Position, Rejected, Transformer, ValueBatch
from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.options import FormatOptions
from headrace.transformers.parquet_ahead import Ahead, ahead_of, read_twice
from headrace.transformers.parquet_file import RangedFile, merged
from headrace.transformers.parquet_footer import Group, extent, groups_of
from headrace.transformers.parquet_int96 import Int96, Int96Check, int96_columns
from headrace.transformers.parquet_schema import ParquetSchema
from headrace.transformers.seeking import Cursor, SeekableStream

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["ParquetOptions", "ParquetTransformer"]

_T = TypeVar("_T")

_MOST_VALUES = 2000
_BATCH_BYTES = 1024 * 1024
_READ_BYTES = 256 * 1024

_HELD_BYTES = 64 * 1024 * 1024
"""Row groups of more than that are read in small pieces, at the price of more requests."""


@attrs.frozen(kw_only=True)
class ParquetOptions(FormatOptions):
    """The keys of `parquet`."""

    BEGINNING: ClassVar[str] = "parquet."

    columns: tuple[str, ...] = option(
        "parquet.columns",
        names(),
        default=(),
        doc="The columns to read, a field in a struct by its path (`a.b`); the others are not even fetched. "
        "All of them by default.",
    )
    int96: Int96 = option(
        "parquet.int96",
        member(Int96),
        default=Int96.MICROSECONDS,
        doc="What old timestamps of 96 bits are read in: `microseconds`, as Spark writes them, or `nanoseconds`, which "
        "go from 1677 to 2262. One that is finer, or beyond that, is an error of its row.",
    )


@attrs.define
class ParquetTransformer(Transformer):
    """The rows of Parquet files, as objects by field name, in the order of the file.

    Dates and times are the numbers that they are in the file, decimals are `decimal.Decimal`. Of an object in which
    one can go about, the footer is fetched, and then each row group's columns; any other is first copied to a
    temporary file. In memory are a row group as it is in the file, up to 64 MB of it, and about a megabyte of rows; or
    up to 8 MB of them, where a text is in the file once and stands in many rows, or many times in one, or where the
    values of lists are few bytes of the file. How large rows get by such lists and maps is known before they are
    unpacked: one of more than 8 MB is unpacked by itself, and one of more than that and more than `max.record.bytes` is
    an error, and is not unpacked at all.

    Reading goes on at any row, in the row group that holds it: the number of records is all that it takes. With
    `errors.tolerance=all` a row that has no form here is a rejected piece, and so is what is left of a row group that
    cannot be read, or that begins with a row which is not unpacked: there is no way around it to the next one.
    """

    config_class = ParquetOptions
    handles_compression = True
    reads_from_the_end = True

    options: ParquetOptions = attrs.field(factory=ParquetOptions, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = ParquetOptions.of(props)
        try:
            import pyarrow  # noqa: F401, ICN001, PLC0415 - an extra brings it
        except ImportError as error:
            message = "parquet needs pyarrow, which is not installed: pip install 'headrace[parquet]'"
            raise ConfigError([Fault("input.format", "parquet", message)]) from error

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        with ExitStack() as opened:
            source = _file(stream, opened)
            if source is not None:
                yield from _Reading(source, self.options, start.records).batches()

    @classmethod
    @override
    def can_split(cls, props: Mapping[str, str]) -> bool:
        return True

    @override
    def part(self, stream: SeekableStream, extent: Extent, start: Position) -> Iterator[ValueBatch]:
        yield from _Reading(RangedFile(stream), self.options, start.records, extent).batches()


def _file(stream: ByteStream, opened: ExitStack) -> Any:
    """The object as a file; None where it has not a byte."""
    found = Cursor(stream).seekable
    if found is not None:
        return RangedFile(found) if found.size else None
    copy = opened.enter_context(tempfile.TemporaryFile(prefix="headrace-"))  # noqa: SIM115 - it is one
    while piece := stream.read(_READ_BYTES):
        copy.write(piece)
    return copy if copy.tell() else None


@attrs.define
class _Reading:
    """One object, or a part of it; `done` records of the object are behind us, `others` of them not of this part."""

    source: Any
    options: ParquetOptions
    done: int
    extent: Extent | None = None
    others: int = attrs.field(default=0, init=False)
    _wanted: list[int] = attrs.field(factory=list, init=False)
    _groups: list[Group] = attrs.field(factory=list, init=False)
    _schema: ParquetSchema | None = attrs.field(default=None, init=False)
    _bytes: tuple[int, int] = attrs.field(default=(0, 0), init=False)
    _inexact: dict[int, str] = attrs.field(factory=dict, init=False)

    def batches(self) -> Iterator[ValueBatch]:
        file = self._opened()
        for group in self._groups:
            if self.extent is not None and not self.extent.start <= group.begins < self.extent.end:
                self.others += group.count
                self.done += group.count
            elif group.before + group.count > self.done:
                yield from self._group_or_piece(file, group)

    def _group_or_piece(self, file: "pq.ParquetFile", group: Group) -> Iterator[ValueBatch]:
        extents = self._extents(file, group)
        self._bytes = min((start for start, _ in extents), default=0), max((end for _, end in extents), default=0)
        try:
            self._refuse_bomb(group)
            held = merged(extents if group.packed <= _HELD_BYTES else self._looked_into(file, group))
            if isinstance(self.source, RangedFile):
                self.source.hold(held)
            ahead = self._read(lambda: self._ahead(file, group, by_pages=bool(held)))
            for batch in self._rows(file, group, ahead):
                yield from self._values(batch)
        except DataError as error:
            if not self.options.tolerant or not self._has_a_form(file):
                raise
            yield self._rejected(error, group.before + group.count - self.done)

    def _has_a_form(self, file: "pq.ParquetFile") -> bool:
        """Whether there can be values of the object at all."""
        try:
            ParquetSchema.of(file.schema_arrow)
        except ValueError:
            return False
        return True

    def _rejected(self, error: DataError, count: int) -> ValueBatch:
        """The next `count` rows as a piece."""
        start, end = self._bytes
        piece = Rejected(
            error=error,
            number=self.done + 1,
            before=_after(self.done - self.others, 0),
            start=start,
            end=end,
            count=count,
        )
        self.done += count
        return piece.batch(_after(self.done - self.others, 0))

    def _read_by(self, **how: Any) -> "pq.ParquetFile":
        from pyarrow import parquet as pq  # noqa: PLC0415 - an extra brings it

        how = {"coerce_int96_timestamp_unit": self.options.int96.unit, **how}
        return pq.ParquetFile(self.source, pre_buffer=False, page_checksum_verification=True, **how)

    def _opened(self) -> "pq.ParquetFile":
        try:
            file = self._read_by()
            self._wanted = self._columns(file)
            self._groups = groups_of(file, self._wanted, self.source.seek(0, io.SEEK_END))
            if any(group.packed > _HELD_BYTES for group in self._groups):
                return self._read_by(metadata=file.metadata, buffer_size=_BATCH_BYTES)
        except PipelineError:
            raise
        except Exception as error:  # pyarrow has many, and the standard library's among them
            raise self._bad("this is no Parquet file, or not all of one", error) from error
        return file

    def _rows(self, file: "pq.ParquetFile", group: Group, ahead: Ahead) -> Iterator[Any]:
        """The rows behind the first `done`, a megabyte of them at a time, and never more than may be unpacked at once.

        How large they are is known of those that have been read, and how large they may be where a text is in the file
        once and in many values.
        """
        most = _fitting(group.count, file.metadata.row_group(group.index).total_byte_size)
        most = min(most, self._at_once(ahead, group, group.before))
        found = file.iter_batches(
            batch_size=most, row_groups=[group.index], columns=list(self.options.columns) or None, use_threads=False
        )
        check = self._read(lambda: Int96Check.of(file, group, self._wanted, self._read_by, self.options.int96))
        before, end = group.before, group.before + group.count
        while before < end:
            most = min(most, self._at_once(ahead, group, before))
            file.reader.set_batch_size(most)
            batch = self._read(partial(next, found, None))
            if batch is None:
                raise self._bad("the row group has fewer rows than the footer says", None)
            if check is not None:
                wrong = self._read(partial(check.wrong, batch))
                self._inexact = {before + row: why for row, why in wrong.items()}
            batch = self._cast(batch)
            most = min(4 * most, _fitting(batch.num_rows, batch.nbytes))
            skip = min(max(0, self.done - before), batch.num_rows)
            before += batch.num_rows
            if skip < batch.num_rows:
                yield batch.slice(skip)

    def _at_once(self, ahead: Ahead, group: Group, before: int) -> int:
        """How many rows may be unpacked at once behind the first `before`; an error where not even one may."""
        row, limit = before - group.before, self.options.max_record_bytes
        if limit and self._read(partial(ahead.has_more_than, row, limit)):
            which = "the row" if before >= self.done else f"record {before + 1}, in front of it in its row group,"
            raise self._bad(f"{which} has more than {limit} bytes, see max.record.bytes", None)
        return ahead.at_once(row)

    def _read(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except PipelineError:
            raise
        except Exception as error:  # as above
            raise self._bad("the row group cannot be read", error) from error

    def _cast(self, batch: Any) -> Any:
        """A batch as its values are made of it; which row of it has no form comes out later."""
        try:
            self._schema = self._schema or ParquetSchema.of(batch.schema)
            return self._schema.cast(batch)
        except Exception:  # noqa: BLE001 - pyarrow's, too
            return batch

    def _values(self, batch: Any) -> Iterator[ValueBatch]:
        while True:
            at = self.done
            try:
                yield from self._up_to_a_bad_one(batch)
            except DataError as error:
                if not self.options.tolerant or self._schema is None:
                    raise
                yield self._rejected(error, 1)
            else:
                return
            batch = batch.slice(self.done - at)
            if not batch.num_rows:
                return

    def _up_to_a_bad_one(self, batch: Any) -> Iterator[ValueBatch]:
        bad, why = self._bad_row(batch)
        values, error = self._converted(batch if bad is None else batch.slice(0, bad))
        if values:
            schema = self._schema.schema if self._schema else None
            yield ValueBatch(
                schema=schema,
                values=values,
                position_at=partial(_after, self.done - self.others),
                others=self.others,
                place_of=partial(_within, self._bytes),
            )
            self.done += len(values)
        if error is not None:
            raise self._bad("the row has no form here", error) from error
        if bad is not None:
            raise self._bad(why, None)

    def _converted(self, batch: Any) -> tuple[Sequence[Any], Exception | None]:
        try:
            self._schema = self._schema or ParquetSchema.of(batch.schema)
            return self._schema.values(batch), None
        except Exception as error:  # noqa: BLE001 - pyarrow's, too; the caller names the row
            return self._one_by_one(batch, error)

    def _one_by_one(self, batch: Any, failure: Exception) -> tuple[Sequence[Any], Exception | None]:
        values: list[Any] = []
        if self._schema is None:
            return values, failure
        try:
            for index in range(batch.num_rows):
                values += self._schema.values(batch.slice(index, 1))
        except Exception as error:  # noqa: BLE001 - as above
            return values, error
        return values, None

    def _bad_row(self, batch: Any) -> tuple[int | None, str]:
        """The first row that is too large, or has not the timestamp of the file, and which of both."""
        long = self._too_long(batch)
        count = batch.num_rows if long is None else long
        inexact = min((row for row in self._inexact if self.done <= row < self.done + count), default=None)
        if inexact is None:
            return long, f"the row has more than {self.options.max_record_bytes} bytes, see max.record.bytes"
        return inexact - self.done, self._inexact[inexact]

    def _too_long(self, batch: Any) -> int | None:
        limit = self.options.max_record_bytes
        if not limit or batch.nbytes <= limit:
            return None
        return next((index for index in range(batch.num_rows) if batch.slice(index, 1).nbytes > limit), None)

    def _columns(self, file: "pq.ParquetFile") -> list[int]:
        """The numbers of the columns that are to be read."""
        paths = [file.schema.column(index).path for index in range(len(file.schema))]
        for name in self.options.columns:
            if not any(_is_in(path, name) for path in paths):
                known = ", ".join(dict.fromkeys(path.partition(".")[0] for path in paths))
                message = f"there is no column {name!r}, which parquet.columns names; there are {known}"
                raise DataError(message, Where(stage=Stage.TRANSFORM, position="record 1"))
        return [
            index
            for index, path in enumerate(paths)
            if not self.options.columns or any(_is_in(path, name) for name in self.options.columns)
        ]

    def _extents(self, file: "pq.ParquetFile", group: Group) -> list[tuple[int, int]]:
        found = file.metadata.row_group(group.index)
        return [extent(found.column(column)) for column in self._wanted]

    def _looked_into(self, file: "pq.ParquetFile", group: Group) -> list[tuple[int, int]]:
        """The bytes of the columns that may be read twice, if they can be held."""
        chunks = file.metadata.row_group(group.index)
        columns = [*read_twice(file, group), *int96_columns(file, self._wanted)]
        extents = [extent(chunks.column(number)) for number in columns]
        return extents if sum(end - start for start, end in extents) <= _HELD_BYTES else []

    def _ahead(self, file: "pq.ParquetFile", group: Group, *, by_pages: bool) -> Ahead:
        return ahead_of(file, group, self._read_by, self.source, options=self.options, by_pages=by_pages)

    def _refuse_bomb(self, group: Group) -> None:
        ratio, packed, unpacked = self.options.max_decompression_ratio, group.packed, group.unpacked
        if ratio and unpacked > max(TOO_MUCH_FROM, ratio * packed):
            raise self._bad(f"{packed} bytes of a row group hold {unpacked}, see max.decompression.ratio", None)
        limit = self.options.max_record_bytes
        if limit and group.largest_mean > limit and unpacked > _HELD_BYTES:
            raise self._bad(f"a row has more than {limit} bytes, see max.record.bytes", None)

    def _bad(self, what: str, error: Exception | None) -> DataError:
        reason = f" ({' '.join(str(error).split())})" if error else ""
        message = f"{what}{reason}: put a whole copy of the object in its place, or mend what wrote it"
        return DataError(message, Where(stage=Stage.TRANSFORM, position=f"record {self.done + 1}"))


def _within(extent: tuple[int, int], _index: int) -> Place:
    """The row group is where each of its rows stands."""
    start, end = extent
    return Place(start=start, end=end)


def _after(done: int, count: int) -> Position:
    return Position(records=done + count)


def _is_in(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _fitting(rows: int, size: int) -> int:
    """How many rows are about a megabyte, where so many have that size."""
    return max(1, min(_MOST_VALUES, _BATCH_BYTES * rows // max(1, size)))
