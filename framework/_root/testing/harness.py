"""Run a task of yours, without Spark and without Kafka."""

from collections.abc import Mapping
from typing import Any

import attrs

from headrace.framework.task import AbstractSourceTask
from headrace.framework.worker.execute import task_runner
from headrace.framework.worker.plan import TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets.key import OffsetManagerKey
from headrace.testing.memory import MemoryKafka, MemoryRecord, MemoryWriter

__all__ = ["TaskHarness"]


@attrs.define
class TaskHarness:
    """One source task, run by the framework's own loop, on a Kafka in memory.

        harness = TaskHarness(MyTask, {"name": "mine", "topic": "t", "my.key": "value"})
        harness.run()
        assert harness.values() == [b"1", b"2"]

    Each `run` is a run of its own, with a new task object, from the offsets that the last one committed. The error
    that failed a task is raised. What a run needs of the configuration and a test does not care about is filled in.
    """

    task: type[AbstractSourceTask]
    props: Mapping[str, str] = attrs.field(factory=dict)
    kafka: MemoryKafka = attrs.field(factory=MemoryKafka, kw_only=True)
    task_id: int = attrs.field(default=0, kw_only=True)
    tasks_max: int = attrs.field(default=1, kw_only=True)
    run_s: float = attrs.field(default=30.0, kw_only=True)

    @property
    def full_props(self) -> dict[str, str]:
        """The configuration with which the task runs."""
        return {
            "name": "test",
            "connector.class": f"{self.task.__module__}:{self.task.__qualname__}",
            "bootstrap.servers": "127.0.0.1:1",
            "tasks.max": str(self.tasks_max),
            **self.props,
        }

    def run(self, signals: TaskSignals | None = None) -> TaskReport:
        """Run the task until its iterator is exhausted, or for `run_s`; raise what failed it."""
        report = self.attempt(signals)
        if report.error is not None:
            raise report.error
        return report

    def attempt(self, signals: TaskSignals | None = None, *, writer: MemoryWriter | None = None) -> TaskReport:
        """The same, with a failure left in the report."""
        props = self.full_props
        plan = TaskPlan(
            connector=props["name"],
            task_id=self.task_id,
            tasks_max=self.tasks_max,
            generation=1,
            owner="test",
            props=props,
            bounded=True,
            batch=1,
            batch_s=self.run_s,
            partitions=1,
        )
        return task_runner(
            self.task(), plan, writer=writer or MemoryWriter(self.kafka), signals=signals or TaskSignals()
        ).run()

    def records(self, topic: str | None = None) -> list[MemoryRecord]:
        """What is committed on a topic, or on all."""
        return [record for record in self.kafka.records if topic in {None, record.topic}]

    def values(self, topic: str | None = None) -> list[bytes | None]:
        """The committed values."""
        return self.kafka.values(topic)

    def offset(self, source_partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is committed of the progress of a piece of the source."""
        key = OffsetManagerKey(source_partition)
        return self.kafka.offsets.get([key]).get(key)
