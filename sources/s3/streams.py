"""The bytes of one task's objects, some of them asked for before their turn."""

import io
import threading
from collections.abc import Sequence
from functools import partial
from itertools import islice

import attrs

from headrace.framework.task import TaskContext
from headrace.sources.s3.ahead import MOST_HELD, WORTH_IT, Ahead
from headrace.sources.s3.attempts import Attempts, Count
from headrace.sources.s3.client import S3Client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import object_key
from headrace.sources.s3.interrupt import Interrupter
from headrace.sources.s3.next_object import NextObject
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.seekable import SeekableObject
from headrace.sources.s3.signed import SignedGets
from headrace.sources.s3.splits import S3Split
from headrace.sources.s3.stream import ObjectStream

__all__ = ["Streams"]

SMALL_BYTES = 256 * 1024
"""An object of no more is not worth a thread that asks for it alone."""

SOON_READ_BYTES = 64 * 1024 * 1024
"""An object of no more is read before a server gives up the next one's connection, on which nobody reads yet."""


@attrs.define
class Streams:
    """Opens one object after the other; used by one thread, and closed with what it holds.

    Where many objects are waiting, those that come next are fetched before their turn unless they are large. One
    that comes next and is neither fetched so nor small is asked for while the one before it is read, if `in_order` says
    that it will be read from its first byte on.
    """

    client: S3Client
    config: S3Config
    task: TaskContext
    in_order: bool
    _interrupter: Interrupter = attrs.field(init=False)
    _ahead: Ahead = attrs.field(init=False)
    _next: NextObject = attrs.field(init=False)
    _signed: SignedGets | None = attrs.field(default=None, init=False)
    _has_looked_ahead: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Nothing is asked of the server yet."""
        self._interrupter = Interrupter(self.task.stopping)
        self._ahead = Ahead(self._fetch, self.task.stopping)
        self._next = NextObject(self._begin, self.task.stopping)

    def fetch_ahead(self, splits: Sequence[S3Split]) -> None:
        """The first of these is about to be read: fetch those behind it, where they are many."""
        if len(splits) > WORTH_IT and self._ahead.has_room:
            if not self._has_looked_ahead:
                self._has_looked_ahead = True
                self._signed = SignedGets.for_bucket(self.client, self.config.bucket)
            coming = (split.object for split in islice(splits, 1, 1 + MOST_HELD) if split.part is None)
            self._ahead.ask(coming, unless=self._is_begun)

    def ask_ahead(self, splits: Sequence[S3Split]) -> None:
        """The first of these is being read: ask for the one behind it, unless it is small or fetched already."""
        if not self.in_order or len(splits) == 1 or splits[0].object.size > SOON_READ_BYTES:
            return
        part, coming = splits[1].part, splits[1].object
        if part is not None or coming.size <= SMALL_BYTES or self._ahead.has_asked_for(coming):
            return
        if not self._is_begun(coming):
            self._next.ask(coming)

    def open(self, found: S3Object) -> SeekableObject:
        """The object's bytes."""
        fetched = self._ahead.take(found)
        for name, by in fetched.counts.items() if fetched else ():
            self.task.metrics.count(name, by)
        content = fetched.content if fetched else None
        if content is not None:
            return SeekableObject(lambda start, end: io.BytesIO(content[start:end]), found.size)
        attempts = self.config.attempts(self.task.stopping, count=self.task.metrics.count)
        return SeekableObject(partial(self._range, found, attempts), found.size)

    def close(self) -> None:
        """Drop what was asked for and not read."""
        self._ahead.close()
        self._next.close()
        if self._signed is not None:
            self._signed.close()
        self._interrupter.close()

    def _is_begun(self, found: S3Object) -> bool:
        """Whether an object was read before: then it is read by itself, from where that ended."""
        return self.task.offsets.get_entry(object_key(found.bucket, found.key), dict) is not None

    def _fetch(self, found: S3Object, stopping: threading.Event, count: Count) -> bytes:
        """A whole object, in one attempt, on another thread."""
        if self._signed is not None and self._signed.is_of_use:
            count("s3_get_calls", 1)
            content = self._signed.fetch(found)
            count("s3_bytes_fetched", len(content))
            return content
        pieces: list[bytes] = []
        with self._once(found, stopping, count) as stream:
            while piece := stream.read(found.size):
                pieces.append(piece)
        return b"".join(pieces)

    def _begin(self, found: S3Object, stopping: threading.Event, count: Count) -> ObjectStream:
        """A whole object whose first byte waits to be read, in one attempt, on another thread."""
        stream = self._once(found, stopping, count)
        stream.begin()
        return stream

    def _once(self, found: S3Object, stopping: threading.Event, count: Count) -> ObjectStream:
        attempts = attrs.evolve(self.config.attempts(stopping), retries=0)
        return ObjectStream(client=self.client, object=found, attempts=attempts, count=count)

    def _range(self, found: S3Object, attempts: Attempts, start: int, end: int | None) -> ObjectStream:
        begun = self._next.take(found)
        for name, by in begun.counts.items() if begun else ():
            self.task.metrics.count(name, by)
        if begun is not None and begun.stream is not None:
            if start == 0 and end is None:
                begun.stream.go_on(attempts, self._interrupter, self.task.metrics.count)
                return begun.stream
            begun.stream.close()
        return ObjectStream(
            client=self.client,
            object=found,
            attempts=attempts,
            interrupter=self._interrupter,
            start=start,
            end=end,
            count=self.task.metrics.count,
        )
