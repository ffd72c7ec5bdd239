"""Avro's schemas in Kafka Connect's terms, and what has to be done to values between the two.

The schema that values are decoded with is rewritten first. Logical types are taken out, so that times stay the
numbers that they are. A union of several types gets a record of one field around each of them: that has the same
bytes in Avro, and afterwards says which of the types a value is of.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import attrs

from headrace.framework.schema import (
    DATE,
    MICRO_TIME,
    MICRO_TIMESTAMP,
    NANO_TIMESTAMP,
    TIME,
    TIMESTAMP,
    UUID,
    Field,
    Schema,
    decimal_schema,
    logical_schema,
)

__all__ = ["UNION", "AvroSchema", "unscaled"]

UNION = "io.confluent.connect.avro.Union"
"""The name of the struct that a union of several types becomes: one field for each, null but for one."""

_NO_NAME = "io.confluent.connect.avro.ConnectDefault"
_PRIMITIVES = {
    "null": "string",
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "bytes",
    "string": "string",
}
_LOGICAL = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "time-micros"): MICRO_TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): MICRO_TIMESTAMP,
    ("long", "timestamp-nanos"): NANO_TIMESTAMP,
    ("string", "uuid"): UUID,
}
_UUID_BYTES = 16
_EXACT = Context(prec=100_000)

Fix = Callable[[Any], Any]


def unscaled(number: int, scale: int) -> Decimal:
    """A decimal of so many digits behind the point, exactly."""
    return Decimal(number).scaleb(-scale, _EXACT)


@attrs.frozen
class _Type:
    """A type as it is decoded, as Connect has it, and what makes a value of the second from one of the first."""

    wire: Any
    schema: Schema
    fix: Fix | None = None
    is_empty: bool = False
    """Whether a value has no bytes at all."""


@attrs.frozen
class AvroSchema:
    """A schema to decode with, and Connect's; `schema` is None for one that holds itself, which Connect cannot say."""

    wire: Any
    schema: Schema | None
    fix: Fix | None
    is_empty: bool = False
    """Whether a value has no bytes at all."""

    @classmethod
    def of(cls, written: Any) -> "AvroSchema":
        """The schema that stands in a container's header, as Python objects; ValueError for what is none."""
        reading = _Reading()
        found = reading.type(written, "")
        if reading.is_recursive:
            return cls(found.wire, None, None)
        return cls(found.wire, found.schema, found.fix, found.is_empty)

    @property
    def is_recursive(self) -> bool:
        """Whether values can be nested to any depth."""
        return self.schema is None


