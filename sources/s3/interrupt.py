"""Ending the read that a task waits in when the task is to stop."""

import threading

import attrs

from headrace.sources.s3.body import AnswerBody

__all__ = ["Interrupter"]

CHECK_S = 0.1


@attrs.define
class Interrupter:
    """Shuts the connection that is watched as soon as `stopping` is set, so that whoever waits for its bytes wakes up.

    One per task, shared by its streams, one after the other; `close` ends its thread. Bytes that come out of a
    connection after `stopping` was set are not to be trusted: shut in the middle of TLS, it gives out anything.
    """

    stopping: threading.Event
    _body: AnswerBody | None = attrs.field(default=None, init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def watch(self, body: AnswerBody | None) -> None:
        """Watch the body of an answer in place of the one before; None to watch nothing."""
        self._body = body
        if self._thread is None and body is not None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._wait, name="s3-interrupter", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread; what is being read is left alone."""
        self._closed.set()
        self._body = None
        if self._thread is not None:
            self._thread.join()

    def _wait(self) -> None:
        while not self._closed.wait(CHECK_S):
            # Again and again: a request that was under way may still bring a new body.
            if self.stopping.is_set() and (body := self._body) is not None:
                body.shut()
