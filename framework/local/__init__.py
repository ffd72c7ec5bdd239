"""The same loop on threads of this process: for small jobs, and for tests without Spark."""

import threading
from collections.abc import Collection, Mapping, Sequence

import attrs

from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import FencedError, RetriableError
from headrace.framework.worker.execute import execute
from headrace.framework.worker.kept import KEPT
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals

__all__ = ["LocalEngine"]

LOOK_UP_EVERY_S = 0.1


@attrs.define
class LocalEngine:
    """Runs a coordinator's plans on threads, one per source task, until the run is over."""

    coordinator: Coordinator
    _changed: threading.Event = attrs.field(factory=threading.Event, init=False)

    def run(self) -> None:
        """Tick until the run is over; returns when no task is running."""
        try:
            self._run()
        finally:
            KEPT.close()

    def _run(self) -> None:
        coordinator = self.coordinator
        while not coordinator.is_over:
            plans = coordinator.tick()
            if plans:
                self._run_batch(plans)
            elif not coordinator.is_over:
                coordinator.wake.wait(coordinator.pause_s())
                coordinator.wake.clear()

    def _run_batch(self, plans: Sequence[TaskPlan]) -> None:
        reports: dict[int, TaskReport] = {}
        signals = {plan.task_id: TaskSignals() for plan in plans}
        threads = [
            threading.Thread(
                target=self._run_one, args=(plan, signals[plan.task_id], reports), name=f"headrace-task-{plan.task_id}"
            )
            for plan in plans
        ]
        for thread in threads:
            thread.start()
        self.coordinator.note_begun()
        noted: set[int] = set()
        while any(thread.is_alive() for thread in threads):
            self._changed.wait(LOOK_UP_EVERY_S)
            self._changed.clear()
            self._note_ended(reports, noted)
            self._pass_on(signals.values())
        self._note_ended(reports, noted)

    def _note_ended(self, reports: Mapping[int, TaskReport], noted: set[int]) -> None:
        for task_id in set(reports) - noted:
            noted.add(task_id)
            self.coordinator.note_ended(reports[task_id])

    def _pass_on(self, signals: Collection[TaskSignals]) -> None:
        ends = self.coordinator.look_up()
        stops = self.coordinator.is_over
        for signal in signals:
            if stops:
                signal.ask_stop()
            elif ends:
                signal.ask_end()

    def _run_one(self, plan: TaskPlan, signals: TaskSignals, reports: dict[int, TaskReport]) -> None:
        try:
            reports[plan.task_id] = execute(plan, signals)
        except FencedError as error:
            # With threads there are no second attempts, so this was a rival whose own claim came too late: the topic
            # says at the next tick whose turn it is, and if it is ours the task goes on.
            again = RetriableError(str(error))
            again.__cause__ = error
            reports[plan.task_id] = TaskReport(task_id=plan.task_id, ended=Ended.FAILED, error=again)
        finally:
            self._changed.set()
