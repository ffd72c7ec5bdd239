"""Rows of CSV with their places, found while the bytes come in."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import attrs

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import Position
from headrace.transformers.csv_grid import grid_of
from headrace.transformers.lines import BOM
from headrace.transformers.seeking import Cursor

__all__ = ["BadRow", "Dialect", "Rows", "read_rows"]

_READ_BYTES = 256 * 1024
_UNFINISHED = "unexpected end of data"
_ALL = 2**62
_LITTLE = 4096

_CALM = 64 * 1024
"""Behind a bad row only a parser looks, until so much is looked at again at once."""

_END_BYTES = 2
"""What a row has besides its own bytes: the end of a line."""

_LARGEST_LIMIT = 2**62
"""The csv module holds its own limit in 64 bits."""

_BEYOND_BYTES = 1024 * 1024
"""By how much a row may be too long and still be looked for as a whole."""


@attrs.frozen(kw_only=True)
class Dialect:
    """How fields and rows are told apart; an empty text stands for no such character.

    `line_is_row` promises that no field has a line end in it; a row that breaks the promise is an error.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    line_is_row: bool = False

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
        return not (self.quote and self.quote in text) and not self.is_escaped(text)

    def is_escaped(self, text: str) -> bool:
        """Whether something in a text may have lost its meaning."""
        return bool(self.escape) and self.escape in text


@attrs.define
class Rows:
    """Rows that one read completed; blank lines are none.

    `start` is where their first byte is. `_lines` says for each row how many lines are behind us after it; None
    where each line is a row.
    """

    start: Position
    data: bytes
    rows: Sequence[Sequence[str]]
    _lines: list[int] | None = None
    _first_lines: list[int] | None = None
    _ends: list[int] | None = None

    def line_of(self, index: int) -> int:
        """The number of the line with which a row begins, from 1 at the object's beginning."""
        return self.start.line + 1 + (index if self._first_lines is None else self._first_lines[index])

    def first_of_many_lines(self) -> int | None:
        """The first row that has more lines than one."""
        if self._lines is None or self._first_lines is None:
            return None
        sizes = (last - first for first, last in zip(self._first_lines, self._lines, strict=True))
        return next((index for index, size in enumerate(sizes) if size > 1), None)

    def bad(self, index: int, error: DataError) -> "BadRow":
        """A row that can be told apart, and is none all the same."""
        (lines, size), (lines_after, size_after) = self.begin(index), self.before(index + 1)
        start = Position(byte=self.start.byte + size, line=self.start.line + lines)
        raw = self.data[size:size_after].strip(b"\r\n")
        return BadRow(error=error, start=start, lines=lines_after - lines, size=size_after - size, raw=raw)

    def before(self, count: int) -> tuple[int, int]:
        """How many lines, and bytes, are behind us after so many rows."""
        return self._behind(self._lines[count - 1] if count and self._lines is not None else count)

    def begin(self, index: int) -> tuple[int, int]:
        """The same where a row begins, behind blank lines."""
        return self._behind(index if self._first_lines is None else self._first_lines[index])

    def _behind(self, lines: int) -> tuple[int, int]:
        if lines == 0:
            return 0, 0
        if self._ends is None:
            self._ends = list(accumulate(map((1).__add__, map(len, self.data.split(b"\n")))))
        return lines, min(self._ends[lines - 1], len(self.data))


@attrs.frozen(kw_only=True)
class BadRow:
    """What is no row: `size` bytes in `lines` lines from `start` on; `raw` is None where they are too many."""

    error: DataError
    start: Position
    lines: int
    size: int
    raw: bytes | None


def read_rows(
    cursor: Cursor, dialect: Dialect, limit: int, start: Position, *, tolerant: bool = False
) -> Iterator[Rows | BadRow]:
    """The rows from where the cursor is, which is `start`.

    What cannot be told apart, is not UTF-8, or is a row of more than `limit` bytes (0 is no limit), is a `DataError`
    that names the line, after the rows before it. The stream's own errors come after the rows that were complete.
    If `tolerant`, the line with which it begins is a `BadRow`, and the next row begins behind that line. A row that is
    too long is a `BadRow` as a whole, unless it is so by more than a megabyte.
    """
    # A setting of the whole process, which is never lowered again: our own limit is the one that counts.
    csv.field_size_limit(max(csv.field_size_limit(), min(limit or 2**31, _LARGEST_LIMIT) + 2 * _BEYOND_BYTES))
    return _Reading(cursor, dialect, limit, start, tolerant).parts()


_Parsed = tuple[Rows, csv.Error | None, int]
"""Rows, what is wrong behind them, and how many lines are before that."""


