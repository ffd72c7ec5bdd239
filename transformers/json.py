"""`json`: an object is one JSON document, or an array whose elements are the records."""

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.schema import JSON_TEXT
from headrace.framework.stage import Stage
from headrace.transformers.again import Opener, all_of, element_of
from headrace.transformers.base import ByteStream, Position, Rejected, Transformer, ValueBatch
from headrace.transformers.json_check import first_bad
from headrace.transformers.json_compact import compacted
from headrace.transformers.json_elements import AFTER_ELEMENT, END, Elements, Found
from headrace.transformers.options import FormatOptions
from headrace.transformers.seeking import Cursor

__all__ = ["JsonTransformer"]

_MOST_VALUES = 5000
_FEW_VALUES = 16


@attrs.define
class JsonTransformer(Transformer):
    """One document as one record, or the elements of an array as records, each given out as soon as it is complete.

    Values keep their digits and the order of their members; white space between tokens is taken off, as Kafka Connect
    writes JSON. Memory is that of the largest element, or of the document, up to `max.record.bytes`; of a document
    nothing is given out before it is known that nothing follows it. Elements are checked as the lines of `jsonl` are.

    Reading goes on behind any element, at its byte. With `errors.tolerance=all` an element that is none is a rejected
    piece, where brackets or a comma show its end.
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
            elements, skip = Elements(cursor, limit, start, self.options.tolerant), 0
        else:
            elements, skip = Elements(cursor, limit, Position(), self.options.tolerant), start.records
        for part in elements.found():
            first = min(skip, len(part.ends))
            skip -= first
            yield from _checked(part, first, tolerant=self.options.tolerant)

    @override
    def again(self, open_content: Opener, piece: Rejected, *, same: bool, same_size: bool) -> Iterator[ValueBatch]:
        data = element_of(open_content(), piece) if same_size and not same else None
        if data is not None:
            with contextlib.suppress(DataError):  # what is no element there may be elsewhere, by its number
                yield from list(all_of(self.batches(io.BytesIO(b"[%b]" % data), Position()), piece.count))
                return
        yield from super().again(open_content, piece, same=same, same_size=same_size)


def _checked(part: Found, at: int, *, tolerant: bool) -> Iterator[ValueBatch]:
    """The values of elements from the one at `at` on: up to one that is none, or with each such as a piece."""
    most = _MOST_VALUES
    while at < len(part.ends):
        values = part.values[at : at + most]
        bad = _first_bad(values, part.checked, at)
        good = values if bad is None else values[: bad[0]]
        if good:
            yield ValueBatch(schema=JSON_TEXT, values=compacted(good), position_at=partial(_after, part, at))
        at, most = at + len(good), min(2 * most, _MOST_VALUES)
        if bad is None:
            continue
        where = Where(stage=Stage.TRANSFORM, position=f"record {part.after(at).records + 1}")
        error = DataError(f"{bad[1]}: mend the record", where)
        if not tolerant:
            raise error from bad[1]
        error.__cause__ = bad[1]
        yield _rejected(part, at, values[bad[0]], error)
        at, most = at + 1, _FEW_VALUES


def _rejected(part: Found, at: int, raw: bytes, error: DataError) -> ValueBatch:
    before = part.after(at)
    start = part.byte + part.ends[at] - len(raw)
    piece = Rejected(
        error=error, number=before.records + 1, before=before, start=start, end=part.byte + part.ends[at], raw=raw
    )
    return piece.batch(part.after(at + 1))


def _first_bad(values: Sequence[bytes], checked: range, first: int) -> tuple[int, ValueError] | None:
    """The first that is no JSON; those that are checked, the first of all having the number `first`, are."""
    known = range(max(0, checked.start - first), max(0, checked.stop - first))
    bad = first_bad(values[: known.start])
    if bad is None and (rest := values[known.stop :]) and (found := first_bad(rest)):
        bad = known.stop + found[0], found[1]
    return bad


def _after(part: Found, first: int, count: int) -> Position:
    return part.after(first + count)
