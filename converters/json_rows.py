"""Many structs or maps of one schema as JSON, column by column: the quick way to the bytes that `json_schema` writes.

orjson writes each column at one go, as an array, whose text is then cut into those of the values: a call for each of
them would cost more than all the writing. Maps have no fields in common: they are one column. Where a column is not
what its schema says, nothing is written here, and the slow way says what is wrong with it.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Literal

import attrs

from headrace.converters.json_columns import Column, Prepare, Preparing
from headrace.converters.json_schema import SchemaWriter
from headrace.converters.json_text import quick_dumps, to_json
from headrace.framework.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema
from headrace.framework.table import Table, Texts

__all__ = ["Maps", "Rows", "rows_writer"]

Dumps = Callable[[Any], bytes]

_NUMBERS = {"boolean", "int8", "int16", "int32", "int64", "float32", "float64", DATE, TIME, TIMESTAMP}
_TEXTS = {"string", "bytes"}
_TEXT_OR_NULL = re.compile(rb'"[^"]*+"|null')
_BEYOND_ONE_UNIT = tuple(bytes([byte]) for byte in range(0xF0, 0xF5))
_LENIENT = (TypeError, ValueError, AttributeError)


def rows_writer(schema: Schema, writer: SchemaWriter, before: bytes = b"", after: bytes = b"") -> "Rows | Maps | None":
    """What writes structs of a schema, or maps with texts as keys, quickly; None where there is no quick way.

    The bytes `before` and `after` go around each.
    """
    is_map = schema.type == "map" and schema.keys == Schema("string")
    is_quick = is_map or (schema.type == "struct" and schema.fields)
    if quick_dumps() is None or not is_quick or schema.name in {DATE, TIME, TIMESTAMP, DECIMAL}:
        return None
    import orjson  # noqa: PLC0415 - optional: it is there, as has just been seen

    options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS

    strictly: Dumps = partial(orjson.dumps, option=options)
    preparing = Preparing(writer, orjson.Fragment)
    if is_map:
        return Maps(_Field(schema, "other", strictly, preparing.of(schema), writer), before, after)
    return Rows(
        names=tuple(one.name for one in schema.fields),
        fields=tuple(
            _Field(one.schema, _kind(one.schema, writer), strictly, preparing.of(one.schema), writer)
            for one in schema.fields
        ),
        heads=tuple(_literally(to_json(one.name) + b":") for one in schema.fields),
        before=_literally(before + b"{"),
        after=_literally(b"}" + after),
    )


@attrs.frozen(kw_only=True)
class Rows:
    """Writes many values of one schema."""

    names: tuple[str, ...]
    fields: tuple["_Field", ...]
    heads: tuple[bytes, ...]
    before: bytes
    after: bytes

    def texts(self, values: Sequence[Any]) -> list[bytes] | None:
        """The JSON of each value; None where the slow way has to be gone."""
        columns = self._columns(values)
        if columns is None:
            return None
        try:
            marks, texts = zip(*map(_Field.texts, self.fields, columns), strict=True)
        except _LENIENT:
            return None
        return list(map(self._frame(marks).__mod__, zip(*texts, strict=True)))

    def _frame(self, marks: Sequence[bytes]) -> bytes:
        """What is the same in all of them, with `%b` where a field's text goes."""
        parts = (head + mark + b"%b" + mark for head, mark in zip(self.heads, marks, strict=True))
        return self.before + b",".join(parts) + self.after

    def _columns(self, values: Sequence[Any]) -> Sequence[Column] | None:
        if isinstance(values, Table):
            return values.columns if values.names == self.names else None
        if set(map(type, values)) != {dict}:
            return None
        try:
            return [list(map(itemgetter(name), values)) for name in self.names]
        except KeyError:
            return [[value.get(name) for value in values] for name in self.names]


@attrs.frozen
class Maps:
    """Writes many maps of one schema."""

    _whole: "_Field"
    _before: bytes
    _after: bytes

    def texts(self, values: Sequence[Any]) -> list[bytes] | None:
        """The JSON of each value; None where the slow way has to be gone."""
        if set(map(type, values)) != {dict}:
            return None
        try:
            _, texts = self._whole.texts(values)
        except _LENIENT:
            return None
        if not (self._before or self._after):
            return list(texts)
        return [self._before + text + self._after for text in texts]


@attrs.frozen
class _Field:
    """Writes a column of values of one schema."""

    schema: Schema
    kind: Literal["number", "text", "other"]
    dumps: Dumps
    prepare: Prepare
    writer: SchemaWriter

    def texts(self, column: Column) -> tuple[bytes, Sequence[bytes]]:
        """The JSON of each value, and the mark that belongs around each. TypeError or ValueError where one has none."""
        if isinstance(column, Texts) and self.schema.type == "string":
            return b'"', column.raw
        try:
            ready = self.prepare(column)
            whole = None if ready is None else self.dumps(ready if type(ready) is list else list(ready))
        except _LENIENT:
            ready = whole = None
        if ready is None or whole is None:
            return b"", [self._slowly(value) for value in column]
        if self.kind == "number":  # or true, false, null: there is a comma in none of them
            return b"", whole[1:-1].split(b",")
        if _is_not_javas(whole):
            texts = zip(map(self.dumps, ready), column, strict=True)
            return b"", [self._slowly(value) if _is_not_javas(text) else text for text, value in texts]
        if self.kind == "text" and b'\\"' not in whole:
            return _cut_apart(whole)
        return b"", list(map(self.dumps, ready))

    def _slowly(self, value: Any) -> bytes:
        return self.writer.value(self.schema, value).encode()


def _cut_apart(whole: bytes) -> tuple[bytes, Sequence[bytes]]:
    """The texts and nulls of an array in which quotation marks only begin texts and end them, and the marks for each.

    The first one behind a beginning is that text's end.
    """
    if b"null" not in whole:
        return b'"', whole[2:-2].split(b'","')
    return b"", _TEXT_OR_NULL.findall(whole)


def _kind(schema: Schema, writer: SchemaWriter) -> Literal["number", "text", "other"]:
    """What stands in JSON for the values of a schema, null aside."""
    if schema.name == DECIMAL:
        return "number" if writer.numeric_decimals else "text"
    if schema.name in _NUMBERS or schema.type in _NUMBERS:
        return "number"
    return "text" if schema.type in _TEXTS else "other"


def _is_not_javas(text: bytes) -> bool:
    """Whether orjson has written something that Java escapes otherwise."""
    if b"\\" in text and b"\\u00" in text:
        return True
    return not text.isascii() and any(byte in text for byte in _BEYOND_ONE_UNIT)


def _literally(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")
