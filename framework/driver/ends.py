"""Whether pieces that were begun are at their end: found by reading, where nobody has written it down."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.config import SourceCommonConfig
from headrace.framework.distribution import TaskShare
from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.errors import DataError
from headrace.framework.metrics import TaskMetrics
from headrace.framework.registry import find
from headrace.framework.source_offsets import State, Surveyed
from headrace.framework.splits import SourceReader, Split, SplitSource
from headrace.framework.task import TaskContext
from headrace.framework.worker.pipeline import as_batch
from headrace.framework.worker.split_task import ReaderContext
from headrace.framework.worker.transaction import COMPLETE
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore

__all__ = ["with_ends"]

PAUSE_S = 0.02


def with_ends(connector: OpenedConnector, pieces: Iterable[Surveyed]) -> Iterator[Surveyed]:
    """The pieces, those complete of which it can be seen that they are: nothing comes behind what went out.

    Each that was begun is opened with the source's own reader, and read up to what comes next.
    """
    source = connector.source
    if not isinstance(source, SplitSource):
        yield from pieces
        return
    finder = _EndFinder(source, connector.config)
    try:
        for piece in pieces:
            if piece.state is not State.PARTIAL or piece.split is None:
                yield piece
                continue
            end = finder.end_of(piece.split, piece.key, piece.offset)
            yield piece if end is None else attrs.evolve(piece, state=State.COMPLETE, offset=end, split=None)
    finally:
        finder.close()


@attrs.define
class _EndFinder:
    """Reads splits one after the other with one reader, which is only given up in the middle of one."""

    source: SplitSource[Any]
    config: SourceCommonConfig
    _store: MemoryOffsetStore = attrs.field(factory=MemoryOffsetStore, init=False)
    _known: OffsetManager = attrs.field(init=False)
    _stopping: threading.Event = attrs.field(factory=threading.Event, init=False)
    _reader: SourceReader[Any] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._known = OffsetManager(self._store)

    def end_of(self, split: Split, key: OffsetManagerKey, offset: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The offset of a split's end, if that is what comes next; None where records come."""
        self._store.committed({key: offset})
        reader, end = self._reader or self._open(), None
        try:
            reader.add_splits([split])
            end = self._what_comes(reader)
        finally:
            self._store.committed({key: None})
            self._known.remove(key)
            if end is None or reader.poll() or reader.snapshot():
                self.close()
        return end

    def close(self) -> None:
        """Let go of the source."""
        reader, self._reader = self._reader, None
        self._stopping.set()
        if reader is not None:
            reader.close()

    def _open(self) -> SourceReader[Any]:
        self._stopping = threading.Event()
        reader = self._reader = self.source.create_reader(ReaderContext(self._context()))
        reader.start()
        return reader

    def _what_comes(self, reader: SourceReader[Any]) -> Mapping[str, Any] | None:
        while True:
            try:
                items = reader.poll()
            except DataError:
                return None  # there is something behind what went out, and a run will say what is wrong with it
            for batch in [as_batch(item) for item in items if item is not None]:
                return batch.source_offset if batch.is_empty and batch.source_offset.get(COMPLETE) else None
            if not reader.snapshot():
                return None
            self._stopping.wait(PAUSE_S)

    def _context(self) -> TaskContext:
        strategy = find("distributions", self.config.distribution_type)()
        strategy.configure(self.config.props)
        return TaskContext(
            connector=self.config.name,
            task_id=0,
            tasks_max=1,
            offsets=self._known,
            distribution=TaskShare(strategy, 0, 1),
            metrics=TaskMetrics(),
            stopping=self._stopping,
        )
