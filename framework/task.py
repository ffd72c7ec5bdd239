"""The task that people subclass: three hooks, and a loop around them that is the framework's."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs

from headrace.framework.backoff import BackoffConfig
from headrace.framework.config import SourceCommonConfig
from headrace.framework.distribution import TaskShare
from headrace.framework.metrics import TaskMetrics
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.offsets.manager import OffsetManager

__all__ = ["AbstractSourceTask", "TaskContext", "Yielded"]

Yielded = SourceRecord | RecordBatch | None
"""What a task's iterator yields; None is "nothing right now"."""


@attrs.frozen(kw_only=True)
class TaskContext:
    """What the framework tells a task; set before `configure` is called.

    `stopping` is set when the task is to stop: a task that waits should wait on it. `distribution.is_mine(key)` says
    for a task that lists by itself whether an object is its own. `offsets` is this task's view of the progress.
    """

    connector: str
    task_id: int
    tasks_max: int
    offsets: OffsetManager
    distribution: TaskShare
    metrics: TaskMetrics
    stopping: threading.Event = attrs.field(factory=threading.Event)


class AbstractSourceTask(ABC):
    """Reads one source, or one share of it, as task `context.task_id` of `context.tasks_max`.

    Implement the three hooks; the framework calls them, on one and the same thread of an executor (without Spark: of a
    process of this machine, or of this very one), in this order: `configure` once; `get_iterator` at least once;
    `close_resources` once. A task object lives for one attempt at one micro-batch: do not keep in it what must survive,
    the offsets do that.

    Do not override `__init__` with arguments of your own: the framework makes the task.
    """

    config_class: ClassVar[type[SourceCommonConfig]] = SourceCommonConfig
    """What `configure` returns; `headrace plugins` shows the options that it declares. Naming it is optional."""

    context: TaskContext

    @abstractmethod
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        """Read and check the configuration; open nothing yet.

        Called first, once per task object, and once more on the driver by `headrace validate`, so it must not need
        the source. Raise `ConfigError` with all faults at once. Return a `SourceCommonConfig`, or your own subclass
        of it: with a subclass the set of keys is closed, and an unknown one is an error.
        """

    @abstractmethod
    def get_iterator(self, backoff: BackoffConfig) -> Iterator[Yielded]:
        """The records to send, from where the offsets say that reading goes on.

        Called after `configure`; again after a `RetriableError`, and in a continuous run whenever the iterator was
        exhausted and some time has gone by. Before each call the open transaction has been committed or aborted, so
        `context.offsets` says exactly what has gone out.

        Yield a `SourceRecord`, a `RecordBatch`, or None for "nothing right now": then the framework may commit, waits
        (at most 5 s) and asks again. Ending means "nothing more for now". `backoff` describes the framework's own
        waits; use it, wait in your own way, or not at all.

        Raise `RetriableError` for what another attempt can mend; anything else fails the task with its cause.
        Between two records the iterator should look at `context.stopping`, or yield None, at least every few seconds.
        """

    def committed(self) -> None:
        """What was yielded before the iterator was last asked for more has been committed.

        Called after each commit, and at an orderly end, from any of the framework's threads, also while the iterator
        runs: the place to acknowledge to a source that wants it. So note a message as one to acknowledge behind its
        `yield`, never before: what is being yielded may not be in the transaction yet. A crash between the commit and
        this call is possible. Does nothing unless it is overridden.
        """

    @abstractmethod
    def close_resources(self) -> None:
        """Close what is open. Called once, always, also after a failure of `configure` or of the iterator.

        It has 5 seconds; a task that takes longer is cut off and named in the log. What was taken from the iterator
        before an orderly stop has been sent and committed by then.
        """
