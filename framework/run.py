"""From a configuration to a run: what `headrace.run`, `headrace.start` and the command line share."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import attrs

from headrace.framework.check import check
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.driver.summary import Progress, RunStatus, RunSummary
from headrace.framework.errors import ConfigError, HeadraceError, PipelineError, Where
from headrace.framework.secrets import resolve
from headrace.framework.splits import SplitSource
from headrace.framework.stop_rule import SNAPSHOT
from headrace.framework.worker.execute import make_sink, make_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Run", "on_processes", "on_spark", "on_threads", "run"]

Drive = Callable[[Coordinator], None]
Engine = Callable[[SourceCommonConfig], AbstractContextManager[Drive]]
"""Gets ready, which may take a while, and then drives one coordinator until its run is over."""


def run(props: Mapping[str, str], *, spark: "SparkSession | None" = None, available_now: bool = False) -> RunSummary:
    """Run a connector on Spark until it is over, and say what it did.

    With `available_now` it reads what there is and ends; otherwise it goes on until it fails or is taken over.
    Without `spark` it takes the active session, or makes one on `local[*]`. What fails the run is in the summary;
    `ConfigError` is raised.
    """
    return Run(props=props, bounded=available_now, engine=on_spark(spark)).go()


@attrs.define(kw_only=True)
class Run:
    """One run, from its configuration to its summary. Made, it has checked its configuration (`ConfigError`).

    `go` does it all, once, on the caller's thread; the other methods may be called from any thread. The engine is
    ready before the connector is claimed: a machine without Java ends nobody's run.
    """

    props: Mapping[str, str]
    bounded: bool
    engine: Engine
    config: SourceCommonConfig = attrs.field(init=False)
    summary: RunSummary | None = attrs.field(default=None, init=False)
    _coordinator: Coordinator | None = attrs.field(default=None, init=False)
    _stop_asked: threading.Event = attrs.field(factory=threading.Event, init=False)

    def __attrs_post_init__(self) -> None:
        """Find every fault of the configuration."""
        self.config = check(self.props)

    def go(self) -> RunSummary:
        """Run until it is over. What fails the run is in the summary, but for a `ConfigError`, which is raised."""
        started = time.monotonic()
        failure: HeadraceError | None = None
        try:
            with self.engine(self.config) as drive:
                self._go(drive)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - Spark may raise anything, and the summary must say it
            failure = self._as_ours(error)
        finally:
            summary = self.summary = self._finish(failure, time.monotonic() - started)
        return summary

    def ask_stop(self) -> None:
        """Have the run stop in an orderly way, as soon as it can."""
        self._stop_asked.set()
        if self._coordinator is not None:
            self._coordinator.ask_stop()

    def status(self) -> RunStatus:
        """How it stands with the run; what it has committed is known as far as the driver has read it."""
        if (summary := self.summary) is not None:
            return RunStatus(
                connector=self.config.name,
                state=summary.state,
                progress=Progress(
                    records=summary.records,
                    bytes=summary.bytes,
                    objects=summary.objects,
                    objects_known=max(summary.objects, self._progress().objects_known),
                    transactions=summary.transactions,
                ),
                error=summary.error,
            )
        state = "STARTING" if self._coordinator is None else "RUNNING"
        if self._stop_asked.is_set():
            state = "STOPPING"
        stalled = () if self._coordinator is None else self._coordinator.stalled
        return RunStatus(connector=self.config.name, state=state, progress=self._progress(), stalled=stalled)

    def _go(self, drive: Drive) -> None:
        if self._stop_asked.is_set():
            return
        coordinator = self._coordinator = _claimed(self.props, bounded=self.bounded)
        if self._stop_asked.is_set():
            coordinator.ask_stop()
        coordinator.start()
        drive(coordinator)

    def _finish(self, failure: HeadraceError | None, duration_s: float) -> RunSummary:
        coordinator = self._coordinator
        if coordinator is not None:
            coordinator.error = coordinator.error or failure
            return coordinator.finish()
        return RunSummary.not_started(
            self.config.name,
            None if failure is None else str(failure),
            exactly_once=make_sink(self.config).exactly_once,
            duration_s=duration_s,
        )

    def _as_ours(self, error: Exception) -> HeadraceError:
        where = Where(connector=self.config.name)
        if isinstance(error, PipelineError):
            return error.located(where)
        if isinstance(error, HeadraceError):
            return error
        said = str(error).strip().splitlines() or [""]
        wrapped = PipelineError(f"the run failed: {type(error).__name__}: {said[0]}", where)
        wrapped.__cause__ = error
        return wrapped

    def _progress(self) -> Progress:
        return Progress() if self._coordinator is None else self._coordinator.progress()


def _claimed(props: Mapping[str, str], *, bounded: bool) -> Coordinator:
    """A coordinator that has claimed its connector: the start of every run."""
    from headrace.offsets.kafka.claim import Claim  # noqa: PLC0415 - Kafka comes in when it is used
    from headrace.offsets.kafka.dead_letters import ensure_dead_letter_topic  # noqa: PLC0415 - as above
    from headrace.offsets.kafka.settings import KafkaSettings  # noqa: PLC0415 - as above
    from headrace.offsets.kafka.topic import ensure_offsets_topic  # noqa: PLC0415 - as above

    # Resolved here: what an executor's environment has is not what the user's has.
    resolved = {key: resolve(value) for key, value in props.items()}
    source, config = make_source(resolved)
    sink = make_sink(config)
    settings = KafkaSettings.of(config)
    partitions = ensure_offsets_topic(settings)
    if config.is_tolerant and config.dead_letter_topic is not None:
        ensure_dead_letter_topic(settings, config.dead_letter_topic, config.dead_letter_replication_factor)
    claim = Claim.take(settings, partitions=partitions, tasks=config.tasks_max)
    coordinator = Coordinator(
        config=config,
        props=resolved,
        source=source,
        claim=claim,
        bounded=bounded or config.stop_rule == SNAPSHOT,
        exactly_once=sink.exactly_once and (not isinstance(source, SplitSource) or source.exactly_once),
    )
    for word in config.warnings():
        coordinator.warn(word)
    return coordinator


@contextmanager
def on_threads(config: SourceCommonConfig) -> Iterator[Drive]:  # noqa: ARG001 - an engine is given it
    """The engine on threads of this process."""
    from headrace.framework.local.engine import LocalEngine  # noqa: PLC0415 - one engine of three
    from headrace.framework.local.threads import TaskThreads  # noqa: PLC0415 - as above

    threads = TaskThreads()
    try:
        yield lambda coordinator: LocalEngine(coordinator, [threads]).run()
    finally:
        threads.close()


def on_processes(count: int) -> Engine:
    """The engine on so many processes of this machine; a task has one of them, and shares it where there are more."""

    @contextmanager
    def engine(config: SourceCommonConfig) -> Iterator[Drive]:
        from headrace.framework.local.engine import LocalEngine  # noqa: PLC0415 - one engine of three
        from headrace.framework.local.process import TaskProcess  # noqa: PLC0415 - as above
        from headrace.framework.local.words import Setup  # noqa: PLC0415 - as above

        setup = Setup.of_this_process(config)
        processes: list[TaskProcess] = []
        try:
            for _ in range(count):
                processes.append(TaskProcess(setup))  # noqa: PERF401 - those that were started are ended if one cannot be
            yield lambda coordinator: LocalEngine(coordinator, processes).run()
        finally:
            for process in processes:
                process.ask_close()
            for process in processes:
                process.close()

    return engine


def on_spark(spark: "SparkSession | None" = None, *, master: str | None = None) -> Engine:
    """The engine on a Spark session: the one given, the active one, or one of our own, which ends with the run."""

    @contextmanager
    def engine(config: SourceCommonConfig) -> Iterator[Drive]:
        from headrace.framework.spark.engine import SparkEngine  # noqa: PLC0415 - Spark comes in when it is used
        from headrace.framework.spark.session import session  # noqa: PLC0415 - as above

        with session(spark, master=master, name=config.name) as usable:
            yield lambda coordinator: SparkEngine(coordinator, usable).run()

    return engine
