"""Finds values that are an `int` by Avro's schema and have more than 32 bits, which the decoder gives out as they are.

The values are looked at together, field by field.
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import attrs

__all__ = ["Ints"]

_Look = Callable[[Sequence[Any]], object]
"""Looks at values of one type; OverflowError where an int beyond 32 bits is among them, or in them."""


@attrs.frozen
class Ints:
    """Looks through the records of one schema."""

    _look: _Look | None

    @classmethod
    def of(cls, wire: Any) -> "Ints":
        """For records of an `AvroSchema.wire`."""
        return cls(_Looks().of(wire))

    def are_within(self, values: Sequence[Any]) -> bool:
        """Whether no int of these records is beyond 32 bits."""
        if self._look is None:
            return True
        try:
            self._look(values)
        except OverflowError:
            return False
        return True

    def first_beyond(self, values: Sequence[Any]) -> int | None:
        """How many records come before the first with an int beyond 32 bits; None where there is none."""
        if self.are_within(values):
            return None
        return next(index for index, value in enumerate(values) if not self.are_within([value]))


@attrs.define
class _Looks:
    """The walk through one schema; there is no look where no int is. Names are known from their first use on."""

    known: dict[str, _Look | None] = attrs.field(factory=dict)

    def of(self, node: Any) -> _Look | None:
        if isinstance(node, str):
            return self._named(node)
        if isinstance(node, list):
            return self._union([branch for branch in node if branch != "null"])
        kind = node["type"]
        if kind == "array":
            return _items(self.of(node["items"]))
        if kind == "map":
            return _members(self.of(node["values"]))
        return self._record(node) if kind == "record" else None

    def _named(self, name: str) -> _Look | None:
        if name == "int":
            return _ints
        return self.known.get(name)

    def _record(self, node: Any) -> _Look | None:
        name = node["name"]
        self.known[name] = self._later(name)
        self.known[name] = found = _in_turn(self._fields(node))
        return found

    def _fields(self, node: Any) -> list[tuple[str, _Look]]:
        fields = [(field["name"], self.of(field["type"])) for field in node["fields"]]
        return [(name, look) for name, look in fields if look is not None]

    def _union(self, given: Sequence[Any]) -> _Look | None:
        """Of several types each is in a record of its own, whose one field no other has."""
        if len(given) > 1:
            return _whichever([field for branch in given for field in self._fields(branch)])
        return _optional(self.of(given[0])) if given else None

    def _later(self, name: str) -> _Look:
        """Values of a type inside of itself."""

        def look(values: Sequence[Any]) -> None:
            found = self.known[name]
            if values and found is not None:
                found(values)

        return look


def _ints(values: Sequence[Any]) -> None:
    array("i", values)


def _in_turn(fields: Sequence[tuple[str, _Look]]) -> _Look | None:
    if not fields:
        return None

    def look(values: Sequence[Any]) -> None:
        for name, one in fields:
            one([value[name] for value in values])

    return look


def _whichever(fields: Sequence[tuple[str, _Look]]) -> _Look | None:
    if not fields:
        return None

    def look(values: Sequence[Any]) -> None:
        for name, one in fields:
            one([value[name] for value in values if value is not None and name in value])

    return look


def _optional(one: _Look | None) -> _Look | None:
    return None if one is None else lambda values: one([value for value in values if value is not None])


def _items(one: _Look | None) -> _Look | None:
    return None if one is None else lambda values: one([*chain.from_iterable(values)])


def _members(one: _Look | None) -> _Look | None:
    return None if one is None else lambda values: one([*chain.from_iterable(value.values() for value in values)])
