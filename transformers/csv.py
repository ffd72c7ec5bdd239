"""`csv`: every row is an object of fields, named by the header."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Fault, Where
from headrace.framework.options import option
from headrace.framework.parsers import Parser, boolean, names
from headrace.framework.parts import Extent
from headrace.framework.stage import Stage
from headrace.transformers.again import Opener, all_of, behind_lines, lines_of, refuse_part, taken
from headrace.transformers.base import ByteStream, Place, Position, Rejected, Transformer, ValueBatch
from headrace.transformers.csv_columns import Columns, ColumnTypes, column_types
from headrace.transformers.csv_rows import BadRow, Dialect, Rows, read_rows
from headrace.transformers.options import FormatOptions
from headrace.transformers.parts import LinesWithin, named_within
from headrace.transformers.seeking import Cursor, SeekableStream

__all__ = ["CsvOptions", "CsvTransformer"]

_MOST_VALUES = 2000
_FEW_VALUES = 16
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
    quoted_newlines: bool = option(
        "csv.quoted.newlines",
        boolean(),
        default=True,
        doc="Whether a field may have line ends in it. Where none has, `false` says so: then each line is a row, a row "
        "of more lines is an error, and a large object can be read in parts (`split.size.bytes`).",
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

    @override
    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        for name in ("quote", "escape"):
            if getattr(self, name) == self.delimiter:
                yield self.fault(f"csv.{name}", "is the character of csv.delimiter too: choose another one")
        if self.escape and self.escape == self.quote:
            yield self.fault("csv.escape", "is the character of csv.quote too, which twice in a field is itself anyway")
        twice = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if twice:
            yield self.fault("csv.columns", f"names {twice[0]!r} twice")
        unknown = [name for name in self.types.by_name if self.columns and name not in self.columns]
        if unknown:
            yield self.fault("csv.types", f"names {unknown[0]!r}, which is none of csv.columns")

    @property
    def dialect(self) -> Dialect:
        """How fields and rows are told apart."""
        return Dialect(
            delimiter=self.delimiter, quote=self.quote, escape=self.escape, line_is_row=not self.quoted_newlines
        )


@attrs.define
class CsvTransformer(Transformer):
    """Rows of comma-separated values, in UTF-8, each an object by the names of its fields.

    Rows end with a line feed, with or without a carriage return; a quoted field may have line ends in it. Blank lines
    are no records. A row with more or fewer fields than the header is an error, and so is a quote that is never
    closed: neither is mended by guessing. Errors name the line that a row begins with. With `errors.tolerance=all`
    such a row is a rejected piece; where its end cannot be told, that is the line with which it begins.

    Reading goes on behind any row, at its byte, after a look at the header; so does a part, where each line is a row.
    """

    config_class = CsvOptions

    options: CsvOptions = attrs.field(factory=CsvOptions, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = CsvOptions.of(props)

    @classmethod
    @override
    def can_split(cls, props: Mapping[str, str]) -> bool:
        return not CsvOptions.of(props).quoted_newlines

    @override
    def part(self, stream: SeekableStream, extent: Extent, start: Position) -> Iterator[ValueBatch]:
        if extent.start == 0 and start.byte == 0:
            yield from self.batches(LinesWithin.of(stream, extent), start)
            return
        head = self._first(Cursor(stream)) if self.options.header or not self.options.columns else None
        behind = head.start.byte + head.before(1)[1] if head is not None and self.options.header else 0
        lines = LinesWithin.of(stream, Extent(max(extent.start, behind), extent.end), start.byte)
        begin = attrs.evolve(start, byte=lines.position)
        with named_within(extent):
            columns = self._declared() or self._columns(head)
            yield from self._values(self._rows(Cursor(lines), begin), columns, begin)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        cursor = Cursor(stream)
        columns = self._declared()
        skip = start.records
        if start.byte and cursor.seekable:
            columns = columns or self._columns(self._first(cursor))
            cursor.go_to(start.byte)
            rows, skip = self._rows(cursor, start), 0
        else:
            rows, start = self._rows(cursor), Position()
        yield from self._values(rows, columns, start, skip)

    def _values(
        self, rows: Iterator[Rows | BadRow], columns: Columns | None, start: Position, skip: int = 0
    ) -> Iterator[ValueBatch]:
        """The values of rows from `start` on, but for the first `skip`; at the object's beginning comes the header."""
        done = start.records
        heading = start.byte == 0
        for part in rows:
            if isinstance(part, BadRow):
                if heading and self.options.header:  # without it no other row means anything
                    raise part.error
                if skip:
                    skip -= 1
                else:
                    yield _rejected(part, done)
                done += 1
                continue
            first = 0
            if heading and part.rows:
                columns = columns or self._columns(part)
                first, heading = int(self.options.header), False
            left_out = min(skip, len(part.rows) - first)
            skip -= left_out
            done += left_out
            for at in range(first + left_out, len(part.rows), _MOST_VALUES):
                assert columns is not None  # noqa: S101 - there has been a row
                yield from self._batches(columns, part, at, done)
                done += len(part.rows[at : at + _MOST_VALUES])

    @override
    def again(self, open_content: Opener, piece: Rejected, *, same: bool, same_size: bool) -> Iterator[ValueBatch]:
        if piece.count is None:
            yield from super().again(open_content, piece, same=same, same_size=same_size)
            return
        columns = self._declared() or self._columns(self._first(Cursor(open_content())))
        if columns is None:
            return
        data = lines_of(open_content(), piece, self.options.max_record_bytes, same=same, same_size=same_size)
        if data is not None:
            yield from all_of(self._read(columns, Cursor(io.BytesIO(data)), piece.before), piece.count)
            return
        refuse_part(piece, same=same)
        # In what has been repaired, lines are counted: how many rows they are may have been told apart wrongly.
        stream = behind_lines(open_content(), piece.before.line)
        yield from taken(self._read(columns, Cursor(stream), piece.before), piece.count)

    def _read(self, columns: Columns, cursor: Cursor, start: Position) -> Iterator[ValueBatch]:
        """The values from a place where a row begins."""
        done = start.records
        for part in self._rows(cursor, start):
            if isinstance(part, BadRow):
                yield _rejected(part, done)
            else:
                yield from self._batches(columns, part, 0, done)
            done += 1 if isinstance(part, BadRow) else len(part.rows)

    def _batches(self, columns: Columns, part: Rows, first: int, done: int) -> Iterator[ValueBatch]:
        """The values of rows from the `first` on, `done` records of the object being before them."""
        end, most = min(first + _MOST_VALUES, len(part.rows)), _MOST_VALUES
        while first < end:
            rows = part.rows[first : min(first + most, end)]
            values, bad = columns.values(rows)
            if values:
                yield ValueBatch(
                    schema=columns.schema,
                    values=values,
                    position_at=partial(_after, part, first, done),
                    place_of=partial(_place, part, first),
                )
            first, done, most = first + len(values), done + len(values), min(2 * most, _MOST_VALUES)
            if bad is None:
                continue
            where = Where(stage=Stage.TRANSFORM, position=f"line {part.line_of(first)}")
            error = DataError(f"{bad}: mend the row", where)
            if not self.options.tolerant:
                raise error from bad
            error.__cause__ = bad
            yield _rejected(part.bad(first, error), done)
            first, done, most = first + 1, done + 1, _FEW_VALUES

    def _rows(self, cursor: Cursor, start: Position | None = None) -> Iterator[Rows | BadRow]:
        options = self.options
        return read_rows(
            cursor, options.dialect, options.max_record_bytes, start or Position(), tolerant=options.tolerant
        )

    def _first(self, cursor: Cursor) -> Rows | None:
        """The first rows of the object, the header among them; where there is none, a bad row is passed over."""
        for found in self._rows(cursor):
            if isinstance(found, Rows):
                return found
            if self.options.header:
                raise found.error
        return None

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


def _rejected(bad: BadRow, done: int) -> ValueBatch:
    before = attrs.evolve(bad.start, records=done)
    end = bad.start.byte + bad.size
    piece = Rejected(
        error=bad.error,
        number=bad.start.line + 1,
        before=before,
        start=bad.start.byte,
        end=end,
        raw=bad.raw and bad.raw.strip(b"\r\n"),
    )
    return piece.batch(Position(records=done + 1, byte=end, line=bad.start.line + bad.lines))


def _after(part: Rows, first: int, done: int, count: int) -> Position:
    lines, size = part.before(first + count)
    return Position(records=done + count, byte=part.start.byte + size, line=part.start.line + lines)


def _place(part: Rows, first: int, index: int) -> Place:
    (_, begin), (_, end) = part.begin(first + index), part.before(first + index + 1)
    return Place(line=part.line_of(first + index), start=part.start.byte + begin, end=part.start.byte + end)
