"""The driver's eye on `stop.rule`: what tasks have met, and what only the whole source can meet."""

import time

import attrs

from headrace.framework.stop_rule import StopKind, StopRule

__all__ = ["RuleWatch"]


@attrs.define
class RuleWatch:
    """Looked at with every tick, with the records that the run has committed by then. Once met, a rule stays met."""

    rule: StopRule | None
    met: bool = False
    _records: int = attrs.field(default=0, init=False)
    _moved_at: float = attrs.field(factory=time.monotonic, init=False)

    def look(self, records: int) -> None:
        """Take note of the run's committed records."""
        if records != self._records:
            self._records, self._moved_at = records, time.monotonic()
        if self.rule is None:
            return
        if self.rule.kind is StopKind.COUNT:
            self.met |= records >= self.rule.count
        elif self.rule.kind is StopKind.IDLE:
            self.met |= time.monotonic() - self._moved_at >= self.rule.idle_s

    def left(self) -> int | None:
        """How many records a task may still take; None if their number is no matter."""
        if self.rule is None or self.rule.kind is not StopKind.COUNT:
            return None
        return max(0, self.rule.count - self._records)
