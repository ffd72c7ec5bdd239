"""The schema that fastavro decodes with, made so that no number stands for what it does not.

fastavro takes a union's branches and an enumeration's symbols out of lists, in which Python counts negative numbers
from the end, and any byte but 0 for true. Here each of them is in a dictionary by the numbers that it has in Avro; a
boolean is an enumeration of two, for a byte of 1 is the number -1. Named types are there themselves wherever they are
named, which a type inside of itself is, too.
"""

import sys
from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["StrictSchema"]

_BOOLEANS = {0: False, -1: True}


class _Told(dict[Any, Any]):
    """What numbers stand for; any other one is an error that is said in words."""

    def __init__(self, known: Mapping[Any, Any], words: str) -> None:
        super().__init__(known)
        self._words = words

    def __missing__(self, number: object) -> Any:
        raise ValueError(self._words.format(number))


@attrs.frozen
class StrictSchema:
    """A schema in two forms, parsed as `fastavro.schemaless_reader` takes it; both make errors of the same bytes."""

    item: Any
    """Of one value; its errors say what is wrong."""
    array: Any
    """Of many; it is quicker, and its errors say little."""
    has_booleans: bool

    @classmethod
    def of(cls, wire: Any) -> "StrictSchema":
        """For values of an `AvroSchema.wire`; fastavro's own errors where that is no schema."""
        from fastavro import parse_schema  # noqa: PLC0415 - an extra brings it

        held = {"type": "record", "name": "headrace_Held", "fields": [{"name": "held", "type": wire}]}
        parsed: Any = parse_schema(held)
        walk = _Walk(told=True)
        item, items = walk.of(wire), _Walk(told=False).of(wire)
        made = cls(item if isinstance(item, dict) else {"type": item}, {"type": "array", "items": items}, walk.booleans)
        for one in (made.item, made.array):
            for key, value in parsed.items():  # its marks, with which fastavro does not parse it at each call
                one.setdefault(key, value)
        return made


@attrs.define
class _Walk:
    """The walk through one schema; names are known from their first use on."""

    told: bool
    known: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    booleans: bool = False

    def of(self, node: Any) -> Any:
        if isinstance(node, str):
            return self._named(node)
        if isinstance(node, list):
            branches = {number: self.of(branch) for number, branch in enumerate(node)}
            return self._numbered({"type": "union", **branches}, "a union has no branch {}")
        kind = node["type"]
        if kind == "array":
            return {"type": "array", "items": self.of(node["items"])}
        if kind == "map":
            return {"type": "map", "values": self.of(node["values"])}
        return self._defined(kind, node)

    def _named(self, name: str) -> Any:
        if name == "boolean":
            self.booleans = True
            return {"type": "enum", "symbols": self._numbered(_BOOLEANS, "a boolean is neither 0 nor 1")}
        # fastavro compares it with the names of all types, and is quicker if it is one of its own.
        return self.known[name] if name in self.known else sys.intern(name)

    def _defined(self, kind: str, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"type": sys.intern(kind)}
        self.known[node["name"]] = found
        if kind == "record":
            found["fields"] = [{"name": field["name"], "type": self.of(field["type"])} for field in node["fields"]]
        elif kind == "enum":
            symbols = dict(enumerate(node["symbols"]))
            found["symbols"] = self._numbered(symbols, "an enumeration has no symbol {}")
        else:
            found["size"] = node["size"]
        return found

    def _numbered(self, known: Mapping[Any, Any], words: str) -> Mapping[Any, Any]:
        return _Told(known, words) if self.told else known
