"""What reaches a running task from outside: stop, or end this micro-batch."""

import threading
import time

import attrs

__all__ = ["TaskSignals"]


@attrs.define
class TaskSignals:
    """Set from any thread, watched by the runner. Once set, a signal stays; a stop is stronger than an end."""

    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _stop: bool = attrs.field(default=False, init=False)
    _stopped_at: float | None = attrs.field(default=None, init=False)
    _end: bool = attrs.field(default=False, init=False)
    _leave: bool = attrs.field(default=False, init=False)
    _pumped: bool = attrs.field(default=False, init=False)
    _news: bool = attrs.field(default=False, init=False)

    @property
    def stop_asked(self) -> bool:
        """Whether the run is to stop."""
        return self._stop

    @property
    def stopped_at(self) -> float | None:
        """Since when the run is to stop, on the monotonic clock; None while it is not."""
        return self._stopped_at

    @property
    def end_asked(self) -> bool:
        """Whether this micro-batch is to end."""
        return self._end or self._stop

    @property
    def leave_asked(self) -> bool:
        """Whether the task is to end where it stands."""
        return self._leave

    @property
    def pump_ended(self) -> bool:
        """Whether the pump has nothing more to do."""
        return self._pumped

    def ask_stop(self) -> None:
        """The run is to stop: commit what is at a boundary, close, within five seconds."""
        with self._changed:
            self._stop = True
            self._stopped_at = self._stopped_at or time.monotonic()
            self._changed.notify_all()

    def ask_end(self) -> None:
        """This micro-batch is to end at the next boundary."""
        with self._changed:
            self._end = True
            self._changed.notify_all()

    def ask_leave(self) -> None:
        """The task itself is to take nothing more: what is at a boundary is committed, the rest is read again.

        Called by the task, on the pump's own thread: nobody else has to be woken.
        """
        self._leave = True

    def note_pump_ended(self) -> None:
        """The pump is done."""
        with self._changed:
            self._pumped = True
            self._changed.notify_all()

    def note_due_changed(self) -> None:
        """A transaction has begun, or is to end sooner: the clock has something to watch."""
        self._note_news()

    def note_stumbled(self) -> None:
        """The source has failed and is asked again: the clock has something to watch."""
        self._note_news()

    def wait_for_pump(self, timeout_s: float) -> bool:
        """Wait until the pump is done; whether it is."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._pumped and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._pumped

    def wait_for_change(self, timeout_s: float) -> None:
        """Wait until a signal is set, the clock has something new to watch, or the time is over."""
        with self._changed:
            if not (self._pumped or self.end_asked or self._news):
                self._changed.wait(timeout_s)
            self._news = False

    def _note_news(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()
