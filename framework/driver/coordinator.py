"""One run of one connector, from its claim to its summary: discover, assign, plan, take in reports."""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.config import Boundary, SourceCommonConfig
from headrace.framework.driver.account import Account
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.giving_back import GivingBack
from headrace.framework.driver.hearing import Hearing
from headrace.framework.driver.rollup import RollUp
from headrace.framework.driver.rule_watch import RuleWatch, Signs
from headrace.framework.driver.stall import Stall, patience_with
from headrace.framework.driver.summary import Progress, RunSummary
from headrace.framework.driver.task_state import TaskState
from headrace.framework.errors import HeadraceError, RetriableError, TakenOverError
from headrace.framework.splits import SplitSource
from headrace.framework.task import AbstractSourceTask
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.offsets.kafka.records import Control, EndedWord, EnumeratorState
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["Coordinator"]

log = logging.getLogger(__name__)


@attrs.define(kw_only=True)
class Coordinator:
    """Drives one run. An engine calls `tick` until `is_over`, runs the plans that it gets, and hands in the reports.

    Everything is called from one thread at a time, but for `ask_stop` and `wake`.
    """

    config: SourceCommonConfig
    props: Mapping[str, str]
    source: SplitSource[Any] | AbstractSourceTask
    claim: "Claim"
    bounded: bool
    exactly_once: bool
    wake: threading.Event = attrs.field(factory=threading.Event)
    error: HeadraceError | None = attrs.field(default=None, init=False)
    _hearing: Hearing = attrs.field(init=False)
    _account: Account = attrs.field(init=False)
    _host: EnumeratorHost | None = attrs.field(default=None, init=False)
    _housekeeping: RollUp | None = attrs.field(default=None, init=False)
    _giving_back: GivingBack | None = attrs.field(default=None, init=False)
    _states: dict[int, TaskState] = attrs.field(factory=dict, init=False)
    _stop_asked: threading.Event = attrs.field(factory=threading.Event, init=False)
    _batch: int = attrs.field(default=0, init=False)
    _running: set[int] = attrs.field(factory=set, init=False)
    _unreported: set[int] = attrs.field(factory=set, init=False)
    _not_begun: set[int] = attrs.field(factory=set, init=False)
    _heard: dict[int, EndedWord] = attrs.field(factory=dict, init=False)
    _remembered: Mapping[str, Any] | None = attrs.field(default=None, init=False)
    _rule: RuleWatch = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        by_time = self.config.transaction_boundary is Boundary.INTERVAL
        commits_every_s = self.config.transaction_boundary_interval_ms / 1000 if by_time else 0.0
        self._rule = RuleWatch(self.config.stop_rule, commits_every_s)
        self._hearing = Hearing(self.config.name, self.claim)
        self._account = Account(self.config.name, self.config.tasks_max, self.claim)

    def start(self) -> None:
        """Begin discovery, where an earlier run's enumerator has left it."""
        tasks, name = self.config.tasks_max, self.config.name
        self._states = {
            task_id: TaskState(Stall(name, f"task {task_id}", self.warn, "the task is planned again"))
            for task_id in range(tasks)
        }
        if isinstance(self.source, SplitSource):
            known = self.claim.view.remembered
            self._remembered = None if known is None else known.state
            host = self._host = EnumeratorHost(name, tasks, self.claim.view, self.bounded, self.wake)
            host.start(self.source, self._remembered)
            self._giving_back = GivingBack(host, self.claim)
            self._housekeeping = RollUp(self.source, self.claim, self.config.rollup_min_entries, self.warn)

    @property
    def is_over(self) -> bool:
        """Whether the run has nothing more to do, or is not to do it."""
        if self.error is not None or self._stop_asked.is_set() or self._rule.met:
            return True
        if self._host is not None:
            return self._host.is_drained
        return self.bounded and all(state.exhausted for state in self._states.values())

    def look_ahead(self) -> None:
        """While an engine gets ready for the first tick: take in what discovery has brought.

        An error ends the run with that tick. Nothing else is looked at: for the stop rule the run has not begun.
        """
        try:
            if self._host is not None:
                self._host.work_off()
        except HeadraceError as error:
            self.error = error

    def tick(self) -> list[TaskPlan]:
        """Look at the topic and at what discovery has brought; the plans of the tasks that have work now.

        An error ends the run; it is in `error`, and the answer is empty.
        """
        try:
            self.claim.follow()
            if self._host is not None:
                self._host.work_off()
            self._look_at_rule()
            self._move_splits()
            self._remember()
            if self.is_over:
                return []
            self._keep_small()
            plans = [self._plan(task_id) for task_id in self._tasks_with_work()]
        except HeadraceError as error:
            self.error = error
            return []
        self._batch += 1
        self._running = {plan.task_id for plan in plans}
        self._unreported, self._not_begun = set(self._running), set(self._running)
        self._heard = {}
        return plans

    def look_up(self) -> bool:
        """While a micro-batch runs: follow the topic and discovery; whether the batch is to end before its time.

        That is so when there is work for an idle task, or for one that would never be idle, and when the run is to end.
        """
        try:
            self.claim.follow()
            self._hear()
            if self._host is not None:
                self._host.work_off()
            self._look_at_rule()
        except HeadraceError as error:
            self.error = error
        is_failing = any(word.fatal for word in self._heard.values())
        return self.is_over or is_failing or self._has_news()

    def note_begun(self) -> None:
        """The tasks of the running micro-batch have begun: for engines that know it without a word from them."""
        self._not_begun = set()

    def note_ended(self, report: TaskReport) -> None:
        """A task's part in the running micro-batch is over: it is idle, and what it has finished is no work for it."""
        self._running.discard(report.task_id)
        self._take_in(report)

    def take_in(self, reports: Sequence[TaskReport]) -> None:
        """The micro-batch is over: take in what its tasks report, hints but for the errors.

        Of a batch that the engine could not finish there are no reports; it is planned again, from the topic.
        """
        self._running = set()
        for report in reports:
            self._take_in(report)
        for task_id in self._unreported:
            if self._host is not None:
                self._host.put_back(task_id)
        self._unreported, self._heard = set(), {}

    def note_lost(self, task_ids: Collection[int], because: HeadraceError) -> None:
        """These tasks were lost in the micro-batch for good, and no others: called before `take_in`.

        What they have left goes to others with the next tick; where all are lost there are no others.
        """
        if self._giving_back is not None and len(task_ids) < self.config.tasks_max:
            for task_id in task_ids:
                self._giving_back.note_lost(task_id, because)

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

    @property
    def stalled(self) -> tuple[str, ...]:
        """What does not get on right now, since when and why; from any thread."""
        words = [state.stall.word for state in list(self._states.values())]
        found = [word for word in words if word is not None]
        return (*found, *(self._host.stalled if self._host else ()))

    def progress(self) -> Progress:
        """What this run has committed so far, as far as the driver has read it; from any thread."""
        return self._account.progress(self._host)

    def warn(self, word: str) -> None:
        """Have the summary say something, once, under its warnings."""
        self._account.warn(word)

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

        After a failure nothing is written: a task may have been left behind, and the next claim will fence it. A run
        that has done its work is not failed by a topic that does not answer any more: the totals are then what the
        tasks have reported, with a warning.
        """
        if self.stop_asked:
            self.claim.hurry()
        try:
            if not isinstance(self.error, TakenOverError):
                self._look_back()
        finally:
            if self._host is not None:
                self._host.close()
            summary = self._account.summary(self._host, self.error, exactly_once=self.exactly_once)
            self.claim.close()
        return summary

    def _look_back(self) -> None:
        try:
            self.claim.log.read_to_high_watermark()
            self.claim.refuse_taken_over()
            if self.error is None:
                self._remember()
                self._keep_small(is_end=True)
                self.claim.stopped()
        except TakenOverError as error:
            self.error = self.error or error
        except HeadraceError as error:
            word = f"the end of the run could not be checked and noted on the offsets topic: {error}"
            log.warning("%s: %s", self.config.name, word)
            self.warn(word)

    def _remember(self) -> None:
        """Store what the enumerator has to remember, before a reader gets what was assigned by it."""
        state = None if self._host is None else self._host.state()
        if state is not None and state != self._remembered:
            self.claim.remember(EnumeratorState(state=state))
            self._remembered = dict(state)

    def _hear(self) -> None:
        """Take in the words of tasks that are through before the others."""
        for task_id in list(self._running):
            if task_id in self._not_begun and self._hearing.has_begun(task_id, self._batch):
                self._not_begun.discard(task_id)
            word = self._hearing.ended(task_id, self._batch)
            if word is None:
                continue
            self._running.discard(task_id)
            self._heard[task_id] = word
            self._rule.met |= word.rule_met
            self._states[task_id].came_back(busy=word.exhausted and word.records > 0)
            if self._host is None:
                continue
            if word.exhausted:
                self._host.note_through(task_id)
            if word.wants_splits:
                self._host.ask(task_id)

    def _look_at_rule(self) -> None:
        stalled = any(state.stall.is_on for state in self._states.values())
        busy = not self._running.isdisjoint(self._not_begun)
        if self._host is not None:
            self._rule.met |= self._host.is_rule_met
            stalled, busy = stalled or self._host.is_stalled, busy or self._host.is_reading
            unsure = self._host.is_looking
        else:
            unsure = bool(self._running) and self.config.transaction_boundary is Boundary.OBJECT
        self._rule.look(Signs(records=self.progress().records, stalled=stalled, busy=busy, unsure=unsure))

    def _move_splits(self) -> None:
        """Take splits from readers that are lost or do not want them, and have them assigned anew."""
        if self._giving_back is not None and not self.is_over:
            for task_id in self._giving_back.settle():
                self._states[task_id].stall.over()

    def _keep_small(self, *, is_end: bool = False) -> None:
        if self._host is not None and self._housekeeping is not None and not self.stop_asked:
            self._housekeeping.look(self._host, is_end=is_end)

    def _has_news(self) -> bool:
        if any(task_id not in self._running for task_id in self._tasks_with_work()):
            return True
        return self._host is not None and any(self._host.has_news(task_id) for task_id in self._running)

    def _tasks_with_work(self) -> list[int]:
        now = time.monotonic()
        return [
            task_id
            for task_id, state in self._states.items()
            if state.not_before <= now and self._has_work(task_id, state)
        ]

    def _has_work(self, task_id: int, state: TaskState) -> bool:
        if self._host is not None:
            return self._host.has_work(task_id)
        word = self._heard.get(task_id)
        return not self.bounded or not (state.exhausted or (word is not None and word.exhausted))

    def _plan(self, task_id: int) -> TaskPlan:
        splits: list[tuple[int, bytes]] = []
        keys: list[OffsetManagerKey] | None = None
        events: Sequence[Mapping[str, Any]] = ()
        told = False
        if self._host is not None and isinstance(self.source, SplitSource):
            serializer = self.source.split_serializer
            assigned = self._host.plan(task_id)
            splits = [(serializer.version, serializer.serialize(split)) for split in assigned]
            keys = [OffsetManagerKey(partition) for split in assigned for partition in split.source_partitions]
            events = self._host.plan_events(task_id)
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
            snapshot=self._hearing.snapshot(task_id, keys),
            last_worker=self._states[task_id].hand_over(),
            at_most=self._rule.left(),
            patience_s=self._rule.patience_s(),
        )

    def _take_in(self, report: TaskReport) -> None:
        state, heard = self._states[report.task_id], self._heard.get(report.task_id)
        state.worker = "" if report.error is not None else report.worker
        self._unreported.discard(report.task_id)
        self._account.take_in(report)
        self._rule.met |= report.ended is Ended.RULE_MET
        self._tell_host(report, asked=heard is not None and heard.wants_splits)
        self._judge(report, state.stall)
        state.exhausted = report.error is None and report.ended is Ended.EXHAUSTED
        if heard is None:
            busy = report.records > 0 or (report.ended is Ended.TIME and report.stalled is None)
            state.came_back(busy=busy and report.error is None)

    def _tell_host(self, report: TaskReport, *, asked: bool) -> None:
        if self._host is None:
            return
        if report.error is not None:
            # Whether it had been given what it was sent nobody knows: it may get it twice.
            self._host.put_back(report.task_id)
        self._host.take_in(
            report.task_id,
            finished=report.finished_splits,
            wants=report.wants_splits and not asked,
            events=report.events,
        )
        if self._giving_back is not None:
            self._giving_back.take_in(report, self._batch)

    def _judge(self, report: TaskReport, stall: Stall) -> None:
        """Whether what a task reports ends the run: what another attempt may mend does so after a while, if ever."""
        failure = report.error or report.stalled
        if failure is None or report.records:
            stall.over()
        if failure is None:
            return
        if isinstance(failure, RetriableError):
            lasted_s = stall.failed(str(failure), lasted_s=report.stalled_s)
            patience_s = patience_with(report, self.config.errors_retry_timeout_ms)
            if patience_s is None or lasted_s < patience_s:
                return
        if self.error is None or isinstance(failure, TakenOverError):
            self.error = failure
