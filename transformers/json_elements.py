"""Where the elements of a JSON array begin and end, found while the bytes come in."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate

import attrs

from headrace.framework.errors import DataError, Where
from headrace.framework.stage import Stage
from headrace.transformers.base import Position
from headrace.transformers.json_check import first_bad, scan
from headrace.transformers.lines import BOM
from headrace.transformers.seeking import Cursor

__all__ = ["AFTER_ELEMENT", "END", "Elements", "Found"]

AFTER_ELEMENT, END = 1, 2
"""What `Position.inside` says: behind an element of the array, or behind everything."""

_BEGINNING, _FIRST = 3, 4

_READ_BYTES = 256 * 1024
_LONGEST_TOKEN = 12
_LITTLE = 1024
_SURE_ENDS = frozenset('"}]')
_MORE_OF_A_NUMBER = re.compile(r"[-+.0-9eE]*+\Z")
_SPACE = re.compile(r"[ \t\n\r]*+")
_SEPARATOR = re.compile(r"[ \t\n\r]*+([\],]?)[ \t\n\r]*+")


_QUICK_DEPTH = 6


def _within(depth: int) -> bytes:
    """A pattern for whatever is between two brackets, in which others are nested no deeper than that."""
    inner = rb'[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+"' + (b"|" + _brackets(depth - 1) if depth else b"")
    return rb"(?:" + inner + rb")*+"


def _brackets(depth: int) -> bytes:
    """A pattern for an object or an array, whatever is in it."""
    return rb"[{\[]" + _within(depth) + rb"[}\]]"


_SEEN = re.compile(
    rb'(?:\{%b\}|\[%b\]|[^\s,\[\]{}"]++)(?=[ \t\n\r]*+(?:[,\]]|\Z))' % (_within(_QUICK_DEPTH), _within(_QUICK_DEPTH)),
    re.DOTALL,
)
"""What may be an element by its brackets, or as a word, and is told apart by what follows; none is longer."""

_NEXT_OBJECT = re.compile(rb'([ \t\n\r]*+,[ \t\n\r]*+)(\{[ \t\n\r]*+"[^"\\]*+"[ \t\n\r]*+:)')
_QUICK = re.compile(rb"[ \t\n\r]*+,[ \t\n\r]*+(" + _brackets(_QUICK_DEPTH) + rb")(?=[ \t\n\r]*+[,\]])", re.DOTALL)


@attrs.define
class Found:
    """Elements that one read completed, and where each ends in `data`, whose first byte is the object's `byte`.

    Reading would go on at `before` for the first of them; `inside` is what a place behind any of them says. Only
    those in `checked` are known to be JSON.
    """

    data: bytes
    byte: int
    before: Position
    inside: int = AFTER_ELEMENT
    values: list[bytes] = attrs.field(factory=list)
    ends: list[int] = attrs.field(factory=list)
    checked: range = range(0)

    def take(self, start: int, end: int) -> None:
        """Add the one that lies there."""
        self.values.append(self.data[start:end])
        self.ends.append(end)

    def take_checked(self, values: list[bytes], ends: list[int]) -> None:
        """Add some that are known to be JSON."""
        first = len(self.ends)
        found = range(self.checked.start if self.checked.stop == first else first, first + len(values))
        self.checked = max(self.checked, found, key=len)
        self.values += values
        self.ends += ends

    def after(self, count: int) -> Position:
        """The place right behind the first `count` of them."""
        if not count:
            return self.before
        return Position(records=self.before.records + count, byte=self.byte + self.ends[count - 1], inside=self.inside)


@attrs.define
class Elements:
    """Reads an object, or what is left of one, and finds the records in it.

    `cursor` stands at `start`, whose `inside` says what comes next. An element of more than `limit` bytes is a
    `DataError`; 0 is no limit.
    """

    cursor: Cursor
    limit: int
    start: Position = attrs.field(factory=Position)
    tolerant: bool = False
    """Whether what is not JSON is taken for an element as well, where one can see its end."""

    _state: int = attrs.field(init=False)
    _before: Position = attrs.field(init=False)
    _data: bytes = attrs.field(default=b"", init=False)
    _text: str = attrs.field(default="", init=False)
    _at: int = attrs.field(default=0, init=False)
    _byte: int = attrs.field(init=False)
    _looked_at: int = attrs.field(init=False)
    _unseen: DataError | None = attrs.field(default=None, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin at `start`."""
        self._before = self.start
        self._byte = self._looked_at = self.start.byte
        self._state = self.start.inside or _BEGINNING

    def found(self) -> Iterator[Found]:
        """The records, as they are completed. Where the stream ends the JSON text must end as well."""
        while not self._ended:
            self._fill()
            part = Found(self._data, self._byte, self._before)
            error = self._taken(part)
            if part.ends:
                self._before = part.after(len(part.ends))
                yield part
            if error:
                raise error
            if self._failure:
                raise self._failure
        if self._state != END and self._byte + len(self._data):
            raise self._error("the object ends in the middle of its JSON: put a whole copy of it in its place")

    def _fill(self) -> None:
        """Drop what is done, and read on; what is held doubles, so that a long value is not scanned too often."""
        rest = self._data[self._at :]
        if self.limit and len(rest) > self.limit:
            raise self._unseen or self._too_long()
        self._byte += self._at
        pieces, wanted = [rest], max(1, len(rest))
        try:
            while wanted > 0 and not self._ended:
                piece = self.cursor.read(_READ_BYTES)
                self._ended = not piece
                pieces.append(piece)
                wanted -= len(piece)
        except Exception as error:  # noqa: BLE001 - whatever it is: what came before it is given out first
            self._failure = error
        self._data = b"".join(pieces)
        # A character for a byte: what matters to JSON's form is ASCII.
        self._text = self._data.decode("latin-1")
        self._at = len(BOM) if self._state == _BEGINNING and self._data.startswith(BOM) else 0

    def _taken(self, part: Found) -> DataError | None:
        steps = {_BEGINNING: self._begin, _FIRST: self._first, AFTER_ELEMENT: self._next, END: self._finish}
        try:
            while steps[self._state](part):
                pass
        except DataError as error:
            return error
        return None

    # Each step says whether it got on; if not, it needs more bytes.

    def _begin(self, part: Found) -> bool:
        at = self._after_space(self._at)
        if at == len(self._text):
            return False
        if self._text[at] != "[":
            return self._document(part, at)
        self._state, self._at = _FIRST, at + 1
        return True

    def _document(self, part: Found, at: int) -> bool:
        end = self._end_of(at, part)
        if end is None:
            return False
        rest = self._after_space(end)
        if rest < len(self._text):
            raise self._bad("something follows the document (a value on each line is input.format=jsonl)", rest, part)
        if not self._ended:
            return False
        part.take(at, end)
        part.inside = self._state = END
        return False

    def _first(self, part: Found) -> bool:
        at = self._after_space(self._at)
        if at == len(self._text):
            return False
        if self._text[at] != "]":
            return self._element(part, at)
        self._state, self._at = END, at + 1
        return True

    def _next(self, part: Found) -> bool:
        while self._take_alike(part):
            pass
        self._take_many(part)
        match = _SEPARATOR.match(self._text, self._at)
        assert match is not None  # noqa: S101 - it matches the empty text, too
        if match[1] == "]":
            self._state, self._at = END, match.end(1)
            return True
        if match.end() == len(self._text):
            return False
        if not match[1]:
            raise self._bad("an element is followed by neither a comma nor the array's end", match.end(), part)
        return self._element(part, match.end())

    def _take_alike(self, part: Found) -> bool:
        """Take objects that begin as the next one does, cut apart where such a beginning follows an object's end.

        That may be inside of an element as well. But pieces that are JSON, each of them, with commas between them, are
        the elements: there is no second way to read them. So they are checked here, and from the first bad one on all
        is left where it is. It looks twice as far ahead as it has got on since it looked before, so that looking in
        vain costs little; whether it has taken all that it saw, and sees more, is what it says.
        """
        end = self._at + 2 * (self._byte + self._at - self._looked_at) + _LITTLE
        self._looked_at = self._byte + self._at
        following = _NEXT_OBJECT.match(self._data, self._at)
        if following is None:
            return False
        start, body = following.span(2)
        cut = b"}" + following[0]
        last = self._data.rfind(cut, body, end)
        if last < 0:
            return False
        sizes = [len(piece) + len(cut) for piece in self._data[body:last].split(cut)]
        starts = list(accumulate(sizes, initial=start))
        gap = len(following[1])
        ends = [after - gap for after in starts[1:]]
        values = [self._data[at:end] for at, end in zip(starts, ends, strict=False)]
        bad = first_bad(values)
        good = min(len(values) if bad is None else bad[0], self._first_too_long(values))
        part.take_checked(values[:good], ends[:good])
        self._at = ends[good - 1] if good else self._at
        return good == len(values) and end < len(self._data)

    def _take_many(self, part: Found) -> None:
        """Take what is an object or an array by its brackets alone; what is not so plain is left where it is."""
        data, at, before = self._data, self._at, len(part.ends)
        while match := _QUICK.match(data, at):
            start, at = match.span(1)
            part.take(start, at)
        good = before + self._first_too_long(part.values[before:])
        if good < len(part.ends):
            del part.values[good:], part.ends[good:]
            raise self._too_long(part)
        self._at = at

    def _first_too_long(self, values: list[bytes]) -> int:
        """The index of the first of these that is longer than it may be, or their number."""
        if not self.limit or len(self._data) <= self.limit:
            return len(values)
        return next((index for index, value in enumerate(values) if len(value) > self.limit), len(values))

    def _element(self, part: Found, at: int) -> bool:
        end = self._end_of(at, part)
        if end is None:
            return False
        part.take(at, end)
        self._state, self._at = AFTER_ELEMENT, end
        return True

    def _finish(self, part: Found) -> bool:
        self._at = self._after_space(self._at)
        if self._at < len(self._text):
            raise self._bad("something follows the array", self._at, part)
        return False

    def _end_of(self, at: int, part: Found) -> int | None:
        text = self._text
        self._unseen = None
        try:
            end: int | None = scan(text, at)
        except ValueError as error:
            if self._may_be_cut(error):
                return None
            place = error.pos if isinstance(error, json.JSONDecodeError) else at
            bad = self._bad(f"not a JSON value ({getattr(error, 'msg', error)})", place, part)
            bad.__cause__ = error
            end = self._seen_end(at, bad)
        if end is None:
            return None
        if self.limit and end - at > self.limit:
            raise self._too_long(part)
        may_go_on = not self._ended and text[end - 1] not in _SURE_ENDS and _MORE_OF_A_NUMBER.match(text, end)
        return None if may_go_on else end

    def _seen_end(self, at: int, bad: DataError) -> int | None:
        """The end of what is not JSON; None where more bytes may show it. If nothing does, it is raised as `bad`."""
        if not self.tolerant:
            raise bad
        seen = _SEEN.match(self._data, at)
        if self._ended:
            if seen is None:
                raise bad
            return seen.end()
        if seen is None or self._after_space(seen.end()) == len(self._text):
            self._unseen = bad
            return None
        return seen.end()

    def _may_be_cut(self, error: ValueError) -> bool:
        if self._ended or not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_TOKEN

    def _after_space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _too_long(self, part: Found | None = None) -> DataError:
        return self._error(
            f"the record has more than {self.limit} bytes: set max.record.bytes higher if that is meant", part
        )

    def _bad(self, what: str, at: int, part: Found) -> DataError:
        return self._error(f"{what} at byte {part.byte + at + 1}: mend the object", part)

    def _error(self, message: str, part: Found | None = None) -> DataError:
        number = self._before.records + 1 + (len(part.ends) if part else 0)
        return DataError(message, Where(stage=Stage.TRANSFORM, position=f"record {number}"))
