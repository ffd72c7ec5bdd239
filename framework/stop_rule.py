"""What ends a bounded run: `stop.rule`, as a value."""

import enum
import time
from datetime import UTC, datetime
from typing import Self

import attrs

__all__ = ["SNAPSHOT", "StopKind", "StopRule", "TimeLimit"]


class StopKind(enum.StrEnum):
    """What a rule looks at."""

    SNAPSHOT = "snapshot"
    """What was there at the start has been read."""

    POSITION = "position"
    """A split has been read up to a position, that included, in the source's own words."""

    TIME = "time"
    """A split has been read up to a time, that excluded, by the source's own clock; of a source that lists pieces
    which have a time as a whole, those from before it have been read."""

    COUNT = "count"
    """So many records are committed, in the whole source."""

    IDLE = "idle"
    """For so long no split of the source has given a record, and nothing that has an end was left to be read.

    The time counts from the last of: the last committed record, the source's first answer, the end of a stall. It
    stands still until the tasks have begun, and while an object is being read, however long that takes: a source that
    is down or slow is not idle, and no object is cut off. With a task of one's own that commits whole objects, the end
    comes with that of a micro-batch. A `transaction.boundary.interval.ms` that is as long as the time, or longer, is
    added to it, since records show only once they are committed.
    """


@attrs.frozen(kw_only=True)
class StopRule:
    """A rule for the whole source: the first split that meets it ends the run; the others stop as on any other stop.

    What a reader has given by then is committed. `count` ends after exactly so many records where one task reads;
    where several do, each stops at the number that was left when its micro-batch began, so there may be more.
    """

    kind: StopKind
    position: str = ""
    time: datetime | None = None
    count: int = 0
    idle_s: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """The rule as the configuration has it: `snapshot`, `position:<p>`, `time:<iso>`, `count:<n>`, `idle:<ms>`."""
        kind, _, value = text.partition(":")
        match kind:
            case "snapshot" if not value:
                return cls(kind=StopKind.SNAPSHOT)
            case "position" if value:
                return cls(kind=StopKind.POSITION, position=value)
            case "time" if value:
                return cls(kind=StopKind.TIME, time=_time(value))
            case "count" if value.isascii() and value.isdigit() and int(value) > 0:
                return cls(kind=StopKind.COUNT, count=int(value))
            case "idle" if value.isascii() and value.isdigit() and int(value) > 0:
                return cls(kind=StopKind.IDLE, idle_s=int(value) / 1000)
        raise ValueError(
            "must be snapshot, position:<position>, time:<ISO time, UTC where it has no zone>, count:<records> or "
            "idle:<milliseconds>"
        )


@attrs.frozen
class TimeLimit:
    """What a rule `time` means for a source that lists pieces, each with the time at which it was last modified.

    Those that were modified before the rule's time are read. A listing that begins once that time has come, by the
    driver's clock, is the last one; where it lies in the past, that is the first. Without such a rule all is read.
    """

    ends_at: float | None = None

    @classmethod
    def of(cls, rule: StopRule | None) -> Self:
        """The limit that a configuration's rule sets."""
        return cls() if rule is None or rule.time is None else cls(rule.time.timestamp())

    @property
    def has_come(self) -> bool:
        """Whether a listing that begins now is the last."""
        return self.ends_at is not None and time.time() >= self.ends_at

    def lets_in(self, modified_ms: int) -> bool:
        """Whether what was modified then is read."""
        return self.ends_at is None or modified_ms < self.ends_at * 1000


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"has the time {text!r}, which is none: write it as in time:2026-11-18T09:30:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


SNAPSHOT = StopRule(kind=StopKind.SNAPSHOT)
"""What `--available-now` is."""