@attrs.define
class _Reading:
    cursor: Cursor
    dialect: Dialect
    limit: int
    start: Position
    tolerant: bool = False
    _long_row: tuple[int, int] | None = attrs.field(default=None, init=False)
    _window: int = attrs.field(default=_ALL, init=False)
    _rest: bytes = attrs.field(default=b"", init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)

    def parts(self) -> Iterator[Rows | BadRow]:
        self._fill()
        if self.start.byte == 0 and self._rest.startswith(BOM):
            self._rest = self._rest.removeprefix(BOM)
            self.start = attrs.evolve(self.start, byte=len(BOM))
        while True:
            sees_all = self._window >= len(self._rest)
            part, bad = self._part()
            if part.rows:
                yield part
            if bad and not self.tolerant:
                raise bad
            if bad:
                yield self._passed_over(bad)
                # Only a little is looked at again: the next row may be as bad.
                self._window = _LITTLE
                continue
            self._window = min(2 * self._window, _ALL)
            if not sees_all:
                continue
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
        seen = self._rest[: self._window]
        sees_all = len(seen) == len(self._rest)
        ended = self._ended and sees_all
        whole = len(seen) if ended else seen.rfind(b"\n") + 1
        data = seen[:whole]
        good, text, bad = self._decoded(data)
        part, error, before = self._parsed(good, text)
        broken = self._broken(part)
        if broken is not None:
            part, bad = broken
        elif error is not None and (str(error) != _UNFINISHED or (ended and bad is None)):
            bad = self._bad(f"the row cannot be told apart ({_reason(error)}): mend it, or see csv.quote", before)
            bad.__cause__ = error
        part, bad = self._longer(part) or (part, bad)
        lines, size = part.before(len(part.rows))
        if error is None and bad is None:  # blank lines at the end are done, too
            lines, size = data.count(b"\n"), len(data)
        self._rest = self._rest[size:]
        self.start = attrs.evolve(self.start, byte=self.start.byte + size, line=self.start.line + lines)
        if bad is None and sees_all and self._is_too_long_already:
            bad = self._too_long(0)
        return part, bad

    def _passed_over(self, bad: DataError) -> BadRow:
        """Go on behind what is wrong at the beginning of what is held."""
        while (blank := self._rest.find(b"\n") + 1) and not self._rest[:blank].strip(b"\r\n"):
            self._go_behind(1, blank)
        lines, size = self._long_row or (1, self._rest.find(b"\n") + 1)
        size = size or len(self._rest)
        start, self._long_row = self.start, None
        raw = self._rest[:size] if not self.limit or size <= self.limit + _END_BYTES else None
        is_whole = self._ended or self._rest[size - 1 : size] == b"\n"
        self._go_behind(lines, size)
        if not is_whole:
            size, raw = size + self._rest_of_line(), None
        return BadRow(error=bad, start=start, lines=lines, size=size, raw=raw)

    def _go_behind(self, lines: int, size: int) -> None:
        self._rest = self._rest[size:]
        self.start = attrs.evolve(self.start, byte=self.start.byte + size, line=self.start.line + lines)

    def _rest_of_line(self) -> int:
        """Read on behind the end of a line of which a part was dropped already; how many bytes that were."""
        before = self.start.byte
        while not self._rest and not self._ended and not self._failure:
            self._rest = self.cursor.read(_READ_BYTES)
            self._ended = not self._rest
            end = self._rest.find(b"\n") + 1
            self._go_behind(0, end or len(self._rest))
            if end:
                break
        return self.start.byte - before

    def _decoded(self, data: bytes) -> tuple[bytes, str, DataError | None]:
        """The lines that are UTF-8, their text, and what is wrong behind them."""
        try:
            return data, data.decode(), None
        except UnicodeDecodeError as error:
            good = data[: data.rfind(b"\n", 0, error.start) + 1]
            reason = f"not UTF-8 ({error.reason} at byte {error.start - len(good) + 1}): mend the line"
            bad = self._bad(reason, good.count(b"\n"))
            bad.__cause__ = error
            return good, good.decode(), bad

    def _parsed(self, data: bytes, text: str) -> _Parsed:
        dialect, settings = self.dialect, self.dialect.settings
        is_parsed = self._window < _CALM or dialect.is_escaped(text)
        grid = None if is_parsed else grid_of(data, dialect.delimiter, dialect.quote)
        if grid is not None:
            return Rows(self.start, data, grid), None, 0
        if dialect.is_plain(text):
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

    def _broken(self, part: Rows) -> tuple[Rows, DataError] | None:
        """The rows before the first of more lines than one, where there must be none."""
        index = part.first_of_many_lines() if self.dialect.line_is_row else None
        if index is None:
            return None
        message = "the row has more than one line, and csv.quoted.newlines is false: mend it, or take that key out"
        return attrs.evolve(part, rows=part.rows[:index]), self._bad(message, part.line_of(index) - part.start.line - 1)

    def _longer(self, part: Rows) -> tuple[Rows, DataError] | None:
        """The rows before the first that is too long, if there is one."""
        if not self.limit or len(part.data) <= self.limit:
            return None
        for index in range(len(part.rows)):
            (lines, begin), (lines_after, end) = part.begin(index), part.before(index + 1)
            if end - begin > self.limit + _END_BYTES:
                self._long_row = (lines_after - lines, end - begin) if end - begin <= self._longest_whole else None
                return attrs.evolve(part, rows=part.rows[:index]), self._too_long(lines)
        return None

    @property
    def _is_too_long_already(self) -> bool:
        """Whether what is held is the beginning of a row that is too long, however it goes on; blank lines are none."""
        most = self._longest_whole
        return self.limit > 0 and len(self._rest) > most and len(self._rest.lstrip(b"\r\n")) > most

    @property
    def _longest_whole(self) -> int:
        """As many bytes of a row are held while its end is looked for, so that it is the same for every way to read."""
        return self.limit + _END_BYTES + (_BEYOND_BYTES if self.tolerant else 0)

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
