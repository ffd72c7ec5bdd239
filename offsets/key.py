"""What names a piece of a source, whatever the order in which its parts were written down."""

import math
from collections.abc import Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import OffsetValueError

__all__ = ["OffsetManagerKey", "checked_map"]

LARGEST = 2**63 - 1
_TEXT = frozenset({str})


def checked_map(mapping: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """A copy of `mapping` of plain Python values, or `OffsetValueError` if Kafka Connect could not store it.

    It is flat: string keys; strings, booleans, None, finite floats and integers of at most 64 bits as values. A
    larger integer is refused, not rounded. Members of a subclass (an enumeration's, NumPy's floats) come out as what
    they are stored as.
    """
    if _is_plain(mapping):
        return dict(mapping)
    return {_plain_name(name, what): _plain(name, value, what) for name, value in mapping.items()}


def _is_plain(mapping: Mapping[str, Any]) -> bool:
    """Whether all is stored as it is: so it is nearly always, and looking at each value as closely takes its time."""
    if _is_text(mapping):
        return True
    for name, value in mapping.items():
        kind = type(value)
        is_number = kind is int and -LARGEST - 1 <= value <= LARGEST
        if type(name) is not str or not (is_number or kind is str or kind is bool or value is None):
            return False
    return True


def _is_text(mapping: Mapping[str, Any]) -> bool:
    return _TEXT.issuperset(map(type, mapping)) and _TEXT.issuperset(map(type, mapping.values()))


def _plain_name(name: object, what: str) -> str:
    if type(name) is str:
        return name
    if isinstance(name, str):
        return str.__str__(name)
    raise OffsetValueError(f"{what} has the name {name!r}: names are strings")


def _plain(name: str, value: object, what: str) -> str | int | float | bool | None:
    match value:
        case None | bool():
            return value
        case str():
            return value if type(value) is str else str.__str__(value)
        case int():
            if -LARGEST - 1 <= value <= LARGEST:
                return int(value)
            raise OffsetValueError(f"{what} has {name}={value}: integers have at most 64 bits; store it as a string")
        case float():
            if math.isfinite(value):
                return float(value)
            raise OffsetValueError(f"{what} has {name}={value}: JSON knows no such number; store it as a string")
        case _:
            raise OffsetValueError(
                f"{what} has {name}={value!r}: values are strings, integers, floats, booleans or None; "
                "spread a nested value over several names"
            )


def _partition(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return checked_map(mapping, what="a source partition")


@attrs.frozen(eq=False, repr=False)
class OffsetManagerKey:
    """The source partition that an entry belongs to: `OffsetManagerKey({"bucket": "b", "objectKey": "k"})`.

    Equal to any other with the same names and values, in whatever order; the order given is the one in which it is
    written. Hashable, immutable; the map that goes in and the one that comes out are copies.
    """

    _mapping: dict[str, Any] = attrs.field(converter=_partition)
    _identity: frozenset[Any] = attrs.field(init=False)
    """What two keys are compared by."""

    @_identity.default
    def _make_identity(self) -> frozenset[Any]:
        mapping = self._mapping
        if _is_text(mapping):
            return frozenset(mapping.items())
        # 1, 1.0 and True are one key to Python and three to JSON.
        return frozenset(zip(mapping, map(type, mapping.values()), mapping.values(), strict=True))

    @property
    def mapping(self) -> dict[str, Any]:
        """The names and values, in the order in which they were given."""
        return dict(self._mapping)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetManagerKey) and self._identity == other._identity

    @override
    def __hash__(self) -> int:
        return hash(self._identity)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._mapping,)

    @override
    def __repr__(self) -> str:
        return f"OffsetManagerKey({self._mapping!r})"
