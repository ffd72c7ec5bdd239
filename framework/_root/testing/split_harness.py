"""Run a split source of yours, without Spark and without Kafka."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.errors import RetriableError
from headrace.framework.splits import Split, SplitSource
from headrace.framework.worker.execute import make_source, task_runner
from headrace.framework.worker.plan import TaskPlan, TaskReport
from headrace.framework.worker.signals import TaskSignals
from headrace.framework.worker.split_task import SplitSourceTask
from headrace.offsets.key import OffsetManagerKey
from headrace.testing.memory import MemoryKafka, MemoryWriter

__all__ = ["SplitHarness", "SplitRun"]

WITHIN_S = 60.0
SHORT_S = 0.3


@attrs.define
class SplitHarness:
    """One connector of a split source, driven round by round: discovery as on a driver, tasks one after the other.

        harness = SplitHarness({"connector.class": "files", "files.paths": "...", "topic": "t"})
        harness.run()
        assert harness.values() == [b"1", b"2"]

    Each `run` is bounded, and a run of its own, from the offsets that the last one committed. The error that ended it
    is raised. What a configuration needs and a test does not care about is filled in.
    """

    props: Mapping[str, str]
    kafka: MemoryKafka = attrs.field(factory=MemoryKafka, kw_only=True)
    writer: Callable[[MemoryKafka], MemoryWriter] = attrs.field(default=MemoryWriter, kw_only=True)
    topic: str | None = attrs.field(default="records", kw_only=True)
    warnings: list[str] = attrs.field(factory=list, init=False)
    rounds: int = attrs.field(default=0, init=False)

    def run(self, **changes: str) -> None:
        """Read what there is, and end."""
        with self._running(changes, bounded=True) as run:
            run.until(lambda: run.is_over)
            run.write_down()

    @contextmanager
    def running(self, **changes: str) -> "Iterator[SplitRun]":
        """A continuous run, which moves when its `until` or `turn` is called."""
        with self._running({"discovery__interval__ms": "10", **changes}, bounded=False) as run:
            yield run

    @contextmanager
    def in_background(self, **changes: str) -> "Iterator[SplitRun]":
        """A continuous run that moves by itself while the block lasts, in short turns; what ends it is raised then."""
        with self.running(**changes) as run:
            stopping = threading.Event()
            failures: list[Exception] = []

            def turn() -> None:
                try:
                    while not stopping.is_set():
                        run.turn(batch_s=SHORT_S)
                except Exception as error:  # noqa: BLE001 - raised again below
                    failures.append(error)

            thread = threading.Thread(target=turn, name="headrace-split-harness")
            thread.start()
            try:
                yield run
            finally:
                stopping.set()
                thread.join()
            for failure in failures:
                raise failure

    def values(self) -> list[bytes | None]:
        """The committed values."""
        return self.kafka.values()

    def offset(self, **source_partition: Any) -> dict[str, Any] | None:
        """What is committed of the progress of a piece of the source."""
        key = OffsetManagerKey(source_partition)
        return self.kafka.offsets.get([key]).get(key)

    @contextmanager
    def _running(self, changes: Mapping[str, str], *, bounded: bool) -> "Iterator[SplitRun]":
        props = {
            "name": "test",
            "bootstrap.servers": "127.0.0.1:1",
            **({"topic": self.topic} if self.topic else {}),
            **self.props,
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
        source, config = make_source(props)
        assert isinstance(source, SplitSource)  # noqa: S101 - a harness for those
        host = EnumeratorHost(config.name, config.tasks_max, self.kafka.offsets, bounded=bounded)
        run = SplitRun(self, props, source, config, host)
        try:
            host.start(source, None)
            yield run
        finally:
            host.close()
            self.warnings += host.warnings


@attrs.define
class SplitRun:
    """One run of a `SplitHarness`."""

    harness: SplitHarness
    props: Mapping[str, str]
    source: SplitSource[Any]
    config: SourceCommonConfig
    host: EnumeratorHost

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to read and nothing more comes, or what was committed before meets the stop rule."""
        return self.host.is_drained or self.host.is_rule_met

    def until(self, happened: Callable[[], Any], *, batch_s: float = 30.0) -> None:
        """Turn again and again, for at most `batch_s` a task and turn, until something has happened."""
        deadline = time.monotonic() + WITHIN_S
        while not happened():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it has not happened within {WITHIN_S:.0f} s; committed: {self.harness.values()}")
            self.turn(batch_s=batch_s)

    def turn(self, *, batch_s: float = 30.0) -> list[TaskReport]:
        """Take in what discovery has brought, if anything, and run each task that has work, once."""
        self.host.wake.wait(0.05)
        self.host.wake.clear()
        self.host.work_off()
        self.write_down()
        return [self._run(task_id, batch_s) for task_id in range(self.config.tasks_max) if self._has_work(task_id)]

    def write_down(self) -> None:
        """Store what the enumerator has to say of the progress, as a driver does between micro-batches."""
        self.harness.kafka.offsets.committed(self.host.offsets_to_write())

    def _has_work(self, task_id: int) -> bool:
        return bool(self.host.assigned.get(task_id))

    def _run(self, task_id: int, batch_s: float) -> TaskReport:
        self.harness.rounds += 1
        splits: dict[str, Split] = {split.split_id: self._sent(split) for split in self.host.plan(task_id)}
        task = SplitSourceTask(self.source, splits)
        report = task_runner(
            task,
            self._plan(task_id, batch_s),
            writer=self.harness.writer(self.harness.kafka),
            signals=TaskSignals(),
            config=self.config,
        ).run()
        task.tell(report)
        self.harness.warnings += report.warnings
        self.host.take_in(task_id, finished=report.finished_splits, wants=report.wants_splits, events=report.events)
        if report.error is not None and not isinstance(report.error, RetriableError):
            raise report.error
        return report

    def _sent(self, split: Split) -> Split:
        serializer = self.source.split_serializer
        found: Split = serializer.deserialize(serializer.version, serializer.serialize(split))
        return found

    def _plan(self, task_id: int, batch_s: float) -> TaskPlan:
        return TaskPlan(
            connector=self.config.name,
            task_id=task_id,
            tasks_max=self.config.tasks_max,
            generation=1,
            owner="test",
            props=self.props,
            bounded=self.host.bounded,
            batch=1,
            batch_s=batch_s,
            partitions=1,
        )
