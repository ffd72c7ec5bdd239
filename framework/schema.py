"""What a value is: its schema, and the two together."""

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["BYTES", "JSON_TEXT", "STRING", "Field", "Schema", "SchemaAndValue"]


@attrs.frozen
class Schema:
    """The type of a value, in Kafka Connect's terms.

    `type` is one of `boolean`, `int8`, `int16`, `int32`, `int64`, `float32`, `float64`, `string`, `bytes`, `array`,
    `map`, `struct`. `name` is set for named and logical types. A value without a schema has None in its place.
    """

    type: str
    name: str | None = attrs.field(default=None, kw_only=True)
    optional: bool = attrs.field(default=False, kw_only=True)
    version: int | None = attrs.field(default=None, kw_only=True)
    doc: str | None = attrs.field(default=None, kw_only=True)
    default: Any = attrs.field(default=None, kw_only=True)
    fields: tuple["Field", ...] = attrs.field(default=(), kw_only=True)
    keys: "Schema | None" = attrs.field(default=None, kw_only=True)
    values: "Schema | None" = attrs.field(default=None, kw_only=True)
    parameters: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen
class Field:
    """One field of a struct."""

    name: str
    schema: Schema


@attrs.frozen
class SchemaAndValue:
    """A value and what it is; `schema` is None where nothing is known but the value itself."""

    schema: Schema | None
    value: Any


BYTES = Schema("bytes")
STRING = Schema("string")

JSON_TEXT = Schema("bytes", name="headrace.JsonText")
"""Bytes that are known to be one JSON value: the `json` converter passes them on as they are, digits, spaces and
member order included, and whoever wants the value parses it."""
