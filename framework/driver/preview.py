"""The first record of a split, read by the source's own reader and written by the connector's own converter."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import attrs

from headrace.converters.base import Converter
from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.distribution import ObjectDistributionStrategy, TaskShare
from headrace.framework.errors import HeadraceError, PipelineError, Where
from headrace.framework.metrics import TaskMetrics
from headrace.framework.record import RecordBatch
from headrace.framework.splits import SourceReader, Split, SplitSource
from headrace.framework.task import TaskContext
from headrace.framework.worker.execute import make_converter, make_source
from headrace.framework.worker.pipeline import as_batch
from headrace.framework.worker.split_task import ReaderContext
from headrace.offsets.manager import OffsetManager
from headrace.offsets.store import OffsetStore

__all__ = ["FirstRecord", "Previewer"]

WITHIN_S = 10.0
PAUSE_S = 0.02
LONGEST_SHOWN = 2000
CHUNK = 4096


@attrs.frozen(kw_only=True)
class FirstRecord:
    """What the next record of a split would be: its value as text, and its topic; or what is wrong with it."""

    value: str | None = None
    topic: str | None = None
    error: str | None = None


@attrs.define
class Previewer:
    """Opens splits to show their next record. Nothing of it is kept: a run reads them again.

    An object that would be one single record is shown by its beginning.
    """

    config: SourceCommonConfig
    props: Mapping[str, str]
    offsets: OffsetStore
    metrics: TaskMetrics = attrs.field(factory=TaskMetrics)
    _source: SplitSource[Any] = attrs.field(init=False)
    _converter: Converter = attrs.field(init=False)
    _strategy: ObjectDistributionStrategy = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Configure what a task would configure."""
        whole = self.config.input_format == "bytes" and not self.config.transformer_max_buffer_size
        props = {**self.props, "transformer.max.buffer.size": str(CHUNK)} if whole else self.props
        source, _ = make_source(props)
        assert isinstance(source, SplitSource)  # noqa: S101 - plans are made of splits
        self._source = source
        self._converter = make_converter(self.config, "value")
        self._strategy = registry.find("distributions", self.config.distribution_type)()
        self._strategy.configure(self.props)

    def first_record(self, split: Split, task_id: int) -> FirstRecord:
        """The next record of a split, as task `task_id` would read it."""
        context = self._context(task_id)
        reader: SourceReader[Split] = self._source.create_reader(ReaderContext(context))
        try:
            batch = _first_batch(reader, split)
            if batch is None:
                return FirstRecord()
            value = self._converter.convert(batch.topic, batch.schema, batch.values[0])
        except HeadraceError as error:
            if isinstance(error, PipelineError):
                error.located(Where(connector=self.config.name, task=task_id))
            return FirstRecord(error=str(error))
        finally:
            context.stopping.set()
            reader.close()
        return FirstRecord(value=_shown(value), topic=batch.topic)

    def _context(self, task_id: int) -> TaskContext:
        return TaskContext(
            connector=self.config.name,
            task_id=task_id,
            tasks_max=self.config.tasks_max,
            offsets=OffsetManager(self.offsets),
            distribution=TaskShare(self._strategy, task_id, self.config.tasks_max),
            metrics=self.metrics,
            stopping=threading.Event(),
        )


def _first_batch(reader: SourceReader[Split], split: Split) -> RecordBatch | None:
    reader.start()
    reader.add_splits([split])
    deadline = time.monotonic() + WITHIN_S
    while True:
        items = reader.poll()
        for item in items:
            if item is not None and (batch := as_batch(item)).values:
                return batch
        if not reader.snapshot() or time.monotonic() > deadline:
            return None
        if not items:
            time.sleep(PAUSE_S)


def _shown(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value[: 4 * LONGEST_SHOWN].decode(errors="backslashreplace")
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
