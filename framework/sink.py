"""Where records go: what a sink promises to the loop that feeds it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from headrace.framework.config import SourceCommonConfig
from headrace.framework.readiness import Readiness
from headrace.framework.record import Header
from headrace.framework.worker.plan import TaskPlan
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["Sink", "SinkWriter"]


class SinkWriter(ABC):
    """One task's way to the sink, and to the offsets store: the two are committed together.

    Opened for one attempt at one micro-batch and closed at its end. Calls come one at a time, from the threads of
    one task. With a transactional sink, what was written since the last `commit` or `abort` becomes visible with the
    offsets, all at once, or never. Without transactions, `commit` waits until the sink has acknowledged everything
    and only then stores the offsets, so that after a crash records come twice rather than never.
    """

    exactly_once: ClassVar[bool]

    def heed(self, stopped_at: Callable[[], float | None]) -> None:
        """Learn how to see that the run is to stop; called before `open`, once.

        `stopped_at` says since when, on the monotonic clock, and None until then; it may be called from any thread.
        A stopping task has five seconds: a writer whose calls may wait for a sink that is away gives up within three
        of them, with a `RetriableError`, and has `abort` and `close` return at once. One that never waits for long
        has nothing to do here.
        """

    @abstractmethod
    def open(self) -> OffsetStore:
        """Take over from any earlier holder, then read the progress: the committed view of this task.

        Raises `TakenOverError` if a newer run has claimed the connector.
        """

    @abstractmethod
    def write(
        self,
        topic: str,
        key: bytes | None,
        values: Sequence[bytes | None],
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        """Send records that differ in their values only; begins a transaction where none is open.

        A value that is larger than the sink takes is a `RecordTooLargeError`, whose `index` says which one: those
        before it were written, it and those behind it were not, and writing may go on.
        """

    @abstractmethod
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        """Make visible what was written, and the offsets with it. It has happened when this returns.

        What is `counted` is added to the task's totals of this run, which are stored beside the offsets: a report
        that gets lost with its process loses no count.

        Raises `SinkError` if it has not happened (then nothing is visible), `TakenOverError` if somebody else has
        this task's place.
        """

    @abstractmethod
    def abort(self) -> None:
        """Take back what was written since the last commit; without transactions there is nothing to take back."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the sink; an open transaction is aborted."""


class Sink(Readiness, ABC):
    """A kind of sink: what the plugin names. Made without arguments and configured once, in the driver and in tasks."""

    @abstractmethod
    def configure(self, config: SourceCommonConfig) -> None:
        """Take the configuration; open nothing.

        `ConfigError` with all faults, also where the sink cannot do what `exactly.once.support=required` asks of it.
        """

    @property
    @abstractmethod
    def exactly_once(self) -> bool:
        """Whether its writers commit records and offsets together."""

    @abstractmethod
    def writer(self, plan: TaskPlan) -> SinkWriter:
        """A writer for one attempt at a plan; not open yet."""
