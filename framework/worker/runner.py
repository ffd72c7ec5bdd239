"""The one that runs a task for one micro-batch and watches it: the clock, the stop, the errors, the end."""

import logging
import threading
import time

import attrs

from headrace.framework.backoff import BackoffConfig
from headrace.framework.distribution import TaskShare
from headrace.framework.errors import (
    DataError,
    FencedError,
    HeadraceError,
    PipelineError,
    RecordTooLargeError,
    TaskError,
    Where,
)
from headrace.framework.metrics import TaskMetrics
from headrace.framework.sink import SinkWriter
from headrace.framework.task import AbstractSourceTask, TaskContext
from headrace.framework.worker.boundary import BoundaryRule
from headrace.framework.worker.pipeline import Pipeline
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.framework.worker.pump import Pump
from headrace.framework.worker.signals import TaskSignals
from headrace.framework.worker.transaction import TaskTransaction
from headrace.offsets.manager import OffsetManager

__all__ = ["TaskRunner"]

log = logging.getLogger(__name__)

STOP_WITHIN_S = 5.0
PUMP_GRACE_S = 2.0
LONGEST_WATCH_S = 60.0
STALLED_S = 10.0


@attrs.define(kw_only=True)
class TaskRunner:
    """Runs one source task for one micro-batch, on the caller's thread and one more.

    `run` never raises for what a task, a source, the data or the configuration does: that is in the report. It
    raises `FencedError` only: another attempt at the same task, in the same generation, has taken its place, and
    the engine has to decide.
    """

    task: AbstractSourceTask
    plan: TaskPlan
    pipeline: Pipeline
    writer: SinkWriter
    rule: BoundaryRule
    share: TaskShare
    backoff: BackoffConfig = attrs.field(factory=BackoffConfig)
    signals: TaskSignals = attrs.field(factory=TaskSignals)
    metrics: TaskMetrics = attrs.field(factory=TaskMetrics)
    _stopping: threading.Event = attrs.field(factory=threading.Event, init=False)

    def run(self) -> TaskReport:
        """Run the task to the end of its part in the micro-batch."""
        report = TaskReport(task_id=self.plan.task_id)
        deadline = time.monotonic() + self.plan.batch_s
        opened = False
        try:
            store = self.writer.open()
            self._hand_over_context(OffsetManager(store))
            opened = True
            self.task.configure(dict(self.plan.props))
            self._pump_and_watch(report, deadline)
        except FencedError:
            raise
        except HeadraceError as error:
            self._fail(report, error)
        except Exception as error:  # noqa: BLE001 - configure is the user's code as well
            failure = TaskError(f"the task failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._fail(report, failure)
        finally:
            if opened:
                self._close_task(report)
            self.pipeline.close()
            self.writer.close()
        self._count(report)
        return report

    @property
    def _where(self) -> Where:
        return Where(connector=self.plan.connector, task=self.plan.task_id)

    def _hand_over_context(self, offsets: OffsetManager) -> None:
        self.task.context = TaskContext(
            connector=self.plan.connector,
            task_id=self.plan.task_id,
            tasks_max=self.plan.tasks_max,
            offsets=offsets,
            distribution=self.share,
            metrics=self.metrics,
            stopping=self._stopping,
        )

    def _pump_and_watch(self, report: TaskReport, deadline: float) -> None:
        transaction = TaskTransaction(
            self.pipeline,
            self.task.context.offsets,
            self.rule,
            self.metrics,
            self.signals.note_due_changed,
            self.task.committed,
            lambda: self.signals.end_asked,
            self.plan.at_most,
        )
        pump = Pump(
            task=self.task, transaction=transaction, signals=self.signals, backoff=self.backoff, where=self._where
        )
        try:
            pump.start()
            self._watch(transaction, pump, deadline)
            self._await_pump(transaction)
            self._settle(transaction, pump)
        except Exception:
            self._stopping.set()
            transaction.discard()
            # close_resources comes next: the pump is given the time to be out of the task by then.
            self.signals.wait_for_pump(PUMP_GRACE_S)
            raise
        finally:
            report.first_read_at = transaction.first_read_at
            report.last_commit_at = transaction.last_commit_at
            self._tell_of_stumbles(report, pump)
        report.ended = self._how_it_ended(pump)

    def _watch(self, transaction: TaskTransaction, pump: Pump, deadline: float) -> None:
        """Keep the clock until the pump is done or is to end.

        A task that gets nowhere is to end as well: its report is the way in which the driver learns of it.
        """
        while not self.signals.pump_ended and not self.signals.end_asked:
            now = time.monotonic()
            patience_s = min(STALLED_S, self.plan.patience_s or STALLED_S) - (pump.stumbles.lasted_s or 0.0)
            if now >= deadline or patience_s <= 0:
                self.signals.ask_end()
                return
            due = transaction.due_in_s()
            watch_s = LONGEST_WATCH_S if due is None else due
            self.signals.wait_for_change(min(deadline - now, watch_s, patience_s))
            transaction.commit_if_due()

    def _await_pump(self, transaction: TaskTransaction) -> None:
        """Give the pump the time to come to a boundary: what it has in hand is sent."""
        while not self.signals.stop_asked and not transaction.is_at_boundary:
            if self.signals.wait_for_pump(0.1):
                return
        self._stopping.set()
        self.signals.wait_for_pump(PUMP_GRACE_S)

    def _settle(self, transaction: TaskTransaction, pump: Pump) -> None:
        transaction.commit_if_due()
        if pump.error is None:
            if pump.exhausted:
                transaction.commit()
            if transaction.seal():
                self.task.committed()
            if transaction.is_broken:
                self.signals.wait_for_pump(PUMP_GRACE_S)  # it is on its way out, with the reason
        if pump.error is None:
            return
        if isinstance(pump.error, DataError | RecordTooLargeError):
            transaction.seal()
        raise pump.error

    def _how_it_ended(self, pump: Pump) -> Ended:
        if pump.has_enough:
            return Ended.RULE_MET
        if pump.exhausted:
            return Ended.EXHAUSTED
        return Ended.STOPPED if self.signals.stop_asked else Ended.TIME

    def _tell_of_stumbles(self, report: TaskReport, pump: Pump) -> None:
        error, lasted_s = pump.stumbles.error, pump.stumbles.lasted_s
        if error is None or lasted_s is None:
            return
        if isinstance(error, PipelineError):
            error.located(self._where)
        report.stalled, report.stalled_s = error, lasted_s

    def _close_task(self, report: TaskReport) -> None:
        """`close_resources`, on a thread that can be left behind."""
        self._stopping.set()
        failures: list[BaseException] = []

        def close() -> None:
            try:
                self.task.close_resources()
            except BaseException as error:  # noqa: BLE001 - reported below, on the runner's thread
                failures.append(error)

        closer = threading.Thread(target=close, name=f"headrace-close-{self._where}", daemon=True)
        closer.start()
        closer.join(STOP_WITHIN_S)
        if closer.is_alive():
            log.error("%s: close_resources took longer than %.0f s and was left behind", self._where, STOP_WITHIN_S)
            report.warnings.append(f"task {self.plan.task_id}: close_resources took longer than {STOP_WITHIN_S:.0f} s")
        for failure in failures:
            log.error("%s: close_resources failed: %s", self._where, failure, exc_info=failure)
            report.warnings.append(f"task {self.plan.task_id}: close_resources failed: {failure}")

    def _fail(self, report: TaskReport, error: HeadraceError) -> None:
        if isinstance(error, PipelineError):
            error.located(self._where)
        report.ended = Ended.FAILED
        report.error = error

    def _count(self, report: TaskReport) -> None:
        report.records = self.metrics.records
        report.bytes = self.metrics.bytes
        report.objects = self.metrics.objects
        report.left_out = list(self.metrics.left_out)
        report.dead_lettered = self.metrics.dead_lettered
        report.transactions = self.metrics.transactions
        report.retries = self.metrics.retries
        report.warnings += self.metrics.warnings
