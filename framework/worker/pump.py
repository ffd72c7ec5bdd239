"""The thread that pulls a task's iterator and puts what it yields into the transaction."""

import logging
import threading
from collections.abc import Iterator

import attrs

from headrace.framework.backoff import Backoff, BackoffConfig
from headrace.framework.errors import HeadraceError, RetriableError, TaskError, Where
from headrace.framework.task import AbstractSourceTask, Yielded
from headrace.framework.worker.signals import TaskSignals
from headrace.framework.worker.stumbles import Stumbles
from headrace.framework.worker.transaction import TaskTransaction

__all__ = ["Pump"]

log = logging.getLogger(__name__)


@attrs.define(kw_only=True)
class Pump:
    """Pulls one task until its iterator is exhausted, an end is asked for, or something fails.

    Runs on a daemon thread, because a task may block in its own code for ever; the runner then goes on without it.
    `error` is what ended it, `exhausted` whether there is nothing more for now, `stumbles` what it tries again.
    """

    task: AbstractSourceTask
    transaction: TaskTransaction
    signals: TaskSignals
    backoff: BackoffConfig
    where: Where
    error: BaseException | None = attrs.field(default=None, init=False)
    exhausted: bool = attrs.field(default=False, init=False)
    has_enough: bool = attrs.field(default=False, init=False)
    stumbles: Stumbles = attrs.field(factory=Stumbles, init=False)

    def start(self) -> None:
        """Begin pulling."""
        threading.Thread(target=self._run, name=f"headrace-{self.where}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._pull_until_the_end()
        except HeadraceError as error:
            self.error = error
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is the cause that the report shows
            failure = TaskError(f"the task failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.error = failure
        finally:
            self.signals.note_pump_ended()

    def _pull_until_the_end(self) -> None:
        waits = Backoff(self.backoff, self.task.context.stopping)
        while True:
            iterator: Iterator[Yielded] = iter(())
            try:
                iterator = iter(self.task.get_iterator(self.backoff))
                self._pull(iterator, waits)
            except RetriableError as error:
                if self.transaction.is_broken:
                    raise
                self.transaction.settle()
                if self.signals.end_asked:
                    return
                self.task.context.metrics.retries += 1
                self._stumbled(error)
                waits.pause()
            else:
                return
            finally:
                if hasattr(iterator, "close"):
                    iterator.close()
                self.task.context.offsets.iterator_closed()

    def _pull(self, iterator: Iterator[Yielded], waits: Backoff) -> None:
        for item in iterator:
            self.stumbles.over()
            if item is None:
                self.transaction.nothing_right_now()
                if self._is_to_end():
                    return
                waits.pause()
            else:
                if not self.transaction.add(item):
                    return
                waits.reset()
                self.has_enough = self.transaction.has_enough
            if self._is_to_end():
                return
        self.stumbles.over()
        # A task that ends because it is to stop has not said that there is nothing more.
        self.exhausted = not self.task.context.stopping.is_set()

    def _stumbled(self, error: RetriableError) -> None:
        """Said once; how long it lasts, and why, the driver says."""
        first = self.stumbles.note(error)
        log.log(logging.WARNING if first else logging.INFO, "%s: %s; trying again", self.where, error)
        if first:
            self.signals.note_stumbled()

    def _is_to_end(self) -> bool:
        ends = self.signals.end_asked or self.has_enough
        at_once = self.signals.stop_asked or self.signals.leave_asked
        return at_once or (ends and self.transaction.is_at_boundary)
