"""What a server says of a stream, and what that says of entries that went before they were read."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from headrace.sources.redis.ids import FIRST, StreamId

__all__ = ["StreamInfo"]


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

    def is_another_than(self, position: StreamId, passed: int | None) -> bool:
        """Whether it cannot be the stream that was read up to `position`, the `passed`th entry ever added to it.

        It was deleted and begun anew, or its server has lost what another one had been given.
        """
        if position != FIRST and self.last < position:
            return True
        return self.added is not None and passed is not None and self.added < passed

    def lost_behind(self, position: StreamId, passed: int | None, found: int) -> int:
        """How many entries behind a position have gone, as far as that can be known now.

        `found` is how many entries a read from there has brought. It can be known where the position lies before all
        entries that are there, or behind them.
        """
        if self.added is None or passed is None:
            return 0
        if self.first is None or self.first > position:
            return self.added - passed - self.length
        return self.added - passed if not found else 0
