"""What a run has done, as people and programs read it."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

__all__ = ["Progress", "RunStatus", "RunSummary", "TaskSummary"]


@attrs.frozen(kw_only=True)
class Progress:
    """What a run has committed so far. `objects` are finished; `objects_known` had something to read when found."""

    records: int = 0
    bytes: int = 0
    objects: int = 0
    objects_known: int = 0
    transactions: int = 0


@attrs.frozen(kw_only=True)
class RunStatus:
    """A run at a moment: STARTING, RUNNING, STOPPING, and at its end COMPLETED or FAILED, with the `error`.

    `stalled` says of each thing that is tried again and does not get on since when, and why.
    """

    connector: str
    state: str
    progress: Progress = attrs.field(factory=Progress)
    error: str | None = None
    stalled: Sequence[str] = ()

    @property
    def is_active(self) -> bool:
        """Whether the run is not over yet."""
        return self.state not in {"COMPLETED", "FAILED"}


@attrs.frozen(kw_only=True)
class TaskSummary:
    """One task's share of what the run has committed."""

    task: int
    records: int = 0
    bytes: int = 0
    objects: int = 0
    transactions: int = 0
    dead_lettered: int = 0


@attrs.frozen(kw_only=True)
class RunSummary:
    """One run from its claim to its end. The counts are of what this run committed, taken from the offsets topic."""

    connector: str
    state: str
    delivery: str
    duration_s: float
    records_per_s: float
    records: int = 0
    bytes: int = 0
    objects: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    transactions: int = 0
    warnings: Sequence[str] = ()
    tasks: Sequence[TaskSummary] = ()
    error: str | None = None

    @classmethod
    def not_started(cls, connector: str, error: str | None, *, exactly_once: bool, duration_s: float) -> Self:
        """Of a run that failed, or was stopped, before it had claimed its connector."""
        return cls(
            connector=connector,
            state="COMPLETED" if error is None else "FAILED",
            delivery="exactly_once" if exactly_once else "at_least_once",
            duration_s=round(duration_s, 3),
            records_per_s=0.0,
            error=error,
        )

    def as_json(self) -> Mapping[str, Any]:
        """The document that `headrace run --output json` prints."""
        return attrs.asdict(self)
