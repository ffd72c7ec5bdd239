"""The request for the next object, made while the one before it is read: what costs time is waiting for its answer."""

import logging
import threading
from collections.abc import Callable

import attrs

from headrace.sources.s3.attempts import Count
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.stream import ObjectStream

__all__ = ["Begun", "NextObject"]

log = logging.getLogger(__name__)

CHECK_S = 0.1

Begin = Callable[[S3Object, threading.Event, Count], ObjectStream]


@attrs.define(eq=False)
class Begun:
    """What came of the request for one object: its stream, or None; and what was counted, for the task's thread."""

    object: S3Object
    stream: ObjectStream | None = attrs.field(default=None, init=False)
    counts: dict[str, int] = attrs.field(factory=dict, init=False)
    dropped: threading.Event = attrs.field(factory=threading.Event, init=False)
    done: threading.Event = attrs.field(factory=threading.Event, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def count(self, name: str, by: int) -> None:
        """Count what the request does."""
        self.counts[name] = self.counts.get(name, 0) + by

    def answer(self, stream: ObjectStream | None) -> None:
        """What has become of it; nobody may want it any more by now."""
        with self._lock:
            self.stream = stream
            self.done.set()
            if self.dropped.is_set():
                self._close()

    def drop(self) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self.dropped.set()
            self._close()

    def _close(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()


@attrs.define
class NextObject:
    """One object whose bytes wait in their connection for its turn; used by one thread.

    It is an optimisation and decides nothing. `begin(object, stopping, count)` makes the request, or raises, and is not
    asked twice: whoever reads an object for which it has failed asks the server himself, and learns why.
    """

    begin: Begin
    stopping: threading.Event
    _begun: Begun | None = attrs.field(default=None, init=False)

    def ask(self, found: S3Object) -> None:
        """Have this object asked for, in place of another one that was not taken."""
        if self._begun is not None and self._begun.object == found:
            return
        self.close()
        self._begun = begun = Begun(found)
        threading.Thread(target=self._ask, args=(begun,), name="s3-next", daemon=True).start()

    def take(self, found: S3Object) -> Begun | None:
        """What came of an object; None where it was not asked for, or the task is to stop before that is there."""
        begun = self._begun
        if begun is None or begun.object != found:
            return None
        while not begun.done.wait(CHECK_S):
            if self.stopping.is_set():
                self.close()
                return None
        self._begun = None
        return begun

    def close(self) -> None:
        """Drop what was not taken."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.drop()

    def _ask(self, begun: Begun) -> None:
        stream = None
        try:
            stream = self.begin(begun.object, begun.dropped, begun.count)
        except Exception as error:  # noqa: BLE001 - the reader asks again by himself, and learns why
            log.debug("%s is not asked for before its turn: %s", begun.object.uri, error)
        finally:
            begun.answer(stream)
