"""Where the plans of a micro-batch run."""

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.framework.worker.plan import TaskPlan, TaskReport

__all__ = ["Heard", "Place"]

Heard = Callable[[TaskReport | None], None]
"""Takes a report, or None for other news of a place; called from any thread."""


class Place(Protocol):
    """Runs plans, one source task on a thread each; used by one thread, one micro-batch after the other."""

    @property
    def has_begun(self) -> bool:
        """Whether the tasks of the micro-batch run, or have run."""
        ...

    def begin(self, plans: Sequence[TaskPlan], heard: Heard) -> None:
        """Run the plans of a micro-batch; returns at once. `heard` gets a report for each of them, come what may."""
        ...

    def ask_end(self) -> None:
        """This micro-batch is to end at the next boundary."""
        ...

    def ask_stop(self) -> None:
        """The run is to stop."""
        ...
