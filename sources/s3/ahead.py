"""Small objects, fetched before their turn: what costs time with these is waiting for each answer."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait

import attrs

from headrace.sources.s3.attempts import Count
from headrace.sources.s3.objects import S3Object

__all__ = ["Ahead", "Fetched"]

log = logging.getLogger(__name__)

SMALL_BYTES = 256 * 1024
"""Objects of no more than that are fetched whole, ahead of their turn."""

AT_ONCE = 8
"""So many requests are under way; botocore has ten connections."""

MOST_HELD = 16
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
    learns why. What is fetched and not taken yet are `MOST_HELD` objects at the most.
    """

    fetch: Fetch
    stopping: threading.Event
    _asked: dict[S3Object, Future[Fetched]] = attrs.field(factory=dict, init=False)
    _work: queue.SimpleQueue[tuple[S3Object, Future[Fetched]] | None] = attrs.field(
        factory=queue.SimpleQueue, init=False
    )
    _threads: int = attrs.field(default=0, init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)

    def ask(self, objects: Iterable[S3Object], unless: Callable[[S3Object], bool]) -> None:
        """Have those fetched that are small and new, as far as there is room; not those of which `unless` holds."""
        for found in objects:
            if len(self._asked) >= MOST_HELD:
                return
            if 0 < found.size <= SMALL_BYTES and found not in self._asked and not unless(found):
                future: Future[Fetched] = Future()
                self._asked[found] = future
                self._start_thread()
                self._work.put((found, future))

    @property
    def has_room(self) -> bool:
        """Whether it is worth asking: what is held goes one by one, and is filled up a few at a time."""
        return len(self._asked) <= MOST_HELD // 2

    def take(self, found: S3Object) -> Fetched | None:
        """What came of an object; None where it was not asked for, or the task is to stop before it is there."""
        future = self._asked.pop(found, None)
        if future is None:
            return None
        while not future.done():
            if self.stopping.is_set():
                return None
            wait([future], _CHECK_S)
        return future.result()

    def close(self) -> None:
        """Fetch nothing more; what is under way ends by itself, soon, and is dropped."""
        self._closed.set()
        self._asked.clear()
        for _ in range(self._threads):
            self._work.put(None)

    def _start_thread(self) -> None:
        if self._threads < AT_ONCE:
            self._threads += 1
            threading.Thread(target=self._run, name="s3-ahead", daemon=True).start()

    def _run(self) -> None:
        while (item := self._work.get()) is not None and not self._closed.is_set():
            found, future = item
            result = Fetched()
            try:
                result.content = self.fetch(found, self._closed, result.count)
            except Exception as error:  # noqa: BLE001 - the reader asks again by himself, and learns why
                log.debug("%s is not fetched ahead: %s", found.uri, error)
            finally:
                future.set_result(result)
