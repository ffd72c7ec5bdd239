"""What a value is: its schema, and the two together."""

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = [
    "BYTES",
    "DATE",
    "DECIMAL",
    "JSON_TEXT",
    "MICRO_TIME",
    "MICRO_TIMESTAMP",
    "NANO_TIME",
    "NANO_TIMESTAMP",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "UUID",
    "Field",
    "Schema",
    "SchemaAndValue",
    "decimal_schema",
    "logical_schema",
]

_CONNECT = "org.apache.kafka.connect.data"

DECIMAL = f"{_CONNECT}.Decimal"
DATE = f"{_CONNECT}.Date"
TIME = f"{_CONNECT}.Time"
TIMESTAMP = f"{_CONNECT}.Timestamp"

MICRO_TIME = "io.debezium.time.MicroTime"
NANO_TIME = "io.debezium.time.NanoTime"
MICRO_TIMESTAMP = "io.debezium.time.MicroTimestamp"
NANO_TIMESTAMP = "io.debezium.time.NanoTimestamp"
UUID = "io.debezium.data.Uuid"

_LOGICAL = {
    DATE: "int32",
    TIME: "int32",
    TIMESTAMP: "int64",
    MICRO_TIME: "int64",
    NANO_TIME: "int64",
    MICRO_TIMESTAMP: "int64",
    NANO_TIMESTAMP: "int64",
    UUID: "string",
}


@attrs.frozen
class Schema:
    """The type of a value, in Kafka Connect's terms.

    `type` is one of `boolean`, `int8`, `int16`, `int32`, `int64`, `float32`, `float64`, `string`, `bytes`, `array`,
    `map`, `struct`. `name` is set for named and logical types. A value without a schema has None in its place.

    A struct's value is a map by field name; a field that is missing is null. A schema says how a value is written and
    is not held against it: that an `int32` has no more than 32 bits is for whoever makes the value.

    Values of logical types: for `DECIMAL` a `decimal.Decimal`; for `DATE` the days since 1970 or a `datetime.date`;
    for `TIME` and `TIMESTAMP` the milliseconds since midnight, or since 1970 in UTC, or a `datetime.time` and a
    `datetime.datetime`; for `UUID` its text. Connect has no finer time than milliseconds: microseconds and nanoseconds
    are numbers, under the names that Debezium has made common.
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


def logical_schema(name: str, *, optional: bool = False) -> Schema:
    """The schema of a logical type that needs no parameter: any name above but `DECIMAL`."""
    return Schema(_LOGICAL[name], name=name, version=1, optional=optional)


def decimal_schema(scale: int, *, optional: bool = False) -> Schema:
    """The schema of decimals with so many digits behind the point."""
    return Schema("bytes", name=DECIMAL, version=1, optional=optional, parameters={"scale": str(scale)})
