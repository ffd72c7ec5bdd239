"""What the driver knows of a task between its micro-batches."""

import time

import attrs

from headrace.framework.backoff import LONGEST_S
from headrace.framework.driver.stall import Stall

__all__ = ["TaskState"]

FIRST_PAUSE_S = 0.05


@attrs.define
class TaskState:
    """One task: whether it has anything left, how long it rests, and whether it gets on."""

    stall: Stall
    exhausted: bool = False
    pause_s: float = 0.0
    not_before: float = 0.0
    worker: str = ""
    """The process that had the task in its last micro-batch, from its report until the next one is planned."""

    def came_back(self, *, busy: bool) -> None:
        """Its part in a micro-batch is over: where it had nothing in hand, it is asked again later and later."""
        self.pause_s = 0.0 if busy else min(LONGEST_S, max(FIRST_PAUSE_S, self.pause_s * 2))
        self.not_before = time.monotonic() + self.pause_s

    def hand_over(self) -> str:
        """The process to name in a plan: once, since a plan that nobody answers for leaves the task with nobody."""
        worker, self.worker = self.worker, ""
        return worker
