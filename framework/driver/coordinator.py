"""One run of one connector, from its claim to its summary: discover, assign, plan, take in reports."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.backoff import LONGEST_S
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.summary import Progress, RunSummary, TaskSummary
from headrace.framework.errors import HeadraceError, RetriableError, TakenOverError
from headrace.framework.splits import SplitSource
from headrace.framework.task import AbstractSourceTask
from headrace.framework.worker.plan import Ended, OffsetsSnapshot, TaskPlan, TaskReport
from headrace.offsets.kafka.records import Control
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["Coordinator", "TaskState"]

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
GIVE_UP_AFTER_S = 120.0


@attrs.define
class TaskState:
    """What the driver knows of a task between its micro-batches."""

    exhausted: bool = False
    pause_s: float = 0.0
    not_before: float = 0.0
    failing_since: float | None = None

    def came_back(self, *, with_records: bool) -> None:
        """The task has reported: with nothing in hand, it is asked again later and later."""
        self.failing_since = None
        self.pause_s = 0.0 if with_records else min(LONGEST_S, max(FIRST_PAUSE_S, self.pause_s * 2))
        self.not_before = time.monotonic() + self.pause_s

    def failed(self) -> float:
        """The task has failed in a way that another attempt may mend; for how long it has been failing."""
        now = time.monotonic()
        self.failing_since = self.failing_since or now
        self.pause_s = min(LONGEST_S, max(FIRST_PAUSE_S, self.pause_s * 2))
        self.not_before = now + self.pause_s
        return now - self.failing_since


@attrs.define(kw_only=True)
class Coordinator:
    """Drives one run. An engine calls `tick` until `is_over`, runs the plans that it gets, and hands in the reports.

    Everything is called from one thread, but for `ask_stop` and `wake`.
    """

    config: SourceCommonConfig
    props: Mapping[str, str]
    source: SplitSource[Any] | AbstractSourceTask
    claim: "Claim"
    bounded: bool
    exactly_once: bool
    wake: threading.Event = attrs.field(factory=threading.Event)
    error: HeadraceError | None = attrs.field(default=None, init=False)
    warnings: list[str] = attrs.field(factory=list, init=False)
    _host: EnumeratorHost | None = attrs.field(default=None, init=False)
    _states: dict[int, TaskState] = attrs.field(factory=dict, init=False)
    _stop_asked: threading.Event = attrs.field(factory=threading.Event, init=False)
    _batch: int = attrs.field(default=0, init=False)
    _running: set[int] = attrs.field(factory=set, init=False)
    _skipped: int = attrs.field(default=0, init=False)
    _dead_lettered: int = attrs.field(default=0, init=False)
    _started_at: float = attrs.field(factory=time.time, init=False)
    _first_read_at: float | None = attrs.field(default=None, init=False)
    _last_commit_at: float | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        """Begin discovery."""
        tasks = self.config.tasks_max
        self._states = {task_id: TaskState() for task_id in range(tasks)}
        if isinstance(self.source, SplitSource):
            host = self._host = EnumeratorHost(self.config.name, tasks, self.claim.view, self.bounded, self.wake)
            host.start(self.source, None)

    @property
    def is_over(self) -> bool:
        """Whether the run has nothing more to do, or is not to do it."""
        if self.error is not None or self._stop_asked.is_set():
            return True
        if not self.bounded:
            return False
        if self._host is not None:
            return self._host.is_drained
        return all(state.exhausted for state in self._states.values())

    def tick(self) -> list[TaskPlan]:
        """Look at the topic and at what discovery has brought; the plans of the tasks that have work now.

        An error ends the run; it is in `error`, and the answer is empty.
        """
        try:
            self.claim.follow()
            if self._host is not None:
                self._host.work_off()
            if self.is_over:
                return []
            plans = [self._plan(task_id) for task_id in self._tasks_with_work()]
        except HeadraceError as error:
            self.error = error
            return []
        self._batch += 1
        self._running = {plan.task_id for plan in plans}
        return plans

    def look_up(self) -> bool:
        """While a micro-batch runs: follow the topic and discovery; whether an idle task has got work.

        Also true when the run is to end.
        """
        try:
            self.claim.follow()
            if self._host is not None:
                self._host.work_off()
        except HeadraceError as error:
            self.error = error
        return self.is_over or any(task_id not in self._running for task_id in self._tasks_with_work())

    def note_ended(self, report: TaskReport) -> None:
        """A task's part in the running micro-batch is over: it is idle, and what it has finished is no work for it."""
        self._running.discard(report.task_id)
        self._take_in(report)

    def take_in(self, reports: Sequence[TaskReport]) -> None:
        """Take in what the tasks report: hints, but for the errors."""
        self._running = set()
        for report in reports:
            self._take_in(report)

    def pause_s(self) -> float:
        """How long to wait for `wake` before the next tick."""
        now = time.monotonic()
        due = [state.not_before - now for state in self._states.values() if state.not_before > now]
        return min([self.config.discovery_interval_ms / 1000, *due])

    def ask_stop(self) -> None:
        """Stop the run: from any thread."""
        self._stop_asked.set()
        self.wake.set()

    @property
    def stop_asked(self) -> bool:
        """Whether somebody has asked for a stop."""
        return self._stop_asked.is_set()

    def progress(self) -> Progress:
        """What this run has committed so far, as far as the driver has read it; from any thread."""
        tasks = self._task_summaries()
        return Progress(
            records=sum(task.records for task in tasks),
            bytes=sum(task.bytes for task in tasks),
            objects=sum(task.objects for task in tasks),
            objects_known=self._host.known if self._host else 0,
            transactions=sum(task.transactions for task in tasks),
        )

    def tell_tasks(self, *, stop: bool = False, end_batch: bool = False) -> None:
        """Put a word to the running tasks on the topic.

        A driver that has been taken over has nothing to say any more: its tasks learn that by themselves.
        """
        try:
            self.claim.tell(Control(batch=self._batch, stop=stop, end_batch=end_batch))
        except TakenOverError as error:
            self.error = self.error or error
        except HeadraceError as error:
            log.warning("%s: the tasks could not be told to end, their clock will: %s", self.config.name, error)

    def finish(self) -> RunSummary:
        """End discovery, sum up, and write down the end if it is a clean one.

        After a failure nothing is written: a task may have been left behind, and the next claim will fence it.
        """
        if self._host is not None:
            self._host.close()
        try:
            if not isinstance(self.error, TakenOverError):
                self.claim.log.read_to_high_watermark()
                self.claim.refuse_taken_over()
                if self.error is None:
                    self.claim.stopped()
        except HeadraceError as error:
            self.error = self.error or error
        finally:
            summary = self._summary()
            self.claim.close()
        return summary

    def _tasks_with_work(self) -> list[int]:
        now = time.monotonic()
        host = self._host
        return [
            task_id
            for task_id, state in self._states.items()
            if state.not_before <= now
            and (bool(host.assigned.get(task_id)) if host else not (self.bounded and state.exhausted))
        ]

    def _plan(self, task_id: int) -> TaskPlan:
        splits: list[tuple[int, bytes]] = []
        keys: list[OffsetManagerKey] | None = None
        events: list[Mapping[str, Any]] = []
        told = False
        if self._host is not None and isinstance(self.source, SplitSource):
            serializer = self.source.split_serializer
            assigned = self._host.plan(task_id)
            splits = [(serializer.version, serializer.serialize(split)) for split in assigned]
            keys = [OffsetManagerKey(split.source_partition) for split in assigned]
            events = self._host.events.pop(task_id, [])
            told = self._host.is_told_everything(task_id)
        return TaskPlan(
            connector=self.config.name,
            task_id=task_id,
            tasks_max=self.config.tasks_max,
            generation=self.claim.generation.generation,
            owner=self.claim.generation.owner,
            props=self.props,
            bounded=self.bounded,
            batch=self._batch + 1,
            batch_s=self.config.batch_max_ms / 1000,
            partitions=len(self.claim.log.positions),
            splits=splits,
            no_more_splits=told,
            events=events,
            snapshot=self._snapshot(keys),
        )

    def _snapshot(self, keys: list[OffsetManagerKey] | None) -> OffsetsSnapshot:
        view = self.claim.view
        if keys is None:
            entries = dict(view.entries)
        else:
            wanted = (raw for key in keys for raw in view.raw_keys(key))
            entries = {raw: view.entries[raw] for raw in wanted if raw in view.entries}
        return OffsetsSnapshot(entries={**view.beside, **entries}, positions=dict(self.claim.log.positions))

    def _take_in(self, report: TaskReport) -> None:
        state = self._states[report.task_id]
        self._skipped += report.skipped
        self._dead_lettered += report.dead_lettered
        self.warnings += [warning for warning in report.warnings if warning not in self.warnings]
        self._note_times(report)
        if self._host is not None:
            self._host.take_in(
                report.task_id, finished=report.finished_splits, wants=report.wants_splits, events=report.events
            )
        if report.error is None:
            state.exhausted = report.ended is Ended.EXHAUSTED
            state.came_back(with_records=report.records > 0 or report.ended is Ended.TIME)
        elif isinstance(report.error, RetriableError) and state.failed() < GIVE_UP_AFTER_S:
            log.warning("%s; the task is planned again in %.1f s", report.error, state.pause_s)
        elif self.error is None or isinstance(report.error, TakenOverError):
            self.error = report.error

    def _note_times(self, report: TaskReport) -> None:
        if report.first_read_at is not None:
            self._first_read_at = min(self._first_read_at or report.first_read_at, report.first_read_at)
        if report.last_commit_at is not None:
            self._last_commit_at = max(self._last_commit_at or 0.0, report.last_commit_at)

    def _summary(self) -> RunSummary:
        tasks = self._task_summaries()
        records = sum(task.records for task in tasks)
        working_s = (self._last_commit_at or 0.0) - (self._first_read_at or 0.0)
        return RunSummary(
            connector=self.config.name,
            state="COMPLETED" if self.error is None else "FAILED",
            delivery="exactly_once" if self.exactly_once else "at_least_once",
            duration_s=round(time.time() - self._started_at, 3),
            records_per_s=round(records / working_s, 1) if working_s > 0 else 0.0,
            records=records,
            bytes=sum(task.bytes for task in tasks),
            objects=sum(task.objects for task in tasks),
            skipped=self._skipped + (self._host.skipped if self._host else 0),
            dead_lettered=self._dead_lettered,
            transactions=sum(task.transactions for task in tasks),
            warnings=(*self.warnings, *(self._host.warnings if self._host else ())),
            tasks=tuple(tasks),
            error=None if self.error is None else str(self.error),
        )

    def _task_summaries(self) -> list[TaskSummary]:
        return [self._task_summary(task_id) for task_id in range(self.config.tasks_max)]

    def _task_summary(self, task_id: int) -> TaskSummary:
        done = self.claim.view.counters(task_id)
        if done.owner != self.claim.generation.owner:
            return TaskSummary(task=task_id)
        return TaskSummary(
            task=task_id, records=done.records, bytes=done.bytes, objects=done.objects, transactions=done.transactions
        )
