"""Plans on threads of this process: for a task alone, and for tests."""

import threading
from collections.abc import Collection, Sequence

import attrs

from headrace.framework.errors import FencedError, RetriableError
from headrace.framework.local.place import Heard
from headrace.framework.worker.execute import execute
from headrace.framework.worker.kept import KEPT
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals

__all__ = ["TaskThreads"]


@attrs.define
class TaskThreads:
    """A `Place` in this process."""

    _signals: Collection[TaskSignals] = attrs.field(default=(), init=False)

    @property
    def has_begun(self) -> bool:
        """Always: a thread that is started runs."""
        return True

    def begin(self, plans: Sequence[TaskPlan], heard: Heard) -> None:
        """Start a thread for each plan."""
        signals = [TaskSignals() for _ in plans]
        self._signals = signals
        for plan, signal in zip(plans, signals, strict=True):
            name = f"headrace-task-{plan.task_id}"
            threading.Thread(target=lambda *given: heard(_report(*given)), args=(plan, signal), name=name).start()

    def ask_end(self) -> None:
        """Tell the tasks at once."""
        for signal in self._signals:
            signal.ask_end()

    def ask_stop(self) -> None:
        """Tell the tasks at once."""
        for signal in self._signals:
            signal.ask_stop()

    def close(self) -> None:
        """Close what this process has kept for its tasks."""
        KEPT.close()


def _report(plan: TaskPlan, signals: TaskSignals) -> TaskReport:
    try:
        return execute(plan, signals)
    except FencedError as error:
        # Here there are no second attempts, so this was a rival whose own claim came too late: the topic says at the
        # next tick whose turn it is, and if it is ours the task goes on.
        again = RetriableError(str(error))
        again.__cause__ = error
        return TaskReport(task_id=plan.task_id, ended=Ended.FAILED, error=again)
