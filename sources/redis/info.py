"""What a server says of a stream, and what that says of entries that went before they were read."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import attrs

from headrace.sources.redis.ids import FIRST, StreamId

__all__ = ["GroupInfo", "StreamInfo"]


@attrs.frozen(kw_only=True)
class StreamInfo:
    """A stream at one moment.

    `added` is how many entries were ever added, None with servers before 7, which do not say; `first` is the first
    entry that is there, None in an empty stream; `last` is the last id that was given out, also where its entry has
    gone.
    """

    length: int
    last: StreamId
    first: StreamId | None = None
    added: int | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Self:
        """What XINFO STREAM answers."""
        first = answer.get("first-entry")
        return cls(
            length=answer["length"],
            last=StreamId.parse(answer["last-generated-id"]),
            first=None if not first else StreamId.parse(first[0]),
            added=answer.get("entries-added"),
        )

    @property
    def removed(self) -> int | None:
        """How many entries were added and are not there any more."""
        return None if self.added is None else self.added - self.length

    def passed_at(self, position: StreamId) -> int | None:
        """How many entries had been added up to a position, where that can be told."""
        if self.added is None:
            return None
        if position >= self.last:
            return self.added
        return self.removed if self.begins_behind(position) else None

    def begins_behind(self, position: StreamId) -> bool:
        """Whether every entry that is there lies behind a position."""
        return self.first is None or self.first > position

    def is_another_than(self, position: StreamId, passed: int | None, found: int = 0) -> bool:
        """Whether it cannot be the stream that was read up to `position`, the `passed`th entry ever added to it.

        It was deleted and begun anew, or its server has lost what another one had been given: then it ends before the
        position, or there are more entries behind that than were ever added behind it. `found` is how many a read from
        there has brought. One that was begun anew and trimmed since by as much as had been read cannot be told.
        """
        if position != FIRST and self.last < position:
            return True
        if self.added is None or passed is None:
            return False
        behind = self.length if self.begins_behind(position) else found
        return behind > self.added - passed

    def lost_behind(self, position: StreamId, passed: int | None, found: int) -> int:
        """How many entries behind a position have gone, as far as that can be known now.

        `found` is how many entries a read from there has brought. It can be known where the position lies before all
        entries that are there, or behind them.
        """
        if self.added is None or passed is None:
            return 0
        if self.begins_behind(position):
            return self.added - passed - self.length
        return self.added - passed if not found else 0


@attrs.frozen(kw_only=True)
class GroupInfo:
    """A consumer group at one moment.

    `delivered` is the last entry that was given out. `read` is how many entries had ever been added up to there, as far
    as the server has kept count, and `lag` how many it takes to be left; None where it does not say.
    """

    delivered: StreamId
    read: int | None = None
    lag: int | None = None

    @classmethod
    def named(cls, name: str | None, answer: Iterable[Mapping[str, Any]]) -> Self | None:
        """One of the groups that XINFO GROUPS answers."""
        for group in answer:
            if group["name"].decode() == name:
                delivered = StreamId.parse(group["last-delivered-id"])
                return cls(delivered=delivered, read=group.get("entries-read"), lag=group.get("lag"))
        return None

    def passed(self, info: StreamInfo, known: int | None) -> int | None:
        """How many entries had been added to the stream up to the last that was given out, where that can be told.

        `known` is our own count of them. A server may count only what it gave out; so the higher one is right.
        """
        counts = [count for count in (self.read, known) if count is not None]
        if info.added is None or counts:
            return max(counts, default=None)
        return None if self.lag is None else info.added - self.lag
