"""`csv`: every row is an object of fields, named by the header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.options import option
from headrace.framework.parsers import Parser, boolean, names
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Position, Transformer, ValueBatch
from headrace.transformers.csv_columns import Columns, ColumnTypes, column_types
from headrace.transformers.csv_rows import Dialect, Rows, read_rows
from headrace.transformers.options import FormatOptions
from headrace.transformers.seeking import Cursor

__all__ = ["CsvOptions", "CsvTransformer"]

_MOST_VALUES = 2000
_BY_NAME = {"tab": "\t", "\\t": "\t", "space": " ", "none": ""}


def _character(*, or_none: bool = False) -> Parser[str]:
    allowed = "one character of ASCII, tab or space" + (", or none" if or_none else "")

    def parse(given: str) -> str:
        found = _BY_NAME.get(given.lower(), given)
        if (found == "" and or_none) or re.fullmatch(r"[\t\x20-\x7e]", found):
            return found
        raise ValueError(f"must be {allowed}")

    return Parser("character", parse, allowed)


@attrs.frozen(kw_only=True)
class CsvOptions(FormatOptions):
    """The keys of `csv`."""

    BEGINNING: ClassVar[str] = "csv."

    delimiter: str = option("csv.delimiter", _character(), default=",", doc="What stands between two fields.")
    quote: str = option(
        "csv.quote",
        _character(or_none=True),
        default='"',
        doc="What stands around a field with delimiters, quotes or line ends in it; twice in a field it is itself.",
    )
    escape: str = option(
        "csv.escape",
        _character(or_none=True),
        default="",
        doc="What takes the meaning of the character behind it away; none by default.",
    )
    header: bool = option("csv.header", boolean(), default=True, doc="Whether the first row names the fields.")
    columns: tuple[str, ...] = option(
        "csv.columns",
        names(),
        default=(),
        doc="The names of the fields in their order, in place of the header's. Without header and names they are "
        "c1, c2 and so on.",
    )
    types: ColumnTypes = option(
        "csv.types",
        column_types(),
        default=ColumnTypes(),
        doc="`string`: every field is a text. `inferred`: each field by itself is an integer, a number, true, false, "
        "null where it is empty, or else a text. Or a list such as `id:int64,price:decimal(2)`: the fields in it have "
        "these types, and are null where they are empty.",
    )
    null: str | None = option(
        "csv.null", Parser("text", str), default=None, doc="The text that stands for null, in whatever field."
    )

    @property
    def dialect(self) -> Dialect:
        """How fields and rows are told apart."""
        return Dialect(delimiter=self.delimiter, quote=self.quote, escape=self.escape)


@attrs.define
class CsvTransformer(Transformer):
    """Rows of comma-separated values, in UTF-8, each an object by the names of its fields.

    Rows end with a line feed, with or without a carriage return; a quoted field may have line ends in it. Blank lines
    are no records. A row with more or fewer fields than the header is an error, and so is a quote that is never
    closed: neither is mended by guessing. Errors name the line that a row begins with.

    Reading goes on behind any row, at its byte, after a look at the header.
    """

    config_class = CsvOptions

    options: CsvOptions = attrs.field(factory=CsvOptions, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = CsvOptions.of(props)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        cursor = Cursor(stream)
        columns = self._declared()
        skip = start.records
        if start.byte and cursor.seekable:
            columns = columns or self._columns(next(self._rows(cursor), None))
            cursor.go_to(start.byte)
            rows, skip = self._rows(cursor, start), 0
        else:
            rows, start = self._rows(cursor), Position()
        done = start.records
        heading = start.byte == 0
        for part in rows:
            first = 0
            if heading and part.rows:
                columns = columns or self._columns(part)
                first, heading = int(self.options.header), False
            left_out = min(skip, len(part.rows) - first)
            skip -= left_out
            done += left_out
            for at in range(first + left_out, len(part.rows), _MOST_VALUES):
                assert columns is not None  # noqa: S101 - there has been a row
                yield from _batch(columns, part, at, done)
                done += len(part.rows[at : at + _MOST_VALUES])

    def _rows(self, cursor: Cursor, start: Position | None = None) -> Iterator[Rows]:
        return read_rows(cursor, self.options.dialect, self.options.max_record_bytes, start or Position())

    def _declared(self) -> Columns | None:
        """The columns, where the configuration names them."""
        return self._named(self.options.columns) if self.options.columns else None

    def _columns(self, part: Rows | None) -> Columns | None:
        """The columns, by the first row there is."""
        if part is None or not part.rows:
            return None
        first = part.rows[0]
        found = first if self.options.header else [f"c{number + 1}" for number in range(len(first))]
        twice = {name for name in found if found.count(name) > 1}
        if twice:
            where = Where(stage=Stage.TRANSFORM, position=f"line {part.line_of(0)}")
            raise DataError(f"the header names {min(twice)!r} twice: name the fields with csv.columns", where)
        return self._named(found)

    def _named(self, found: Sequence[str]) -> Columns:
        return Columns.of(found, self.options.types, self.options.null)


def _batch(columns: Columns, part: Rows, first: int, done: int) -> Iterator[ValueBatch]:
    """The values of rows from the `first` on, `done` records of the object being before them, up to a bad one."""
    rows = part.rows[first : first + _MOST_VALUES]
    values, bad = columns.values(rows)
    if values:
        yield ValueBatch(schema=columns.schema, values=values, position_at=partial(_after, part, first, done))
    if bad is not None:
        where = Where(stage=Stage.TRANSFORM, position=f"line {part.line_of(first + len(values))}")
        raise DataError(f"{bad}: mend the row", where) from bad


def _after(part: Rows, first: int, done: int, count: int) -> Position:
    lines, size = part.before(first + count)
    return Position(records=done + count, byte=part.start.byte + size, line=part.start.line + lines)
