"""Arrow's types in Kafka Connect's terms, and what makes Connect's values of Arrow's columns."""

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.schema import (
    DATE,
    MICRO_TIME,
    MICRO_TIMESTAMP,
    NANO_TIME,
    NANO_TIMESTAMP,
    TIME,
    TIMESTAMP,
    UUID,
    Field,
    Schema,
    decimal_schema,
    logical_schema,
)
from headrace.framework.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetSchema"]

_DAY_MS = 86_400_000
_SECOND_MS = 1000
_LONG = 2**63

Fix = Callable[[Any], Any]


@attrs.frozen
class _Type:
    """What a column is cast to, Connect's schema of it, and what is left to do with its values."""

    carrier: Any
    schema: Schema
    fix: Fix | None = None


@attrs.frozen
class ParquetSchema:
    """How the columns of a file become objects by field name, all of one schema."""

    names: tuple[str, ...]
    types: tuple[_Type, ...]
    schema: Schema

    @classmethod
    def of(cls, columns: "pa.Schema") -> "ParquetSchema":
        """The schema of a file's columns; ValueError for a type that has no form here."""
        _refuse_twice(columns.names)
        types = tuple(_type(column.type, optional=column.nullable) for column in columns)
        fields = tuple(Field(name, found.schema) for name, found in zip(columns.names, types, strict=True))
        return cls(tuple(columns.names), types, Schema("struct", name="schema", fields=fields))

    def cast(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The same rows in columns of which values are made: a text that stands in many rows is there as often."""
        if [column.type for column in batch.columns] == [found.carrier for found in self.types]:
            return batch
        columns = [_as_carried(column, found) for column, found in zip(batch.columns, self.types, strict=True)]
        return type(batch).from_arrays(columns, names=list(self.names))

    def values(self, batch: "pa.RecordBatch") -> Table:
        """The rows of a batch. What cannot be a value raises ValueError."""
        columns = [_column(column, found) for column, found in zip(batch.columns, self.types, strict=True)]
        return Table(self.names, columns, batch.num_rows)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"there are two columns of the name {min(twice)!r}, of which one would hide the other")


def _as_carried(column: "pa.Array[Any]", found: _Type) -> "pa.Array[Any]":
    return column if column.type == found.carrier else column.cast(found.carrier)


def _column(column: "pa.Array[Any]", found: _Type) -> Sequence[Any]:
    values: list[Any] = _as_carried(column, found).to_pylist()
    fix = found.fix
    return values if fix is None else [None if value is None else fix(value) for value in values]


def _type(given: "pa.DataType", *, optional: bool) -> _Type:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    if isinstance(given, pa.BaseExtensionType):
        return _extension(given, optional=optional)
    if pa.types.is_dictionary(given):
        return _type(given.value_type, optional=optional)
    found = _plain(given) or _text_or_bytes(given) or _time(given) or _decimal(given) or _nested(given)
    if found is None:
        raise ValueError(f"a column of the type {given} has no form in Kafka Connect")
    return attrs.evolve(found, schema=attrs.evolve(found.schema, optional=optional or found.schema.optional))


def _extension(given: Any, *, optional: bool) -> _Type:
    stored = _type(given.storage_type, optional=optional)
    if given.extension_name == "arrow.uuid":
        return attrs.evolve(stored, schema=logical_schema(UUID, optional=optional), fix=_uuid)
    return stored


def _plain(given: Any) -> _Type | None:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    if given == pa.uint64():
        return _Type(given, Schema("int64"), _signed)
    if given == pa.float16():
        return _Type(pa.float32(), Schema("float32"))
    if given == pa.null():
        return _Type(given, Schema("string", optional=True))
    if pa.types.is_duration(given):
        return _Type(pa.int64(), Schema("int64"))
    names = {
        pa.bool_(): "boolean",
        pa.int8(): "int8",
        pa.int16(): "int16",
        pa.int32(): "int32",
        pa.int64(): "int64",
        pa.uint8(): "int16",
        pa.uint16(): "int32",
        pa.uint32(): "int64",
        pa.float32(): "float32",
        pa.float64(): "float64",
    }
    return _Type(given, Schema(names[given])) if given in names else None


def _text_or_bytes(given: Any) -> _Type | None:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    kind = str(given)
    if kind in {"string", "large_string", "string_view"}:
        return _Type(pa.string() if kind == "string_view" else given, Schema("string"))
    if kind in {"binary", "large_binary", "binary_view"} or pa.types.is_fixed_size_binary(given):
        return _Type(pa.binary() if kind == "binary_view" else given, Schema("bytes"))
    return None


def _time(given: Any) -> _Type | None:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    if pa.types.is_date32(given):
        return _Type(pa.int32(), logical_schema(DATE))
    if pa.types.is_date64(given):
        return _Type(pa.int64(), logical_schema(DATE), lambda value: value // _DAY_MS)
    if pa.types.is_time(given):
        carrier = pa.int32() if pa.types.is_time32(given) else pa.int64()
        name = {"us": MICRO_TIME, "ns": NANO_TIME}.get(given.unit, TIME)
    elif pa.types.is_timestamp(given):
        carrier = pa.int64()
        name = {"us": MICRO_TIMESTAMP, "ns": NANO_TIMESTAMP}.get(given.unit, TIMESTAMP)
    else:
        return None
    return _Type(carrier, logical_schema(name), (lambda value: value * _SECOND_MS) if given.unit == "s" else None)


def _decimal(given: Any) -> _Type | None:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    return _Type(given, decimal_schema(given.scale)) if pa.types.is_decimal(given) else None


def _nested(given: Any) -> _Type | None:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    if pa.types.is_map(given):
        return _map(given)
    if pa.types.is_struct(given):
        return _struct(given)
    if pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given):
        items = _type(given.value_type, optional=given.value_field.nullable)
        carrier = pa.large_list if pa.types.is_large_list(given) else pa.list_
        schema = Schema("array", values=items.schema)
        field = given.value_field.with_type(items.carrier)
        return _Type(given if items.carrier == given.value_type else carrier(field), schema, _for_each(items.fix))
    return None


def _struct(given: Any) -> _Type:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    _refuse_twice([field.name for field in given])
    inner = [(field, _type(field.type, optional=field.nullable)) for field in given]
    carrier = pa.struct([field.with_type(found.carrier) for field, found in inner])
    schema = Schema("struct", fields=tuple(Field(field.name, found.schema) for field, found in inner))
    fixes = {field.name: found.fix for field, found in inner if found.fix is not None}

    def fix(value: dict[str, Any]) -> dict[str, Any]:
        for name, one in fixes.items():
            if value[name] is not None:
                value[name] = one(value[name])
        return value

    return _Type(carrier, schema, fix if fixes else None)


def _map(given: Any) -> _Type:
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it

    keys, values = _type(given.key_type, optional=False), _type(given.item_type, optional=given.item_field.nullable)
    carrier = pa.map_(given.key_field.with_type(keys.carrier), given.item_field.with_type(values.carrier))
    key_of, value_of = keys.fix or _same, values.fix or _same

    def fix(value: list[tuple[Any, Any]]) -> dict[Any, Any]:
        try:
            return {key_of(key): None if item is None else value_of(item) for key, item in value}
        except TypeError as error:
            raise ValueError("a map whose keys are no plain values has no form here") from error

    return _Type(carrier, Schema("map", keys=keys.schema, values=values.schema), fix)


def _for_each(fix: Fix | None) -> Fix | None:
    if fix is None:
        return None
    return lambda value: [None if item is None else fix(item) for item in value]


def _same(value: Any) -> Any:
    return value


def _signed(value: int) -> int:
    if value >= _LONG:
        raise ValueError(f"the integer {value} is beyond 64 bits with a sign")
    return value


def _uuid(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))
