"""The driver's eye on `stop.rule`: what tasks have met, and what only the whole source can meet."""

import time
from collections.abc import Callable

import attrs

from headrace.framework.stop_rule import StopKind, StopRule

__all__ = ["RuleWatch", "Signs"]


@attrs.frozen(kw_only=True)
class Signs:
    """What the driver sees at one moment of a run, for its rule.

    `records` are those that the run has committed. `stalled`: something does not get on, or the source has not
    answered yet. `busy`: something that has an end is being read, or a task has not begun. `unsure`: a look at the
    source, or a whole object of which nobody knows, is under way.
    """

    records: int
    stalled: bool = False
    busy: bool = False
    unsure: bool = False


@attrs.define
class RuleWatch:
    """Looked at with every tick. Once met, a rule stays met.

    The clock of `idle` begins anew with every record and with the end of a stall; it stands still while the source is
    busy, and is not asked while nobody can be sure. Transactions that last `commits_every_s` show their records so
    late: where that is as long as the rule's time, it comes on top.
    """

    rule: StopRule | None
    commits_every_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    met: bool = False
    _records: int = attrs.field(default=0, init=False)
    _idle_s: float = attrs.field(default=0.0, init=False)
    _looked_at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._looked_at = self.clock()

    def look(self, signs: Signs) -> None:
        """Take note of how things stand."""
        before, self._looked_at = self._looked_at, self.clock()
        if signs.stalled or signs.records != self._records:
            self._idle_s = 0.0
        elif not signs.busy:
            self._idle_s += self._looked_at - before
        self._records = signs.records
        if self.rule is None:
            return
        if self.rule.kind is StopKind.COUNT:
            self.met |= signs.records >= self.rule.count
        elif self.rule.kind is StopKind.IDLE:
            self.met |= self._idle_s >= self._longest_s(self.rule) and not (signs.busy or signs.unsure)

    def left(self) -> int | None:
        """How many records a task may still take; None if their number is no matter."""
        if self.rule is None or self.rule.kind is not StopKind.COUNT:
            return None
        return max(0, self.rule.count - self._records)

    def patience_s(self) -> float | None:
        """How soon a task that gets nowhere has to say so, lest that be taken for idleness; None if it is no matter."""
        return None if self.rule is None or self.rule.kind is not StopKind.IDLE else self.rule.idle_s / 2

    def _longest_s(self, rule: StopRule) -> float:
        return rule.idle_s + (self.commits_every_s if self.commits_every_s >= rule.idle_s else 0.0)
