"""What runs in a Spark task: one or several source tasks, each on a thread of its own."""

import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence

import attrs
from pyspark import TaskContext

from headrace.framework import registry
from headrace.framework.errors import FencedError, RetriableError
from headrace.framework.worker.execute import configured, execute
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets.kafka.control import ControlTail
from headrace.offsets.kafka.records import BegunWord, Control, EndedWord, Generation
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.words import TaskWords

__all__ = ["run_tasks"]


def run_tasks(groups: Iterable[Sequence[TaskPlan]], source: bytes | None, tasks: int) -> Iterator[TaskReport]:
    """Run the plans of a partition and give back their reports: for `mapPartitions`.

    `source` is the pickled class of a task that no plugin names, `tasks` how many source tasks the whole micro-batch
    has. Raises `FencedError` for a fencing within the generation, so that Spark decides: a retry, or the other copy
    has it. Its siblings have settled by then.
    """
    context = TaskContext.get()
    is_retry = context is not None and context.attemptNumber() > 0
    for plans in groups:
        if is_retry:
            # Another attempt has had the ids since the reports from which the plans know who was last.
            plans = [attrs.evolve(plan, last_worker="") for plan in plans]  # noqa: PLW2901 - the same plans
        if source is not None:
            # Spark's own pickles: the driver of this very application has made them.
            registry.remember(plans[0].props["connector.class"], pickle.loads(source))  # noqa: S301
        yield from _run_together(plans, has_siblings=tasks > 1)


def _run_together(plans: Sequence[TaskPlan], *, has_siblings: bool) -> list[TaskReport]:
    settings = KafkaSettings.of(configured(plans[0].props))
    words = TaskWords(settings)
    signals = {plan.task_id: TaskSignals() for plan in plans}
    reports: list[TaskReport] = []
    fenced: list[FencedError] = []

    def run_one(plan: TaskPlan) -> None:
        if plan.patience_s is not None:
            words.tell(plan.task_id, BegunWord(generation=plan.generation, owner=plan.owner, batch=plan.batch))
        try:
            report = execute(plan, signals[plan.task_id])
        except FencedError as error:
            fenced.append(error)
            for other in signals.values():
                other.ask_stop()
        else:
            reports.append(report)
            # Who was told to end, or ran out of time, ends with the others; who got nowhere may have done so alone.
            if has_siblings and (report.stalled is not None or not signals[plan.task_id].end_asked):
                words.tell(plan.task_id, _word(plan, report))

    tail = _tail(settings, plans[0], signals)
    tail.start()
    try:
        threads = [
            threading.Thread(target=run_one, args=(plan,), name=f"headrace-task-{plan.task_id}") for plan in plans
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        tail.close()
    if fenced:
        raise fenced[0]
    return reports


def _word(plan: TaskPlan, report: TaskReport) -> EndedWord:
    """What of a report the driver can use at once: the whole of it comes with the whole batch."""
    return EndedWord(
        generation=plan.generation,
        owner=plan.owner,
        batch=plan.batch,
        exhausted=report.ended is Ended.EXHAUSTED,
        records=report.records,
        wants_splits=report.wants_splits,
        rule_met=report.ended is Ended.RULE_MET,
        fatal=report.error is not None and not isinstance(report.error, RetriableError),
    )


def _tail(settings: KafkaSettings, plan: TaskPlan, signals: dict[int, TaskSignals]) -> ControlTail:
    def hear(control: Control) -> None:
        for signal in signals.values():
            if control.stop:
                signal.ask_stop()
            elif control.end_batch and control.batch == plan.batch:
                signal.ask_end()

    return ControlTail(
        settings=settings,
        partitions=plan.partitions,
        positions=dict(plan.snapshot.positions),
        generation=Generation(generation=plan.generation, owner=plan.owner),
        hear=hear,
    )
