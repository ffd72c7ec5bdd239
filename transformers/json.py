"""`json`: an object is one JSON document, or an array whose elements are the records."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.schema import JSON_TEXT
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Position, Transformer, ValueBatch
from headrace.transformers.json_check import first_bad, quick_loads
from headrace.transformers.json_elements import AFTER_ELEMENT, END, Elements, Found
from headrace.transformers.options import FormatOptions
from headrace.transformers.seeking import Cursor

__all__ = ["JsonTransformer"]

_MOST_VALUES = 5000
_SPACE = re.compile(rb'("(?:[^"\\]++|\\.)*+")|[ \t\r\n]++', re.DOTALL)
_SPACES = b" \n\t\r"


@attrs.define
class JsonTransformer(Transformer):
    """One document as one record, or the elements of an array as records, each given out as soon as it is complete.

    Values keep their digits and the order of their members; white space between tokens is taken off, as Kafka Connect
    writes JSON. Memory is that of the largest element, or of the document, up to `max.record.bytes`; of a document
    nothing is given out before it is known that nothing follows it. Elements are checked as the lines of `jsonl` are.

    Reading goes on behind any element, at its byte.
    """

    config_class = FormatOptions

    options: FormatOptions = attrs.field(factory=FormatOptions, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = FormatOptions.of(props)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        cursor = Cursor(stream)
        limit = self.options.max_record_bytes
        if start.byte and start.inside in {AFTER_ELEMENT, END}:
            cursor.go_to(start.byte)
            elements, skip = Elements(cursor, limit, start), 0
        else:
            elements, skip = Elements(cursor, limit), start.records
        for part in elements.found():
            first = min(skip, len(part.ends))
            skip -= first
            for at in range(first, len(part.ends), _MOST_VALUES):
                yield from _checked(part, at)


def _checked(part: Found, first: int) -> Iterator[ValueBatch]:
    """The values of elements from the `first` on, up to one that is none."""
    data = part.data
    places = zip(part.starts[first : first + _MOST_VALUES], part.ends[first:], strict=False)
    values = [data[start:end] for start, end in places]
    bad = first_bad(values)
    good = values if bad is None else values[: bad[0]]
    if good:
        yield ValueBatch(schema=JSON_TEXT, values=list(map(_compact, good)), position_at=partial(_after, part, first))
    if bad is not None:
        where = Where(stage=Stage.TRANSFORM, position=f"record {part.after(first + bad[0]).records + 1}")
        raise DataError(f"{bad[1]}: mend the record", where) from bad[1]


def _after(part: Found, first: int, count: int) -> Position:
    return part.after(first + count)


def _compact(value: bytes) -> bytes:
    """A value without the white space between its tokens."""
    tokens = value.translate(None, _SPACES)
    if len(tokens) == len(value):
        return value
    rewritten = _rewritten(value)
    # The same but for white space: then no digit and no escape has changed, and no member has got lost.
    if rewritten is not None and rewritten.translate(None, _SPACES) == tokens:
        return rewritten
    return _SPACE.sub(rb"\1", value)


def _rewritten(value: bytes) -> bytes | None:
    loads, dumps = quick_loads(), _quick_dumps()
    if loads is None or dumps is None:
        return None
    try:
        return dumps(loads(value))
    except (ValueError, TypeError):
        return None


@cache
def _quick_dumps() -> Callable[[Any], bytes] | None:
    try:
        import orjson  # noqa: PLC0415 - optional: it makes this quicker, nothing else
    except ImportError:
        return None
    return orjson.dumps
