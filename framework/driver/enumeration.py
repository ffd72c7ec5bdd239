"""The house of a source's enumerator: its context, its listing threads, what it has assigned."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from headrace.framework.backoff import Backoff, BackoffConfig
from headrace.framework.errors import HeadraceError, PipelineError, RetriableError, SourceError, Where
from headrace.framework.splits import Split, SplitEnumerator, SplitSource
from headrace.framework.stage import Stage
from headrace.offsets.store import OffsetStore

__all__ = ["EnumeratorHost"]

log = logging.getLogger(__name__)

T = TypeVar("T")

REACH_WITHIN_S = 45.0


@attrs.define
class EnumeratorHost:
    """Gives an enumerator what it needs, and keeps what it says until the next plan.

    The enumerator's methods are called by `work_off` and `start`, on the coordinator's thread; only the slow work
    that it asks for runs on threads of its own.
    """

    connector: str
    tasks: int
    offsets: OffsetStore
    bounded: bool
    wake: threading.Event = attrs.field(factory=threading.Event)
    planning: bool = False
    finished: list[tuple[Split, int]] = attrs.field(factory=list, init=False)
    counted: dict[str, int] = attrs.field(factory=dict, init=False)
    assigned: dict[int, dict[str, Split]] = attrs.field(factory=dict, init=False)
    events: dict[int, list[Mapping[str, Any]]] = attrs.field(factory=dict, init=False)
    skipped: int = attrs.field(default=0, init=False)
    warnings: list[str] = attrs.field(factory=list, init=False)
    _planned: dict[int, dict[str, Split]] = attrs.field(factory=dict, init=False)
    _no_more: set[int] = attrs.field(factory=set, init=False)
    _owners: dict[str, int] = attrs.field(factory=dict, init=False)
    _answers: "queue.SimpleQueue[Callable[[], None]]" = attrs.field(factory=queue.SimpleQueue, init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _enumerator: SplitEnumerator[Split] | None = attrs.field(default=None, init=False)
    _counting: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def start(self, source: SplitSource[Split], state: Mapping[str, Any] | None) -> None:
        """Make the enumerator and tell it of its readers."""
        enumerator = self._enumerator = source.create_enumerator(self, state)
        enumerator.start()
        for reader_id in range(self.tasks):
            enumerator.add_reader(reader_id)

    def work_off(self) -> None:
        """Hand the enumerator what its slow work has brought; an error of that work is raised here."""
        while True:
            try:
                answer = self._answers.get_nowait()
            except queue.Empty:
                return
            answer()

    def take_in(self, reader_id: int, *, finished: list[str], wants: bool, events: list[Mapping[str, Any]]) -> None:
        """Tell the enumerator what a reader has reported."""
        mine, planned = self.assigned.get(reader_id, {}), self._planned.get(reader_id, {})
        for split_id in finished:
            # A newer version of the split may have been assigned while the planned one was read.
            if split_id in planned and mine.get(split_id) == planned[split_id]:
                del mine[split_id]
        if self._enumerator is None:
            return
        for event in events:
            self._enumerator.handle_source_event(reader_id, event)
        if wants:
            self._enumerator.handle_split_request(reader_id)

    def plan(self, reader_id: int) -> Sequence[Split]:
        """What the reader has to read, for its next plan; what it reports as finished is measured against that."""
        planned = self._planned[reader_id] = dict(self.assigned.get(reader_id, {}))
        return list(planned.values())

    def is_told_everything(self, reader_id: int) -> bool:
        """Whether the reader knows that it gets no more."""
        return reader_id in self._no_more

    @property
    def everybody_is_told(self) -> bool:
        """Whether every reader knows that it gets no more."""
        return len(self._no_more) == self.tasks

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left, and nothing more will come."""
        return self.everybody_is_told and not any(self.assigned.values())

    @property
    def known(self) -> int:
        """How many splits have been assigned so far, those that are finished by now included."""
        return len(self._owners)

    def close(self) -> None:
        """End the slow work and the enumerator."""
        self._closed.set()
        if self._enumerator is not None:
            self._enumerator.close()

    def current_parallelism(self) -> int:
        """How many readers there are."""
        return self.tasks

    def assign_split(self, split: Split, reader_id: int) -> None:
        """Give a split to a reader; a second owner within the generation is refused."""
        if not 0 <= reader_id < self.tasks:
            raise SourceError(
                f"split {split.split_id} was assigned to reader {reader_id}, and there are {self.tasks}",
                Where(stage=Stage.ASSIGN, connector=self.connector),
            )
        owner = self._owners.setdefault(split.split_id, reader_id)
        if owner != reader_id:
            raise SourceError(
                f"split {split.split_id} belongs to reader {owner} and was assigned to {reader_id}: "
                "within a generation a split stays where it is",
                Where(stage=Stage.ASSIGN, connector=self.connector),
            )
        self.assigned.setdefault(reader_id, {})[split.split_id] = split
        self.wake.set()

    def loads(self) -> Sequence[int]:
        """What each reader still has to read."""
        return [
            sum(max(1, split.size) for split in self.assigned.get(reader_id, {}).values())
            for reader_id in range(self.tasks)
        ]

    def note_skipped(self, word: str, *, warn: bool) -> None:
        """Count and say what is left out."""
        self.skipped += 1
        if warn:
            log.warning("%s: %s", self.connector, word)
            self.warnings.append(word)
        else:
            log.info("%s: %s", self.connector, word)

    def note_finished(self, split: Split, reader_id: int) -> None:
        """Keep it for the plan."""
        self.finished.append((split, reader_id))

    def count(self, name: str, by: int = 1) -> None:
        """Count something of the source's own."""
        with self._counting:
            self.counted[name] = self.counted.get(name, 0) + by

    def signal_no_more_splits(self, reader_id: int) -> None:
        """The reader has all that it gets."""
        self._no_more.add(reader_id)
        self.wake.set()

    def send_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """Keep the event for the reader's next plan."""
        self.events.setdefault(reader_id, []).append(dict(event))
        self.wake.set()

    def call_async(self, work: Callable[[], T], handle: Callable[[T], None], *, every_s: float | None = None) -> None:
        """Do slow work on a thread of its own, again and again if `every_s` says so."""
        threading.Thread(
            target=self._repeat, args=(work, handle, every_s), name=f"headrace-discover-{self.connector}", daemon=True
        ).start()

    def _repeat(self, work: Callable[[], T], handle: Callable[[T], None], every_s: float | None) -> None:
        handled = threading.Event()
        while not self._closed.is_set():
            try:
                answer = self._with_patience(work)
            except Exception as error:  # noqa: BLE001 - raised again on the coordinator's thread
                self._put(lambda error=error: _raise(error, self.connector))  # type: ignore[misc]
                return
            handled.clear()

            def hand_over(answer: T = answer) -> None:
                try:
                    handle(answer)
                finally:
                    handled.set()

            self._put(hand_over)
            if every_s is None:
                return
            while not handled.wait(0.1) and not self._closed.is_set():
                pass
            self._closed.wait(every_s)

    def _with_patience(self, work: Callable[[], T]) -> T:
        """Try again what can be mended by that; a run that cannot reach its source fails within a minute."""
        waits, started = Backoff(BackoffConfig(), self._closed), time.monotonic()
        while True:
            began = time.monotonic()
            try:
                return work()
            except RetriableError as error:
                ended = time.monotonic()
                # The next attempt may take as long as this one, and Spark's start is part of the minute.
                if self._closed.is_set() or ended - started + (ended - began) > REACH_WITHIN_S:
                    raise
                log.warning("%s: discovery: %s; trying again", self.connector, error)
                waits.pause()

    def _put(self, answer: Callable[[], None]) -> None:
        self._answers.put(answer)
        self.wake.set()


def _raise(error: Exception, connector: str) -> None:
    where = Where(stage=Stage.DISCOVER, connector=connector)
    if isinstance(error, PipelineError):
        raise error.located(where)
    if isinstance(error, HeadraceError):
        raise error
    raise SourceError(f"discovery failed: {type(error).__name__}: {error}", where) from error
