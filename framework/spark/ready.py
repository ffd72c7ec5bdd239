"""Python processes that are there, with what a plan needs, before there is a plan."""

import logging
import threading
from collections.abc import Iterator, Mapping

import attrs
from pyspark import SparkContext

from headrace.framework.config import SourceCommonConfig
from headrace.framework.registry import Kind
from headrace.framework.worker.ready import get_ready, plugins_of

__all__ = ["ReadyWorkers"]

log = logging.getLogger(__name__)

MOST = 8
ENDED_WITHIN_S = 2.0
READY_WITHIN_S = 10.0


@attrs.define
class ReadyWorkers:
    """Has Spark start a few Python processes beside the streaming query, which takes about as long to start.

    One small job, on a thread of its own; the first plan waits for the processes that it leaves. Nothing else depends
    on it: where it fails, the first plan fails the same way, and says so. `is_pickled` says that the source's class
    comes with the plans. After `close` there is no job any more, whether it has begun or waits for an executor.
    """

    context: SparkContext
    config: SourceCommonConfig
    is_pickled: bool
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        """Begin; returns at once."""
        if self.context.getConf().get("spark.python.worker.reuse", "true") == "true":
            self._thread = threading.Thread(target=self._run, name="headrace-ready", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until the processes are there, but no longer than ten seconds.

        A plan that came before would have others started beside them; and as Spark gives work to all that there are in
        turn, none would have the tasks, and with them the producers, that it had before.
        """
        if self._thread is not None:
            self._thread.join(READY_WITHIN_S)

    def close(self) -> None:
        """End the job, if it is not over."""
        self._closed.set()
        if self._thread is not None and self._thread.is_alive():
            self.context.cancelJobGroup(self._group)
            self._thread.join(ENDED_WITHIN_S)

    @property
    def _group(self) -> str:
        return f"headrace-{self.config.name}-ready"

    def _run(self) -> None:
        plugins = dict(plugins_of(self.config))
        if self.is_pickled:
            del plugins[Kind.SOURCES]
        try:
            count = min(self.config.tasks_max, self.context.defaultParallelism, MOST)
            self.context.setJobGroup(self._group, "headrace: Python processes get ready", interruptOnCancel=True)
            work = self.context.parallelize(range(count), count).mapPartitions(lambda _: _ready(plugins))
            if not self._closed.is_set():
                work.collect()
        except Exception as error:  # noqa: BLE001 - Spark may raise anything
            log.info("%s: no Python process got ready before its time: %s", self.config.name, type(error).__name__)


def _ready(plugins: Mapping[Kind, str]) -> Iterator[int]:
    get_ready(plugins)
    return iter(())
