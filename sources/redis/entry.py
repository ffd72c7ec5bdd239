"""How far a stream has been read."""

import json
from collections.abc import Sequence
from typing import Any, Self

import attrs

from headrace.framework.errors import OffsetValueError
from headrace.offsets.entry import RECORD_COUNT, OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.redis.ids import FIRST, StreamId

__all__ = ["ID", "STREAM", "WITHIN_ID", "Entries", "Place", "RedisOffsetEntry", "stream_key", "until"]

STREAM = "stream"
"""The name of a stream in its source partition."""

ID = "id"
"""The name, in its offset, of the entry behind which reading goes on."""

PASSED = "entriesPassed"
WITHIN = "within"
WITHIN_ID = "withinId"
COMPLETE = "complete"
DELIVERY = "delivery"

LAST = "last"
"""The entry that was read last, where a group had delivered it again and it lies before the place."""

Entries = Sequence[tuple[bytes, dict[bytes, bytes] | None]]
"""Entries as the server sends them; one that was deleted since has no fields."""


def until(entries: Entries, end: StreamId | None) -> Entries:
    """The entries up to an id, that included."""
    if end is None or not entries or StreamId.parse(entries[-1][0]) <= end:
        return entries
    return [entry for entry in entries if StreamId.parse(entry[0]) <= end]


def stream_key(stream: str) -> OffsetManagerKey:
    """The source partition of a stream, by its key in Redis."""
    return OffsetManagerKey({STREAM: stream})


@attrs.frozen(kw_only=True)
class Place:
    """Where reading goes on in a stream: behind the entry `id`, and behind the first `within` records of the next one.

    That one has the id `inside`: if it goes before the rest of it is read, the entry that is next then is another.
    `passed` is how many entries were ever added to the stream up to there, None where nobody knows; `records` have
    gone out.
    """

    id: StreamId = FIRST
    within: int = 0
    records: int = 0
    passed: int | None = None
    inside: StreamId | None = None

    def before(self, first: StreamId) -> "Place":
        """The same place, now that the entry that is next has this id."""
        return self if self.inside in {None, first} else attrs.evolve(self, within=0, inside=None)


class RedisOffsetEntry(OffsetManagerEntry):
    """The progress in one stream. Properties that others have added survive."""

    __slots__ = ()

    def place(self) -> Place:
        """Where reading goes on; `OffsetValueError` where what is stored does not say it."""
        try:
            return Place(
                id=StreamId.parse(self.get_string(ID) or "0"),
                within=self._count(WITHIN) or 0,
                records=self._count(RECORD_COUNT) or 0,
                passed=self._count(PASSED),
                inside=StreamId.parse(inside) if (inside := self.get_string(WITHIN_ID)) else None,
            )
        except (ValueError, OffsetValueError) as error:
            raise OffsetValueError(
                f"{self.get_manager_key().mapping.get(STREAM)}: its stored offset {json.dumps(self.get_properties())} "
                f"is no place in a stream: {_named(error)}; mend it with headrace offsets set, or forget all of them "
                "with headrace offsets reset"
            ) from error

    def properties_at(
        self, place: Place, *, complete: bool = False, delivery: str | None = None, last: StreamId | None = None
    ) -> dict[str, Any]:
        """What is stored once reading goes on at a place.

        `delivery` names what a group has delivered, `last` is the entry of that which was read last.
        """
        known = {
            ID: str(place.id),
            RECORD_COUNT: place.records,
            PASSED: place.passed,
            WITHIN: place.within or None,
            WITHIN_ID: str(place.inside) if place.within and place.inside else None,
            COMPLETE: complete or None,
            DELIVERY: delivery,
            LAST: str(last) if last and last < place.id else None,
        }
        kept = {name: value for name, value in self.get_properties().items() if name not in known}
        return {name: value for name, value in known.items() if value is not None} | kept

    def _count(self, name: str) -> int | None:
        number = self.get_int(name)
        if number is not None and number < 0:
            raise OffsetValueError(f"{name}={number} is less than 0")
        return number

    def at(self, place: Place) -> Self:
        """An entry of the same stream that says to go on at a place."""
        return self.from_properties(self.properties_at(place))


def _named(error: Exception) -> str:
    return str(error) if isinstance(error, OffsetValueError) else f"an id {error}"
