"""What runs in a Spark task: one or several source tasks, each on a thread of its own."""

import os
import pickle
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence

from headrace.framework import registry
from headrace.framework.errors import FencedError
from headrace.framework.worker.execute import configured, execute
from headrace.framework.worker.plan import TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets.kafka.control import ControlTail
from headrace.offsets.kafka.records import Control, Generation
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["run_tasks"]


def run_tasks(groups: Iterable[Sequence[TaskPlan]], source: bytes | None) -> Iterator[TaskReport]:
    """Run the plans of a partition and give back their reports: for `mapPartitions`.

    `source` is the pickled class of a task that no plugin names. Raises `FencedError` for a fencing within the
    generation, so that Spark decides: a retry, or the other copy has it. Its siblings have settled by then.
    """
    for plans in groups:
        if source is not None:
            # Spark's own pickles: the driver of this very application has made them.
            registry.remember(plans[0].props["connector.class"], pickle.loads(source))  # noqa: S301
        yield from _run_together(plans)


def _run_together(plans: Sequence[TaskPlan]) -> list[TaskReport]:
    signals = {plan.task_id: TaskSignals() for plan in plans}
    reports: list[TaskReport] = []
    fenced: list[FencedError] = []

    def run_one(plan: TaskPlan) -> None:
        try:
            report = execute(plan, signals[plan.task_id])
        except FencedError as error:
            fenced.append(error)
            for other in signals.values():
                other.ask_stop()
        else:
            report.worker = f"{socket.gethostname()}:{os.getpid()}"
            reports.append(report)

    tail = _tail(plans[0], signals)
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


def _tail(plan: TaskPlan, signals: dict[int, TaskSignals]) -> ControlTail:
    def hear(control: Control) -> None:
        for signal in signals.values():
            if control.stop:
                signal.ask_stop()
            elif control.end_batch and control.batch == plan.batch:
                signal.ask_end()

    return ControlTail(
        settings=KafkaSettings.of(configured(plan.props)),
        partitions=plan.partitions,
        positions=dict(plan.snapshot.positions),
        generation=Generation(generation=plan.generation, owner=plan.owner),
        hear=hear,
    )