@attrs.define
class _Reading:
    """The walk through one schema; names are known from their first use on."""

    known: dict[str, _Type | None] = attrs.field(factory=dict)
    is_recursive: bool = False
    branches: int = 0

    def type(self, node: Any, namespace: str) -> _Type:
        if isinstance(node, str):
            return self._named(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        if not isinstance(node, dict) or "type" not in node:
            raise ValueError(f"there is no type in {str(node)[:80]!r}")
        kind = node["type"]
        if not isinstance(kind, str):
            return self.type(kind, namespace)
        made = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(kind)
        found = made(node, namespace) if made else self._logical(node, namespace)
        return attrs.evolve(found, schema=_as_connect_said(found.schema, node))

    def _named(self, name: str, namespace: str) -> _Type:
        if name in _PRIMITIVES:
            return _Type(name, Schema(_PRIMITIVES[name], optional=name == "null"), is_empty=name == "null")
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self.known else name
        if full not in self.known:
            raise ValueError(f"there is no type {name!r}")
        found = self.known[full]
        if found is None:
            self.is_recursive = True
            return _Type(full, Schema("struct", name=full))
        return attrs.evolve(found, wire=full)

    def _logical(self, node: Mapping[str, Any], namespace: str) -> _Type:
        kind, logical = str(node["type"]), str(node.get("logicalType"))
        if kind == "bytes" and logical == "decimal":
            return _decimal(kind, node)
        if (kind, logical) in _LOGICAL:
            return _Type(kind, logical_schema(_LOGICAL[kind, logical]))
        return self._named(kind, namespace)

    def _record(self, node: Mapping[str, Any], namespace: str) -> _Type:
        name, inner = self._define(node, namespace)
        fields = [(field["name"], self.type(field["type"], inner), field) for field in node["fields"]]
        if len({field for field, _, _ in fields}) < len(fields):
            raise ValueError(f"the record {name!r} has two fields of one name")
        wire = {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": found.wire} for field, found, _ in fields],
        }
        schema = Schema(
            "struct",
            name=None if name == _NO_NAME else name,
            doc=_text(node.get("doc")),
            fields=tuple(
                Field(field, attrs.evolve(found.schema, doc=_text(told.get("doc")) or found.schema.doc))
                for field, found, told in fields
            ),
        )
        fix = _fixed_fields({field: found.fix for field, found, _ in fields if found.fix})
        return self._defined(name, _Type(wire, schema, fix, is_empty=all(found.is_empty for _, found, _ in fields)))

    def _enum(self, node: Mapping[str, Any], namespace: str) -> _Type:
        name, _ = self._define(node, namespace)
        wire = {"type": "enum", "name": name, "symbols": node["symbols"]}
        return self._defined(name, _Type(wire, Schema("string", name=name, doc=_text(node.get("doc")))))

    def _fixed(self, node: Mapping[str, Any], namespace: str) -> _Type:
        name, _ = self._define(node, namespace)
        wire = {"type": "fixed", "name": name, "size": node["size"]}
        if node.get("logicalType") == "decimal":
            return self._defined(name, _decimal(wire, node))
        if node.get("logicalType") == "uuid" and node["size"] == _UUID_BYTES:
            return self._defined(name, _Type(wire, logical_schema(UUID), _uuid))
        found = _Type(wire, Schema("bytes", name=name, doc=_text(node.get("doc"))), is_empty=not node["size"])
        return self._defined(name, found)

    def _array(self, node: Mapping[str, Any], namespace: str) -> _Type:
        items = self.type(node["items"], namespace)
        if items.is_empty:
            raise ValueError("its arrays hold values without bytes, of which a few bytes can say that there are many")
        fix = items.fix
        whole = None if fix is None else lambda value: [fix(item) for item in value]
        return _Type({"type": "array", "items": items.wire}, Schema("array", values=items.schema), whole)

    def _map(self, node: Mapping[str, Any], namespace: str) -> _Type:
        values = self.type(node["values"], namespace)
        fix = values.fix
        whole = None if fix is None else lambda value: {name: fix(item) for name, item in value.items()}
        schema = Schema("map", keys=Schema("string"), values=values.schema)
        return _Type({"type": "map", "values": values.wire}, schema, whole)

    def _union(self, nodes: Sequence[Any], namespace: str) -> _Type:
        types = [None if node == "null" else self.type(node, namespace) for node in nodes]
        given = [found for found in types if found is not None]
        optional = len(given) < len(types)
        if not given:
            return _Type(["null"], Schema("string", optional=True), is_empty=True)
        if len(given) == 1:
            fix = given[0].fix
            maybe = None if fix is None else lambda value: None if value is None else fix(value)
            wire = ["null" if found is None else found.wire for found in types]
            return _Type(wire, attrs.evolve(given[0].schema, optional=optional or given[0].schema.optional), maybe)
        return self._branches(types, given, optional=optional)

    def _branches(self, types: Sequence[_Type | None], given: Sequence[_Type], *, optional: bool) -> _Type:
        short = [_branch_name(found.wire).rpartition(".")[2] for found in given]
        names = [
            _branch_name(found.wire) if short.count(name) > 1 else name
            for name, found in zip(short, given, strict=True)
        ]
        wrapped = iter([self._wrapped(name, found) for name, found in zip(names, given, strict=True)])
        fields = tuple(
            Field(name, attrs.evolve(found.schema, optional=True)) for name, found in zip(names, given, strict=True)
        )
        fixes = _fixed_fields({name: found.fix for name, found in zip(names, given, strict=True) if found.fix})
        fix = None if fixes is None else lambda value: None if value is None else fixes(value)
        wire = ["null" if found is None else next(wrapped) for found in types]
        return _Type(wire, Schema("struct", name=UNION, optional=optional, fields=fields), fix)

    def _wrapped(self, name: str, found: _Type) -> Any:
        self.branches += 1
        return {
            "type": "record",
            "name": f"headrace_Branch{self.branches}",
            "fields": [{"name": name, "type": found.wire}],
        }

    def _define(self, node: Mapping[str, Any], namespace: str) -> tuple[str, str]:
        name = node["name"]
        inner = node.get("namespace", namespace)
        if "." in name:
            inner = name.rpartition(".")[0]
        elif inner:
            name = f"{inner}.{name}"
        if name in self.known:
            raise ValueError(f"the type {name!r} is there twice")
        self.known[name] = None
        return name, inner

    def _defined(self, name: str, found: _Type) -> _Type:
        self.known[name] = found
        return found


def _as_connect_said(schema: Schema, node: Mapping[str, Any]) -> Schema:
    """What Connect's own sinks have put beside Avro's words, so that their schemas come back."""
    said: dict[str, Any] = {}
    if isinstance(node.get("connect.name"), str):
        said["name"] = node["connect.name"]
    if isinstance(node.get("connect.version"), int):
        said["version"] = node["connect.version"]
    if isinstance(node.get("connect.parameters"), dict):
        told = {str(name): str(value) for name, value in node["connect.parameters"].items()}
        said["parameters"] = {**schema.parameters, **told}
    if node.get("connect.type") in {"int8", "int16"}:
        said["type"] = node["connect.type"]
    return attrs.evolve(schema, **said) if said else schema


def _decimal(wire: Any, node: Mapping[str, Any]) -> _Type:
    scale = node.get("scale", 0)
    if not isinstance(scale, int) or scale < 0:
        raise ValueError(f"a decimal has the scale {scale!r}")
    return _Type(wire, decimal_schema(scale), lambda value: unscaled(int.from_bytes(value, "big", signed=True), scale))


def _uuid(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def _branch_name(wire: Any) -> str:
    if isinstance(wire, str):
        return wire
    return str(wire["name"]) if "name" in wire else str(wire["type"])


def _text(given: Any) -> str | None:
    return given if isinstance(given, str) else None


def _fixed_fields(fixes: Mapping[str, Fix]) -> Fix | None:
    if not fixes:
        return None

    def fix(value: dict[str, Any]) -> dict[str, Any]:
        for name, one in fixes.items():
            if name in value:
                value[name] = one(value[name])
        return value

    return fix
