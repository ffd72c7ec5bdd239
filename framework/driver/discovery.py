"""The slow work of discovery: on threads of its own, with patience, its answers handed over on the driver's thread."""

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import attrs

from headrace.framework.backoff import Backoff, BackoffConfig
from headrace.framework.driver.stall import Stall
from headrace.framework.errors import HeadraceError, PipelineError, RetriableError, SourceError, Where
from headrace.framework.stage import Stage

__all__ = ["Discovery"]

T = TypeVar("T")

# Spark's start is part of the minute within which a run says that its source cannot be reached.
REACH_WITHIN_S = 45.0
BACK_WITHIN_S = 60.0


@attrs.define(kw_only=True)
class Discovery:
    """Asks a source, again and again. Answers are kept until `work_off` is called; `wake` is set for each of them."""

    connector: str
    bounded: bool
    warn: Callable[[str], None]
    wake: threading.Event
    closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _answers: "queue.SimpleQueue[Callable[[], None]]" = attrs.field(factory=queue.SimpleQueue, init=False)
    _stalls: dict[int, Stall] = attrs.field(factory=dict, init=False)
    _looking: set[object] = attrs.field(factory=set, init=False)
    _reached: bool = attrs.field(default=False, init=False)
    _answered: bool = attrs.field(default=False, init=False)

    def work_off(self) -> None:
        """Handle what has been brought; an error of the work is raised here."""
        while True:
            try:
                answer = self._answers.get_nowait()
            except queue.Empty:
                return
            answer()

    def begin(
        self, work: Callable[[], T], handle: Callable[[T], None], *, after_s: float, every_s: float | None
    ) -> None:
        """Do slow work on a thread of its own, again and again if `every_s` says so."""
        look = object()
        if not after_s:
            self._looking.add(look)
        threading.Thread(
            target=self._repeat,
            args=(look, work, handle, after_s, every_s),
            name=f"headrace-discover-{self.connector}",
            daemon=True,
        ).start()

    @property
    def stalls(self) -> list[Stall]:
        """What fails right now."""
        return list(self._stalls.values())

    @property
    def is_looking(self) -> bool:
        """Whether the source is being asked, or has given an answer that is not worked off."""
        return bool(self._looking)

    @property
    def is_unanswered(self) -> bool:
        """Whether the source is being asked for the first time."""
        return self.is_looking and not self._answered

    def close(self) -> None:
        """Ask no more."""
        self.closed.set()

    def _repeat(
        self, look: object, work: Callable[[], T], handle: Callable[[T], None], after_s: float, every_s: float | None
    ) -> None:
        handled = threading.Event()
        self.closed.wait(after_s)
        while not self.closed.is_set():
            self._looking.add(look)
            try:
                answer = self._with_patience(work)
            except Exception as error:  # noqa: BLE001 - raised again on the coordinator's thread
                self._put(lambda error=error: _raise(error, self.connector))  # type: ignore[misc]
                return
            self._reached = True
            handled.clear()

            def hand_over(answer: T = answer) -> None:
                try:
                    handle(answer)
                finally:
                    self._looking.discard(look)
                    self._answered = True
                    handled.set()

            self._put(hand_over)
            if every_s is None:
                return
            while not handled.wait(0.1) and not self.closed.is_set():
                pass
            self.closed.wait(every_s)

    def _with_patience(self, work: Callable[[], T]) -> T:
        """Try again what can be mended by that, for so long as it may take.

        A source that has never been reached fails the run within a minute. One that was reached may be away for as
        long as it likes in a run without an end, and for a minute in one that is to end.
        """
        waits, started = Backoff(BackoffConfig(), self.closed), time.monotonic()
        stall = Stall(self.connector, "discovery", self.warn)
        give_up_s = REACH_WITHIN_S if not self._reached else BACK_WITHIN_S if self.bounded else math.inf
        while True:
            began = time.monotonic()
            try:
                answer = work()
            except RetriableError as error:
                ended = time.monotonic()
                # The next attempt may take as long as this one.
                if self.closed.is_set() or ended - started + (ended - began) > give_up_s:
                    raise
                self._stalls[id(stall)] = stall
                stall.failed(str(error.located(Where(stage=Stage.DISCOVER))), lasted_s=ended - began)
                waits.pause()
            else:
                self._stalls.pop(id(stall), None)
                stall.over()
                return answer

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
