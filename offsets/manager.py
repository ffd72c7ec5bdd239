"""What a task asks and tells about its progress."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import attrs

from headrace.framework.record import RecordBatch, SourceRecord
from headrace.offsets.entry import OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey, checked_map
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["OffsetManager"]

E = TypeVar("E")
Entries = dict[OffsetManagerKey, dict[str, Any]]


@attrs.define(eq=False, repr=False)
class OffsetManager:
    """The progress of one task: what is committed, and above it what its open transaction has written.

    A task sees its own writes at once. An aborted transaction takes them back; a committed one makes them part of
    the committed view. Maps in and out are copies. No call waits for Kafka.

    A task uses the first four methods, from any of its threads. The others are the worker loop's: `written` on the
    thread that pulls the task's iterator, before it pulls again; the end of a transaction on whatever thread ends it.
    """

    _store: OffsetStore
    # Newest first: noted but not sent, sent but not committed, committed.
    _unsent: Entries = attrs.field(factory=dict, init=False)
    _open: Entries = attrs.field(factory=dict, init=False)
    _cached: Entries = attrs.field(factory=dict, init=False)
    # A store knows again what it was asked to write, if it is the very map that it was given.
    _given: Offsets | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def get_entry(self, key: OffsetManagerKey, creator: Callable[[dict[str, Any]], E]) -> E | None:
        """What is known of `key`, made into an entry by `creator` from a copy of the stored map; None if nothing.

        A map without any properties is nothing, as in Kafka Connect's connectors. What the store does not know is
        asked for again the next time; what it knows is kept.
        """
        with self._lock:
            properties = dict(self._known(key))
        return creator(properties) if properties else None

    def populate_offset_manager(self, keys: Collection[OffsetManagerKey]) -> None:
        """Read the entries of `keys` in one bulk read, so that asking for them costs nothing more."""
        with self._lock:
            missing = [key for key in keys if key not in self._cached]
            if missing:
                self._cached.update(self._store.get(missing))

    def add_entry(self, entry: OffsetManagerEntry) -> None:
        """Note an entry whose record is still to be sent, so that `get_entry` knows it already.

        It stands until a record of its key has been sent, whose own offset counts from then on, or until the iterator
        is closed. It is never committed by itself: only what records carry is.
        """
        properties = checked_map(entry.get_properties(), what="a source offset")
        with self._lock:
            self._unsent[entry.get_manager_key()] = properties

    def is_rolled_up(self, key: OffsetManagerKey, version: str) -> bool:
        """Whether `key` was read to its end in this version, and its entry has since given way to a roll-up."""
        with self._lock:
            return self._store.rolled_up(key, version) is True and not self._known(key)

    def remove(self, what: OffsetManagerKey | SourceRecord | RecordBatch) -> None:
        """Drop what is kept in memory of a key, or of a record's, and is committed: asking again reads the store.

        What this task has noted or sent itself stays, because it could not be read again.
        """
        key = what if isinstance(what, OffsetManagerKey) else OffsetManagerKey(what.source_partition)
        with self._lock:
            self._cached.pop(key, None)

    def written(self, key: OffsetManagerKey, offset: Mapping[str, Any]) -> None:
        """The worker loop: the open transaction now ends with this offset for `key`."""
        properties = checked_map(offset, what="a source offset")
        with self._lock:
            self._open[key] = properties
            self._unsent.pop(key, None)
            self._given = None

    def pending(self) -> Offsets:
        """The worker loop: the offsets that the open transaction has to commit."""
        with self._lock:
            self._given = {key: dict(properties) for key, properties in self._open.items()}
            return self._given

    def committed(self) -> None:
        """The worker loop: the open transaction was committed."""
        with self._lock:
            self._store.committed(self._given if self._given is not None else self._open)
            for key in self._open:
                self._cached.pop(key, None)
            self._open, self._given = {}, None

    def aborted(self) -> None:
        """The worker loop: the open transaction was aborted, and the iterator goes with it; nothing of it was read."""
        with self._lock:
            self._open, self._given = {}, None
            self._unsent = {}

    def iterator_closed(self) -> None:
        """The worker loop: the iterator is closed. What it noted and did not send was not read."""
        with self._lock:
            self._unsent = {}

    def _known(self, key: OffsetManagerKey) -> Mapping[str, Any]:
        for layer in (self._unsent, self._open, self._cached):
            if key in layer:
                return layer[key]
        found = self._store.get([key])
        self._cached.update(found)
        return found.get(key, {})
