"""Many structs of one schema as JSON, column by column: the quick way to the bytes that `json_schema` writes.

A column is looked at as a whole. Most are what orjson writes as Java would, and stay as they are; what it would write
otherwise is replaced by what it will write right. Where something is not as its schema says, nothing is written here,
and the slow way says what it is.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import attrs

from headrace.converters.json_schema import SchemaWriter, float32, logical_value, plain_decimal, unscaled_bytes
from headrace.converters.json_text import quick_dumps
from headrace.framework.connect_text import java_double
from headrace.framework.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema

__all__ = ["Rows", "rows_writer"]

Column = Sequence[Any]
Prepare = Callable[[Column], Column | None]

_NULL = type(None)
_PLAIN = {
    "string": str,
    "boolean": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
}
_SMALLEST_PLAIN, _PLAIN_BELOW = 1e-3, 1e7
_AFTER_TEXT = {b",", b":", b"}", b"]", b'"', b"\\"}
_BEYOND_ONE_UNIT = tuple(bytes([byte]) for byte in range(0xF0, 0xF5))
_LENIENT = (TypeError, ValueError, AttributeError)


def rows_writer(schema: Schema, writer: SchemaWriter) -> "Rows | None":
    """What writes structs of a schema quickly; None where there is no quick way."""
    dumps = quick_dumps()
    if dumps is None or schema.type != "struct" or schema.name in {DATE, TIME, TIMESTAMP, DECIMAL}:
        return None
    import orjson  # noqa: PLC0415 - optional: it is there, as has just been seen

    options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
    columns = _Columns(writer, orjson.Fragment)
    return Rows(
        dumps=lambda value: orjson.dumps(value, option=options),
        prepare=columns.struct(schema),
        head=b"{%b:" % orjson.dumps(schema.fields[0].name) if schema.fields else b"",
        schema=schema,
        writer=writer,
    )


@attrs.frozen(kw_only=True)
class Rows:
    """Writes many values of one schema, each of which begins with `head`."""

    _dumps: Callable[[Any], bytes]
    _prepare: Prepare
    _head: bytes
    _schema: Schema
    _writer: SchemaWriter

    def texts(self, values: Sequence[Any]) -> list[bytes] | None:
        """The JSON of each value, none of which is None; or None where the slow way has to be gone."""
        try:
            ready = self._prepare(values)
            whole = None if ready is None else self._dumps(list(ready))
        except _LENIENT:
            return None
        if ready is None or whole is None:
            return None
        texts = self._apart(whole, len(values)) or list(map(self._dumps, ready))
        if not _is_not_javas(whole):
            return texts
        return [
            self._writer.value(self._schema, value).encode() if _is_not_javas(text) else text
            for text, value in zip(texts, values, strict=True)
        ]

    def _apart(self, whole: bytes, count: int) -> list[bytes] | None:
        """An array's text as those of its elements; None where that cannot be told.

        A call for each element would cost more than all the writing. What stands between two of them may stand inside
        of one as well, but then there are too many pieces. It cannot stand in a text: the quotation mark in it would
        have to end that text, and what comes behind it would have to be a name.
        """
        if self._head[2:3] in _AFTER_TEXT:
            return None
        pieces = whole[1 + len(self._head) : -2].split(b"}," + self._head)
        return [b"%b%b}" % (self._head, piece) for piece in pieces] if len(pieces) == count else None


@attrs.frozen
class _Columns:
    """For each schema, what looks at a column of its values.

    It returns the column itself, a changed copy, or None where it finds something that it does not know.
    """

    writer: SchemaWriter
    fragment: Callable[[str], Any]

    def of(self, schema: Schema | None) -> Prepare:
        if schema is None:
            return _unknown
        prepare = self._of_type(schema)
        if schema.optional and not (schema.default is not None and self.writer.nulls_to_defaults):
            return _with_nulls(prepare)
        return prepare

    def struct(self, schema: Schema) -> Prepare:
        names = tuple(one.name for one in schema.fields)
        inner = tuple(self.of(one.schema) for one in schema.fields)

        def prepare(column: Column) -> Column | None:
            if set(map(type, column)) != {dict}:
                return None
            ordered = all(map(names.__eq__, map(tuple, column)))
            rows = map(dict.values, column) if ordered else [[row.get(name) for name in names] for row in column]
            given = list(zip(*rows, strict=True))
            ready = _each(inner, given)
            if ready is None or (ordered and all(map(_is, ready, given))):
                return None if ready is None else column
            return [dict(zip(names, row, strict=True)) for row in zip(*ready, strict=True)]

        return prepare if names else _unknown

    def _of_type(self, schema: Schema) -> Prepare:  # noqa: PLR0911 - one for each kind of schema
        if schema.name == DECIMAL:
            return self._decimal(schema)
        if schema.name in {DATE, TIME, TIMESTAMP}:
            name = schema.name
            return lambda column: column if _only(int, column) else [logical_value(name, value) for value in column]
        match schema.type:
            case "struct":
                return self.struct(schema)
            case "array":
                return _lists(self.of(schema.values))
            case "map" if schema.keys == Schema("string"):
                return _maps(self.of(schema.values))
            case "float64":
                return self._floats
            case "float32":
                return lambda column: self._floats(list(map(float32, column))) if _only(float, column) else None
            case "bytes":
                return _base64
        kind = _PLAIN.get(schema.type)
        return _unknown if kind is None else lambda column: column if _only(kind, column) else None

    def _floats(self, column: Column) -> Column | None:
        if not _only(float, column):
            return None
        sizes = list(map(abs, filter(None, column)))
        if not sizes or (min(sizes) >= _SMALLEST_PLAIN and max(sizes) < _PLAIN_BELOW and math.isfinite(sum(sizes))):
            return column
        if not all(map(math.isfinite, sizes)):
            return None
        return [
            value if value == 0 or _SMALLEST_PLAIN <= abs(value) < _PLAIN_BELOW else self.fragment(java_double(value))
            for value in column
        ]

    def _decimal(self, schema: Schema) -> Prepare:
        if self.writer.numeric_decimals:
            return lambda column: [self.fragment(plain_decimal(schema, value)) for value in column]
        return lambda column: [base64.b64encode(unscaled_bytes(schema, value)).decode() for value in column]


def _is_not_javas(text: bytes) -> bool:
    """Whether orjson has written something that Java escapes otherwise."""
    if b"\\" in text and b"\\u00" in text:
        return True
    return not text.isascii() and any(byte in text for byte in _BEYOND_ONE_UNIT)


def _each(inner: Sequence[Prepare], given: Sequence[Column]) -> list[Column] | None:
    ready: list[Column] = []
    for prepare, column in zip(inner, given, strict=True):
        found = prepare(column)
        if found is None:
            return None
        ready.append(found)
    return ready


def _with_nulls(prepare: Prepare) -> Prepare:
    def with_nulls(column: Column) -> Column | None:
        if None not in column:
            return prepare(column)
        given = [value for value in column if value is not None]
        ready = prepare(given) if given else given
        if ready is None or ready is given:
            return None if ready is None else column
        rest = iter(ready)
        return [None if value is None else next(rest) for value in column]

    return with_nulls


def _lists(prepare: Prepare) -> Prepare:
    def lists(column: Column) -> Column | None:
        if not _only(list, column):
            return None
        given = list(chain.from_iterable(column))
        ready = prepare(given) if given else given
        if ready is None or ready is given:
            return None if ready is None else column
        rest = iter(ready)
        return [list(islice(rest, len(value))) for value in column]

    return lists


def _maps(prepare: Prepare) -> Prepare:
    def maps(column: Column) -> Column | None:
        if not _only(dict, column) or not _only(str, chain.from_iterable(column)):
            return None
        given = list(chain.from_iterable(map(dict.values, column)))
        ready = prepare(given) if given else given
        if ready is None or ready is given:
            return None if ready is None else column
        rest = iter(ready)
        return [_renamed(value, rest) for value in column]

    return maps


def _renamed(value: Mapping[str, Any], rest: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(value, rest, strict=False))


def _base64(column: Column) -> Column | None:
    return [base64.b64encode(value).decode() for value in column] if _only(bytes, column) else None


def _only(kind: type, column: Iterable[Any]) -> bool:
    return set(map(type, column)) <= {kind}


def _is(one: object, other: object) -> bool:
    return one is other


def _unknown(column: Column) -> Column | None:  # noqa: ARG001 - like the others
    return None
