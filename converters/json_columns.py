"""What stands ready for orjson: columns of values, changed where Java would write them otherwise.

A column is looked at as a whole. Most are what orjson writes as Java would, and stay as they are; what it would write
otherwise is replaced by what it will write right.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import attrs

from headrace.converters.float32 import floats32
from headrace.converters.json_schema import SchemaWriter, logical_value, plain_decimal, unscaled_bytes
from headrace.framework.connect_text import java_double
from headrace.framework.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema

__all__ = ["Column", "Prepare", "Preparing"]

Column = Sequence[Any]
Prepare = Callable[[Column], Column | None]

_PLAIN = {
    "string": str,
    "boolean": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
}
_LOGICAL = {DATE, DECIMAL, TIME, TIMESTAMP}
_SMALLEST_PLAIN, _PLAIN_BELOW = 1e-3, 1e7


@attrs.frozen
class Preparing:
    """For each schema, what looks at a column of its values.

    It returns the column itself, a changed copy, or None where it finds something that it does not know.
    """

    writer: SchemaWriter
    fragment: Callable[[str], Any]

    def of(self, schema: Schema | None) -> Prepare:
        """What looks at a column of values of a schema."""
        if schema is None:
            return _unknown
        prepare = self._of_type(schema)
        if not schema.optional or (schema.default is not None and self.writer.nulls_to_defaults):
            return prepare
        kind = None if schema.name in _LOGICAL else _PLAIN.get(schema.type)
        return _with_nulls(prepare) if kind is None else _only_with_nulls(kind)

    def struct(self, schema: Schema) -> Prepare:
        """What looks at a column of structs, by the columns of their fields."""
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
                return lambda column: self._floats(floats32(column)) if _only(float, column) else None
            case "bytes":
                return _base64
        kind = _PLAIN.get(schema.type)
        return _unknown if kind is None else _only_plain(kind)

    def _floats(self, column: Column) -> Column | None:
        if not _only(float, column):
            return None
        if min(column) >= _SMALLEST_PLAIN and max(column) < _PLAIN_BELOW and math.isfinite(sum(column)):
            return column
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


def _each(inner: Sequence[Prepare], given: Sequence[Column]) -> list[Column] | None:
    ready: list[Column] = []
    for prepare, column in zip(inner, given, strict=True):
        found = prepare(column)
        if found is None:
            return None
        ready.append(found)
    return ready


def _only_plain(kind: type) -> Prepare:
    return lambda column: column if _only(kind, column) else None


def _only_with_nulls(kind: type) -> Prepare:
    kinds = {kind, type(None)}
    return lambda column: column if set(map(type, column)) <= kinds else None


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
