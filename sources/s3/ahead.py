"""Objects that are not large, fetched before their turn: what costs time with these is waiting for each answer."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from operator import attrgetter

import attrs

from headrace.sources.s3.attempts import Count
from headrace.sources.s3.objects import S3Object

__all__ = ["Ahead", "Fetched"]

log = logging.getLogger(__name__)

WHOLE_BYTES = 1024 * 1024
"""Objects of no more than that are fetched whole, ahead of their turn."""

AT_ONCE = 8
"""So many requests are under way; botocore has ten connections."""

MOST_HELD = 16
MOST_HELD_BYTES = 4 * WHOLE_BYTES
WORTH_IT = 8
_CHECK_S = 0.1

Fetch = Callable[[S3Object, threading.Event, Count], bytes]


@attrs.define
class Fetched:
    """What came of fetching one object: its bytes, or None; and what was counted on the way, for the task's thread."""

    content: bytes | None = None
    counts: dict[str, int] = attrs.field(factory=dict)

    def count(self, name: str, by: int) -> None:
        """Count what the fetching does."""
        self.counts[name] = self.counts.get(name, 0) + by


@attrs.define
class Ahead:
    """Fetches the objects that come next, a few at a time, on threads of its own; used by one thread.

    It is an optimisation and decides nothing. `fetch(object, stopping, count)` gives the bytes of one version or
    raises, and is not asked twice: whoever reads an object that could not be fetched asks the server himself, and
    learns why. What is fetched and not taken yet are `MOST_HELD` objects and `MOST_HELD_BYTES` at the most.
    """

    fetch: Fetch
    stopping: threading.Event
    _asked: dict[S3Object, Fetched | None] = attrs.field(factory=dict, init=False)
    _awaited: S3Object | None = attrs.field(default=None, init=False)
    _came: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _work: queue.SimpleQueue[S3Object | None] = attrs.field(factory=queue.SimpleQueue, init=False)
    _threads: int = attrs.field(default=0, init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)

    def ask(self, objects: Iterable[S3Object], unless: Callable[[S3Object], bool]) -> None:
        """Have those fetched that are new and not large, as far as there is room; not those of which `unless` holds."""
        held = self._held_bytes
        for found in objects:
            if not 0 < found.size <= WHOLE_BYTES or found in self._asked or unless(found):
                continue
            if len(self._asked) >= MOST_HELD or held + found.size > MOST_HELD_BYTES:
                return
            held += found.size
            self._asked[found] = None
            self._start_thread()
            self._work.put(found)

    @property
    def has_room(self) -> bool:
        """Whether it is worth asking: what is held goes one by one, and is filled up a few at a time."""
        return len(self._asked) <= MOST_HELD // 2 and self._held_bytes <= MOST_HELD_BYTES // 2

    def has_asked_for(self, found: S3Object) -> bool:
        """Whether an object comes, and is not taken yet."""
        return found in self._asked

    def take(self, found: S3Object) -> Fetched | None:
        """What came of an object; None where it was not asked for, or the task is to stop before it is there."""
        if found not in self._asked:
            return None
        with self._came:
            self._awaited = found
            while self._asked.get(found) is None and not self._is_to_end:
                self._came.wait(_CHECK_S)
            self._awaited = None
            return self._asked.pop(found, None)

    def close(self) -> None:
        """Fetch nothing more; what is under way ends by itself, soon, and is dropped."""
        self._closed.set()
        with self._came:
            self._asked.clear()
        for _ in range(self._threads):
            self._work.put(None)

    @property
    def _held_bytes(self) -> int:
        return sum(map(attrgetter("size"), self._asked))

    @property
    def _is_to_end(self) -> bool:
        return self.stopping.is_set() or self._closed.is_set()

    def _start_thread(self) -> None:
        if self._threads < AT_ONCE:
            self._threads += 1
            threading.Thread(target=self._run, name="s3-ahead", daemon=True).start()

    def _run(self) -> None:
        while (found := self._work.get()) is not None and not self._closed.is_set():
            result = Fetched()
            try:
                result.content = self.fetch(found, self._closed, result.count)
            except Exception as error:  # noqa: BLE001 - the reader asks again by himself, and learns why
                log.debug("%s is not fetched ahead: %s", found.uri, error)
            finally:
                self._hand_over(found, result)

    def _hand_over(self, found: S3Object, result: Fetched) -> None:
        with self._came:
            if found in self._asked:
                self._asked[found] = result
            if found == self._awaited:
                self._came.notify()
