"""What a run adds up to, from the reports of its tasks and from the counters on the offsets topic."""

import time
from typing import TYPE_CHECKING

import attrs

from headrace.framework.driver.summary import Progress, RunSummary, TaskSummary
from headrace.framework.errors import HeadraceError
from headrace.framework.worker.plan import TaskReport
from headrace.offsets.kafka.records import Counters

if TYPE_CHECKING:
    from headrace.framework.driver.enumeration import EnumeratorHost
    from headrace.offsets.kafka.claim import Claim

__all__ = ["Account"]

COUNTED = ("records", "bytes", "objects", "transactions", "dead_lettered")


@attrs.define
class Account:
    """The totals of one run. What failed is read again and reported again: it counts once all the same.

    A task's counters on the topic are the truth, as far as they have been read; the sum of its reports falls short of
    it where an attempt could not report. The larger of the two is nearer to it.
    """

    connector: str
    tasks: int
    claim: "Claim"
    warnings: list[str] = attrs.field(factory=list, init=False)
    _reported: dict[int, Counters] = attrs.field(factory=dict, init=False)
    _left_out: dict[str, None] = attrs.field(factory=dict, init=False)
    _started_at: float = attrs.field(factory=time.time, init=False)
    _first_read_at: float | None = attrs.field(default=None, init=False)
    _last_commit_at: float | None = attrs.field(default=None, init=False)

    def take_in(self, report: TaskReport) -> None:
        """Add what an attempt has reported."""
        known = self._reported.get(report.task_id, Counters())
        self._reported[report.task_id] = known.plus({name: getattr(report, name) for name in COUNTED})
        self._left_out.update(dict.fromkeys(report.left_out))
        for word in report.warnings:
            self.warn(word)
        if report.first_read_at is not None:
            self._first_read_at = min(self._first_read_at or report.first_read_at, report.first_read_at)
        if report.last_commit_at is not None:
            self._last_commit_at = max(self._last_commit_at or 0.0, report.last_commit_at)

    def warn(self, word: str) -> None:
        """Something for the summary's warnings, once."""
        if word not in self.warnings:
            self.warnings.append(word)

    def progress(self, host: "EnumeratorHost | None") -> Progress:
        """What is committed so far; from any thread."""
        tasks = self._task_summaries()
        return Progress(
            records=sum(task.records for task in tasks),
            bytes=sum(task.bytes for task in tasks),
            objects=sum(task.objects for task in tasks) + (host.completed if host else 0),
            objects_known=host.known if host else 0,
            transactions=sum(task.transactions for task in tasks),
        )

    def summary(self, host: "EnumeratorHost | None", error: HeadraceError | None, *, exactly_once: bool) -> RunSummary:
        """The whole run, at its end."""
        done, tasks = self.progress(host), self._task_summaries()
        working_s = (self._last_commit_at or 0.0) - (self._first_read_at or 0.0)
        return RunSummary(
            connector=self.connector,
            state="COMPLETED" if error is None else "FAILED",
            delivery="exactly_once" if exactly_once else "at_least_once",
            duration_s=round(time.time() - self._started_at, 3),
            records_per_s=round(done.records / working_s, 1) if working_s > 0 else 0.0,
            records=done.records,
            bytes=done.bytes,
            objects=done.objects,
            skipped=len(self._left_out) + (host.skipped if host else 0),
            dead_lettered=sum(task.dead_lettered for task in tasks),
            transactions=done.transactions,
            warnings=(*self.warnings, *self.claim.view.passed_over, *(host.warnings if host else ())),
            tasks=tuple(tasks),
            error=None if error is None else str(error),
        )

    def _task_summaries(self) -> list[TaskSummary]:
        return [self._task_summary(task_id) for task_id in range(self.tasks)]

    def _task_summary(self, task_id: int) -> TaskSummary:
        counted, reported = self.claim.view.counters(task_id), self._reported.get(task_id, Counters())
        if counted.owner != self.claim.generation.owner:
            counted = Counters()
        larger = {name: max(getattr(counted, name), getattr(reported, name)) for name in COUNTED}
        return TaskSummary(task=task_id, **larger)
