"""Rows of CSV with their places, found while the bytes come in."""

import csv
import io
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import attrs

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import Position
from headrace.transformers.lines import BOM
from headrace.transformers.seeking import Cursor

__all__ = ["Dialect", "Rows", "read_rows"]

_READ_BYTES = 256 * 1024
_UNFINISHED = "unexpected end of data"


@attrs.frozen(kw_only=True)
class Dialect:
    """How fields and rows are told apart; an empty text stands for no such character."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The same in the words of the standard library."""
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote or None,
            "quoting": csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            "escapechar": self.escape or None,
            "doublequote": True,
            "strict": True,
        }

    def is_plain(self, text: str) -> bool:
        """Whether every line of a text is a row, whatever it holds."""
        return not any(mark and mark in text for mark in (self.quote, self.escape))


@attrs.define
class Rows:
    """Rows that one read completed; blank lines are none.

    `start` is where their first byte is. `_lines` says for each row how many lines are behind us after it; None
    where each line is a row.
    """

    start: Position
    data: bytes
    rows: list[list[str]]
    _lines: list[int] | None = None
    _first_lines: list[int] | None = None
    _ends: list[int] | None = None

    def line_of(self, index: int) -> int:
        """The number of the line with which a row begins, from 1 at the object's beginning."""
        return self.start.line + 1 + (index if self._first_lines is None else self._first_lines[index])

    def before(self, count: int) -> tuple[int, int]:
        """How many lines, and bytes, are behind us after so many rows."""
        if count == 0:
            return 0, 0
        lines = count if self._lines is None else self._lines[count - 1]
        if self._ends is None:
            self._ends = list(accumulate(len(line) + 1 for line in self.data.split(b"\n")))
        return lines, min(self._ends[lines - 1], len(self.data))


def read_rows(cursor: Cursor, dialect: Dialect, limit: int, start: Position) -> Iterator[Rows]:
    """The rows from where the cursor is, which is `start`.

    What cannot be told apart, is not UTF-8, or is a row of more than `limit` bytes (0 is no limit), is a `DataError`
    that names the line, after the rows before it. The stream's own errors come after the rows that were complete.
    """
    # A setting of the whole process, which is never lowered again: our own limit is the one that counts.
    csv.field_size_limit(max(csv.field_size_limit(), limit or 2**31 - 1))
    return _Reading(cursor, dialect, limit, start).parts()


_Parsed = tuple[Rows, csv.Error | None, int]
"""Rows, what is wrong behind them, and how many lines are before that."""


@attrs.define
class _Reading:
    cursor: Cursor
    dialect: Dialect
    limit: int
    start: Position
    _rest: bytes = attrs.field(default=b"", init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)

    def parts(self) -> Iterator[Rows]:
        self._fill()
        if self.start.byte == 0 and self._rest.startswith(BOM):
            self._rest = self._rest.removeprefix(BOM)
            self.start = attrs.evolve(self.start, byte=len(BOM))
        while True:
            part, bad = self._part()
            if part.rows:
                yield part
            if bad:
                raise bad
            if self._failure:
                raise self._failure
            if self._ended:
                return
            self._fill()

    def _fill(self) -> None:
        """Read on until there is a line's end, and twice as much as was held: what is half is looked at again."""
        pieces = [self._rest]
        wanted = max(1, len(self._rest))
        try:
            while not self._ended and (wanted > 0 or b"\n" not in pieces[-1]):
                piece = self.cursor.read(_READ_BYTES)
                self._ended = not piece
                pieces.append(piece)
                wanted -= len(piece)
                if self.limit and -wanted > self.limit:
                    break
        except Exception as error:  # noqa: BLE001 - whatever it is: what came before it is given out first
            self._failure = error
        self._rest = b"".join(pieces)

    def _part(self) -> tuple[Rows, DataError | None]:
        """The rows that are complete in what is held, and what is wrong behind them."""
        whole = len(self._rest) if self._ended else self._rest.rfind(b"\n") + 1
        data = self._rest[:whole]
        text, bad = self._decoded(data)
        part, error, before = self._parsed(data, text)
        if error is not None and (str(error) != _UNFINISHED or (self._ended and bad is None)):
            bad = self._bad(f"the row cannot be told apart ({_reason(error)}): mend it, or see csv.quote", before)
            bad.__cause__ = error
        if bad is None or (error is not None and str(error) == _UNFINISHED):
            long = self._longer(part)
            if long is not None:
                part, bad = long
        lines, size = part.before(len(part.rows))
        if error is None and bad is None:  # blank lines at the end are done, too
            lines, size = data.count(b"\n"), len(data)
        self._rest = self._rest[size:]
        self.start = attrs.evolve(self.start, byte=self.start.byte + size, line=self.start.line + lines)
        if bad is None and self.limit and len(self._rest) > self.limit:
            bad = self._too_long(0)
        return part, bad

    def _decoded(self, data: bytes) -> tuple[str, DataError | None]:
        try:
            return data.decode(), None
        except UnicodeDecodeError as error:
            good = data[: data.rfind(b"\n", 0, error.start) + 1]
            reason = f"not UTF-8 ({error.reason} at byte {error.start - len(good) + 1}): mend the line"
            bad = self._bad(reason, good.count(b"\n"))
            bad.__cause__ = error
            return good.decode(), bad

    def _parsed(self, data: bytes, text: str) -> _Parsed:
        settings = self.dialect.settings
        if self.dialect.is_plain(text):
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            try:
                rows = list(csv.reader(lines, **settings))
            except csv.Error:
                pass
            else:
                if all(rows):
                    return Rows(self.start, data, rows), None, 0
        return _one_by_one(self.start, data, text, settings)

    def _longer(self, part: Rows) -> tuple[Rows, DataError] | None:
        """The rows before the first that is too long, if there is one."""
        if not self.limit or len(part.data) <= self.limit:
            return None
        sizes = [part.before(count)[1] for count in range(len(part.rows) + 1)]
        for index in range(len(part.rows)):
            if sizes[index + 1] - sizes[index] > self.limit + 2:
                kept = attrs.evolve(part, rows=part.rows[:index])
                return kept, self._too_long(part.before(index)[0])
        return None

    def _too_long(self, lines: int) -> DataError:
        return self._bad(f"the row has more than {self.limit} bytes: set max.record.bytes higher if it is right", lines)

    def _bad(self, message: str, lines: int) -> DataError:
        return DataError(message, Where(stage=Stage.TRANSFORM, position=f"line {self.start.line + lines + 1}"))


def _reason(error: csv.Error) -> str:
    if "new-line character" in str(error):
        return "a carriage return without a line feed, outside of quotes"
    return "a quote is never closed" if str(error) == _UNFINISHED else str(error)


def _one_by_one(start: Position, data: bytes, text: str, settings: dict[str, Any]) -> _Parsed:
    rows: list[list[str]] = []
    firsts: list[int] = []
    lines: list[int] = []
    error: csv.Error | None = None
    reader = csv.reader(io.StringIO(text, newline="\n"), **settings)
    before = 0
    try:
        for row in reader:
            if row:
                rows.append(row)
                firsts.append(before)
                lines.append(reader.line_num)
            before = reader.line_num
    except csv.Error as caught:
        error = caught
    return Rows(start, data, rows, lines, firsts), error, before
