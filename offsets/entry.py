"""How far a piece of a source has been read: one meaning for "offset", where reading goes on."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import OffsetValueError
from headrace.offsets.key import OffsetManagerKey, checked_map

__all__ = ["RECORD_COUNT", "OffsetManagerEntry"]

RECORD_COUNT = "recordCount"


def _as_key(key: OffsetManagerKey | Mapping[str, Any]) -> OffsetManagerKey:
    return key if isinstance(key, OffsetManagerKey) else OffsetManagerKey(key)


def _as_offset(properties: Mapping[str, Any]) -> dict[str, Any]:
    return checked_map(properties, what="a source offset")


@attrs.define(repr=False)
class OffsetManagerEntry:
    """The key and the progress of one piece of a source.

    Use it as it is, or subclass it to name what your source keeps. Whatever is in the properties is stored and comes
    back; anything else that a subclass tracks is its own affair. An entry says where to read *next*: with a
    `record_count` of n, n records have gone out and record n+1 (counted from 1) is the next.

    Maps in and out are copies. Unknown properties survive. `recordCount` is kept by `record_count` and
    `increment_record_count` only.
    """

    _key: OffsetManagerKey = attrs.field(converter=_as_key)
    _properties: dict[str, Any] = attrs.field(factory=dict, converter=_as_offset)

    def get_manager_key(self) -> OffsetManagerKey:
        """The key under which the entry is stored."""
        return self._key

    def get_properties(self) -> dict[str, Any]:
        """What is stored of the progress, as a copy."""
        return dict(self._properties)

    def from_properties(self, properties: Mapping[str, Any]) -> Self:
        """An entry of the same key with other properties."""
        return type(self)(self._key, dict(properties))

    def get_property(self, name: str) -> Any:
        """A property as it is, or None."""
        return self._properties.get(name)

    def set_property(self, name: str, value: Any) -> None:
        """Set a property; `OffsetValueError` for one that cannot be stored, and for `recordCount`."""
        if name == RECORD_COUNT:
            raise OffsetValueError("recordCount is counted, not set: use increment_record_count")
        self._properties.update(_as_offset({name: value}))

    def get_string(self, name: str) -> str | None:
        """A property as a string, or None."""
        value = self._properties.get(name)
        if value is None or isinstance(value, str):
            return value
        return str(value).lower() if isinstance(value, bool) else str(value)

    def get_int(self, name: str) -> int | None:
        """A property as an integer, or None; `OffsetValueError` if it is not one."""
        value = self._number(name, "an integer")
        try:
            number = None if value is None else int(value)
        except ValueError as error:
            raise OffsetValueError(f"{name}={value!r} is not an integer") from error
        if isinstance(value, float) and number != value:
            raise OffsetValueError(f"{name}={value!r} is not an integer")
        return number

    get_long = get_int

    def get_float(self, name: str) -> float | None:
        """A property as a float, or None; `OffsetValueError` if it is not a number."""
        value = self._number(name, "a number")
        try:
            return None if value is None else float(value)
        except ValueError as error:
            raise OffsetValueError(f"{name}={value!r} is not a number") from error

    def get_bool(self, name: str) -> bool | None:
        """A property as a boolean, or None; the texts "true" and "false" are booleans, too."""
        value = self._properties.get(name)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in {"true", "false"}:
            return value.lower() == "true"
        raise OffsetValueError(f"{name}={value!r} is not a boolean")

    @property
    def record_count(self) -> int:
        """How many records have gone out; 0 where nothing is stored."""
        return self.get_int(RECORD_COUNT) or 0

    def increment_record_count(self, by: int = 1) -> None:
        """Count records that go out with this entry."""
        self._properties[RECORD_COUNT] = self.record_count + by

    def _number(self, name: str, kind: str) -> str | int | float | None:
        value: str | int | float | None = self._properties.get(name)
        if isinstance(value, bool):
            raise OffsetValueError(f"{name}={value!r} is not {kind}")
        return value

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._key.mapping!r}, {self._properties!r})"
