"""The clock of a run without Spark."""

import queue
from collections.abc import Iterator, Sequence

import attrs

from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.local.place import Place
from headrace.framework.worker.plan import TaskPlan, TaskReport

__all__ = ["LocalEngine"]

LOOK_UP_EVERY_S = 0.1


@attrs.define
class LocalEngine:
    """Runs a coordinator's plans in `places`, until the run is over.

    A task has one place for the whole run: what that keeps for it from one micro-batch to the next is found there.
    """

    coordinator: Coordinator
    places: Sequence[Place]
    _news: "queue.SimpleQueue[TaskReport | None]" = attrs.field(factory=queue.SimpleQueue, init=False)

    def run(self) -> None:
        """Tick until the run is over; returns when no task is running."""
        coordinator = self.coordinator
        while not coordinator.is_over:
            plans = coordinator.tick()
            if plans:
                self._run_batch(plans)
            elif not coordinator.is_over:
                coordinator.wake.wait(coordinator.pause_s())
                coordinator.wake.clear()

    def _run_batch(self, plans: Sequence[TaskPlan]) -> None:
        busy = []
        for number, place in enumerate(self.places):
            share = [plan for plan in plans if plan.task_id % len(self.places) == number]
            if share:
                place.begin(share, self._news.put)
                busy.append(place)
        left, begun = len(plans), False
        while left:
            if not begun and (begun := all(place.has_begun for place in busy)):
                self.coordinator.note_begun()
            for report in self._reports():
                left -= 1
                self.coordinator.note_ended(report)
            self._pass_on(busy)

    def _reports(self) -> Iterator[TaskReport]:
        """What there is to take in by now, or by and by."""
        try:
            news = self._news.get(timeout=LOOK_UP_EVERY_S)
            while True:
                if news is not None:
                    yield news
                news = self._news.get_nowait()
        except queue.Empty:
            return

    def _pass_on(self, busy: Sequence[Place]) -> None:
        ends = self.coordinator.look_up()
        stops = self.coordinator.is_over
        for place in busy:
            if stops:
                place.ask_stop()
            elif ends:
                place.ask_end()
