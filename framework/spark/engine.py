"""The clock of a run on Spark: a streaming query whose every micro-batch runs the coordinator's plans."""

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from headrace.framework.backoff import LONGEST_S
from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import SourceError, Where
from headrace.framework.spark.failure import lost_task, reason_of, unusable_python
from headrace.framework.spark.ready import ReadyWorkers
from headrace.framework.spark.shipping import pickled_source, ship_package
from headrace.framework.spark.tasks import run_tasks
from headrace.framework.worker.plan import TaskPlan, TaskReport

__all__ = ["SparkEngine"]

log = logging.getLogger(__name__)

LOOK_UP_EVERY_S = 0.1
STOP_WITHIN_S = 5.0
KILLED_WITHIN_S = 10.0
FAILED_BATCHES = 10
FIRST_PAUSE_S = 0.1


@attrs.define
class SparkEngine:
    """Runs a coordinator on a Spark session, until its run is over or the query is stopped.

    The query ticks without data: what is to be done comes from the coordinator, and the checkpoint holds ticks only,
    so it lies in a folder that goes with the run.
    """

    coordinator: Coordinator
    spark: SparkSession
    _checkpoint: Path = attrs.field(init=False)
    _query: StreamingQuery | None = attrs.field(default=None, init=False)
    _over: threading.Event = attrs.field(factory=threading.Event, init=False)
    _turn: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _is_ticking: bool = attrs.field(default=False, init=False)
    _source: bytes | None = attrs.field(default=None, init=False)
    _workers: ReadyWorkers | None = attrs.field(default=None, init=False)
    _failed_batches: int = attrs.field(default=0, init=False)

    def run(self) -> None:
        """Tick until the run is over; returns when no task is running."""
        self.start()
        self.wait()

    def start(self) -> None:
        """Start the query; it goes on by itself."""
        context = self.spark.sparkContext
        ship_package(context)
        self._source = pickled_source(self.coordinator.props)
        tasks, slots = self.coordinator.config.tasks_max, context.defaultParallelism
        if tasks > slots:
            log.warning(
                "%s: %d source tasks on %d Spark slots: they share them, several to a Spark task",
                self.coordinator.config.name,
                tasks,
                slots,
            )
            self.coordinator.warn(f"{tasks} source tasks share {slots} Spark slots")
        self._workers = ReadyWorkers(context, self.coordinator.config, is_pickled=self._source is not None)
        self._workers.start()
        self._checkpoint = Path(tempfile.mkdtemp(prefix="headrace-ticks-"))
        ticks = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        self._query = (
            ticks.writeStream.queryName(f"headrace-{self.coordinator.config.name}")
            .foreachBatch(self._on_tick)
            .option("checkpointLocation", self._checkpoint.as_uri())
            .start()
        )

    def wait(self) -> None:
        """Wait until the run is over, then end the query."""
        query = self._query
        try:
            self._look_ahead()
            while query is not None and query.isActive and not self._over.wait(0.2):
                pass
        finally:
            self._end_query()

    def _look_ahead(self) -> None:
        """Take in what discovery brings until the query's first tick, which is seconds away."""
        while self._query is not None and self._query.isActive:
            with self._turn:
                if self._is_ticking:
                    return
                self.coordinator.wake.clear()
                self.coordinator.look_ahead()
            self.coordinator.wake.wait(LOOK_UP_EVERY_S)

    def _end_query(self) -> None:
        query, self._query = self._query, None
        if self._workers is not None:
            self._workers.close()
        if query is None:
            return
        failure = query.exception()
        query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        if failure is not None and self.coordinator.error is None:
            self.coordinator.error = SourceError(
                f"the streaming query failed: {failure}", Where(connector=self.coordinator.config.name)
            )

    def _on_tick(self, _rows: DataFrame, _number: int) -> None:
        """One micro-batch: Spark calls this in the driver's own process, and calls again when it returns."""
        coordinator = self.coordinator
        with self._turn:
            self._is_ticking = True
        plans = coordinator.tick()
        if plans:
            self._run_batch(plans)
        if coordinator.is_over:
            self._over.set()
            # The query is about to be stopped: an empty spin until then would cost half a core.
            time.sleep(LOOK_UP_EVERY_S)
        elif not plans:
            coordinator.wake.wait(coordinator.pause_s())
            coordinator.wake.clear()

    def _run_batch(self, plans: Sequence[TaskPlan]) -> None:
        shares = _dealt(plans, self.spark.sparkContext.defaultParallelism)
        group = f"headrace-{self.coordinator.config.name}-{plans[0].owner}"
        with ThreadPoolExecutor(1, "headrace-job") as pool:
            job = pool.submit(self._run_job, shares, group)
            job.add_done_callback(lambda _: self.coordinator.wake.set())
            try:
                self._watch(job, group)
            except BaseException:
                self.spark.sparkContext.cancelJobGroup(group)
                raise
        self._take_in(job, shares)

    def _run_job(self, shares: Sequence[Sequence[TaskPlan]], group: str) -> list[TaskReport]:
        if self._workers is not None:
            self._workers.wait()
        context, source = self.spark.sparkContext, self._source
        tasks = sum(len(share) for share in shares)
        context.setJobGroup(group, f"headrace: {tasks} source tasks", interruptOnCancel=True)
        work = context.parallelize(shares, len(shares)).mapPartitions(lambda part: run_tasks(part, source, tasks))
        return work.collect()

    def _watch(self, job: "Future[list[TaskReport]]", group: str) -> None:
        """Follow topic and discovery while the tasks run, and tell them when they are to end."""
        told_end = told_stop_at = None
        cancelled = False
        while not job.done():
            ends = self.coordinator.look_up()
            now = time.monotonic()
            if self.coordinator.is_over and told_stop_at is None:
                told_stop_at = now
                self.coordinator.tell_tasks(stop=True)
            elif ends and told_end is None:
                told_end = now
                self.coordinator.tell_tasks(end_batch=True)
            if not cancelled and told_stop_at is not None and now - told_stop_at > STOP_WITHIN_S + KILLED_WITHIN_S:
                cancelled = True
                log.warning("%s: tasks did not stop in time and are cancelled", self.coordinator.config.name)
                self.spark.sparkContext.cancelJobGroup(group)
            self.coordinator.wake.wait(LOOK_UP_EVERY_S)
            self.coordinator.wake.clear()

    def _take_in(self, job: "Future[list[TaskReport]]", shares: Sequence[Sequence[TaskPlan]]) -> None:
        failure = job.exception()
        if failure is None:
            self._failed_batches = 0
            self.coordinator.take_in(job.result())
            return
        self._failed_batches += 1
        log.warning("%s: Spark failed a micro-batch: %s", self.coordinator.config.name, reason_of(failure))
        self._note_lost(failure, shares)
        self.coordinator.take_in([])
        unusable = unusable_python(failure, self.spark.sparkContext.pythonExec)
        if unusable is not None:
            unusable.__cause__ = failure
            self.coordinator.error = self.coordinator.error or unusable
            return
        self.coordinator.wake.wait(min(LONGEST_S, FIRST_PAUSE_S * 2**self._failed_batches))
        if self._failed_batches >= FAILED_BATCHES and self.coordinator.error is None:
            error = SourceError(
                f"Spark failed {self._failed_batches} micro-batches in a row: {reason_of(failure)}",
                Where(connector=self.coordinator.config.name),
            )
            error.__cause__ = failure
            self.coordinator.error = error

    def _note_lost(self, failure: BaseException, shares: Sequence[Sequence[TaskPlan]]) -> None:
        """Who is lost is whom Spark has tried often enough: the others of the job were only cut off with it."""
        number = lost_task(failure)
        if number is None or number >= len(shares):
            return
        error = SourceError(
            f"Spark has given up the task that read them: {reason_of(failure)}",
            Where(connector=self.coordinator.config.name),
        )
        error.__cause__ = failure
        self.coordinator.note_lost({plan.task_id for plan in shares[number]}, error)


def _dealt(plans: Sequence[TaskPlan], slots: int) -> list[list[TaskPlan]]:
    """The plans, dealt out to as many Spark tasks as run at once."""
    count = max(1, min(len(plans), slots))
    return [list(plans[first::count]) for first in range(count)]
