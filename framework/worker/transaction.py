"""The open transaction of a task: what is in it, when it ends, and what its end means."""

import threading
import time
from collections.abc import Callable
from typing import NoReturn

import attrs

from headrace.framework.config import Boundary
from headrace.framework.errors import DataError, RecordTooLargeError
from headrace.framework.metrics import TaskMetrics
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.framework.worker.boundary import BoundaryRule
from headrace.framework.worker.pipeline import Converted, Pipeline, Sent, as_batch
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.manager import OffsetManager

__all__ = ["COMPLETE", "TaskTransaction"]

COMPLETE = "complete"
"""The property of an offset that says that its object is finished."""


@attrs.define
class TaskTransaction:
    """Begins with the first record, ends at a boundary; then begins again.

    The pump puts records in; the runner, on another thread, ends it when it is due, because its time has come or it is
    full. So a source that blocks holds no transaction open, and while a commit lasts the next batch is read and
    converted. Every method takes the lock.
    """

    pipeline: Pipeline
    offsets: OffsetManager
    rule: BoundaryRule
    metrics: TaskMetrics
    on_due_changed: Callable[[], None]
    on_commit: Callable[[], None]
    is_to_end: Callable[[], bool]
    at_most: int | None = None
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    _sealed: bool = attrs.field(default=False, init=False)
    _begun_at: float | None = attrs.field(default=None, init=False)
    _records: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _dead: int = attrs.field(default=0, init=False)
    _finished: int = attrs.field(default=0, init=False)
    _object: OffsetManagerKey | None = attrs.field(default=None, init=False)
    _is_dry: bool = attrs.field(default=False, init=False)
    first_read_at: float | None = attrs.field(default=None, init=False)
    last_commit_at: float | None = attrs.field(default=None, init=False)
    is_full: bool = attrs.field(default=False, init=False)
    """Whether it takes nothing more, and waits for its end."""

    is_broken: bool = attrs.field(default=False, init=False)
    """Whether the writer has failed: then this attempt is over, also where another one may do better."""

    def add(self, item: SourceRecord | RecordBatch) -> bool:
        """Send what the task yielded; where this fills the transaction, its end is up to the runner, or the next call.

        False means that nothing was sent and the pump is to end: the transaction is sealed, or an object has ended
        and the micro-batch is to. A bad record raises its `DataError`, and one that is too large for the sink its
        `RecordTooLargeError`, after what came before it in the same batch was sent. A batch that cannot be cut is
        sent as a whole or not at all; where the sink has some of it by then, so is all of the transaction.
        """
        whole = as_batch(item)
        converted = self.pipeline.convert(whole)
        with self._lock:
            if self._sealed:
                return False
            if self.is_full:
                self.commit()
            if self.first_read_at is None:
                self.first_read_at = time.time()
            key = OffsetManagerKey(whole.source_partition)
            if self.rule.kind is Boundary.OBJECT and self._object not in {None, key}:
                self.commit()
                if self.is_to_end():
                    return False
            batch = self._as_much_as_fits(whole)
            self._send(batch, key, converted if batch is whole else None)
            complete = batch.source_offset.get(COMPLETE) is True
            self._finished += complete
            if (
                self.rule.is_full(self._records + self._dead)
                or self._is_old()
                or (complete and not self.rule.cuts_anywhere())
            ):
                self.is_full = True
                self.on_due_changed()
        return True

    @property
    def has_enough(self) -> bool:
        """Whether as many records have been taken as may be."""
        if self.at_most is None:
            return False
        with self._lock:
            return self.metrics.records + self._records >= self.at_most

    def nothing_right_now(self) -> None:
        """The source has nothing at the moment: the end of a poll."""
        with self._lock:
            if self._begun_at is not None and not self._is_dry:
                self._is_dry = True
                self.on_due_changed()
            if self.rule.kind is Boundary.POLL or self._is_old():
                self.commit()

    def commit_if_due(self) -> None:
        """The runner: end the transaction if it is time, or it is full, and if it is whole."""
        with self._lock:
            if self._is_old() and not self.is_broken:
                self.commit()

    def due_in_s(self) -> float | None:
        """How long until the runner ends the open transaction; None if it has nothing to end."""
        with self._lock:
            if self.is_full:
                return 0.0
            if self._begun_at is None or not self.rule.cuts_anywhere():
                return None
            return max(0.0, self._begun_at + self.rule.longest_s(dry=self._is_dry) - time.monotonic())

    @property
    def is_at_boundary(self) -> bool:
        """Whether nothing that was sent would be cut in two by an end right now."""
        with self._lock:
            return self._begun_at is None or self.is_full or self.rule.cuts_anywhere()

    def commit(self) -> None:
        """End the transaction: records and offsets become visible. Nothing happens where none is open."""
        with self._lock:
            if self._begun_at is None:
                return
            try:
                self.pipeline.writer.commit(self.offsets.pending(), self._counted())
            except BaseException:
                self._break()
                raise
            self.offsets.committed()
            self.metrics.records += self._records
            self.metrics.bytes += self._bytes
            self.metrics.objects += self._finished
            self._count_dead()
            self.metrics.transactions += 1
            self.last_commit_at = time.time()
            self._begin_again()
            self.on_commit()

    def abort(self) -> None:
        """Take back what was sent since the last commit; it counts as not read."""
        with self._lock:
            if self._begun_at is not None:
                self.pipeline.writer.abort()
            self.offsets.aborted()
            self._begin_again()

    def settle(self) -> bool:
        """Commit what is at a boundary and abort the rest; whether all of it could be committed."""
        with self._lock:
            whole = self.is_at_boundary and not self.is_broken
            if whole:
                self.commit()
            else:
                self.abort()
            return whole

    def seal(self) -> bool:
        """Settle, and take nothing more."""
        with self._lock:
            self._sealed = True
            return self.settle()

    def discard(self) -> None:
        """Take back what is open, and take nothing more."""
        with self._lock:
            self._sealed = True
            self.abort()

    def _as_much_as_fits(self, batch: RecordBatch) -> RecordBatch:
        if self.at_most is None or not self.rule.cuts_anywhere():
            return batch
        room = self.at_most - self.metrics.records - self._records
        return batch if len(batch.values) <= room else batch.head(room) or batch

    def _send(self, batch: RecordBatch, key: OffsetManagerKey, converted: Converted | None = None) -> None:
        try:
            sent = self.pipeline.send(batch, converted)
        except DataError:
            bad = self.pipeline.first_bad(batch)
            if bad is None:
                raise
            good = batch.head(bad[0])
            if good is not None and good.values:
                self._send(good, key)
            raise bad[1] from bad[1].__cause__
        except BaseException:
            self._break()
            raise
        if sent.refused is not None:
            self._refuse(batch, key, sent, sent.refused)
        self._note(batch, key, sent)

    def _refuse(self, batch: RecordBatch, key: OffsetManagerKey, sent: Sent, error: RecordTooLargeError) -> NoReturn:
        """Keep what the sink has taken of a batch, and fail with what it has not."""
        taken = batch.head(sent.records)
        if taken is not None and taken.values:
            self._note(taken, key, sent)
        elif sent.records:
            # Nobody knows an offset for just these: neither they nor what was sent with them may become visible.
            self._break()
        raise error

    def _note(self, batch: RecordBatch, key: OffsetManagerKey, sent: Sent) -> None:
        if self._begun_at is None:
            self._begun_at = time.monotonic()
            self.on_due_changed()
        self._object = key
        self.offsets.written(key, batch.source_offset)
        self._records += sent.records
        self._bytes += sent.bytes
        self._dead += sent.dead

    def _break(self) -> None:
        """A writer has failed: what is at the sink is not known here any more, and another attempt reads it."""
        self.is_broken = self._sealed = True

    def _is_old(self) -> bool:
        return self.due_in_s() == 0.0

    def _counted(self) -> dict[str, int]:
        counted = {"records": self._records, "bytes": self._bytes, "objects": self._finished, "transactions": 1}
        return {**counted, "dead_lettered": self._dead} if self._dead else counted

    def _count_dead(self) -> None:
        if self._dead and self.pipeline.dead_letters is not None:
            self.metrics.dead_lettered += self._dead
            if (word := self.pipeline.dead_letters.word) not in self.metrics.warnings:
                self.metrics.warn(word)

    def _begin_again(self) -> None:
        self._begun_at = None
        self._is_dry = self.is_full = False
        self._records = self._bytes = self._dead = self._finished = 0
        self._object = None
