"""From what a task yields to bytes at the sink: the stages convert and produce."""

from collections.abc import Sequence

import attrs

from headrace.converters.base import Converter
from headrace.framework.errors import DataError, Where
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.framework.schema import Schema, SchemaAndValue
from headrace.framework.sink import SinkWriter
from headrace.framework.stage import Stage
from headrace.offsets.entry import RECORD_COUNT

__all__ = ["Pipeline", "as_batch"]


def as_batch(item: SourceRecord | RecordBatch) -> RecordBatch:
    """A single record as a batch of one."""
    if isinstance(item, RecordBatch):
        return item
    schema, value = _apart(item.value)
    return RecordBatch(
        source_partition=item.source_partition,
        source_offset=item.source_offset,
        topic=item.topic,
        schema=schema,
        values=(value,),
        key=item.key,
        partition=item.partition,
        timestamp=item.timestamp,
        headers=item.headers,
    )


@attrs.frozen
class Pipeline:
    """A task's converters, and its way to the sink."""

    key_converter: Converter
    value_converter: Converter
    writer: SinkWriter

    def send(self, batch: RecordBatch) -> int:
        """Send a batch and return how many bytes its values have.

        A `DataError` has nothing of the batch sent; `bad_record` says where in the batch it is.
        """
        if not batch.values:
            return 0
        key_schema, key = _apart(batch.key)
        key_bytes = self.key_converter.convert(batch.topic, key_schema, key)
        values = self.value_converter.convert_all(batch.topic, batch.schema, batch.values)
        self.writer.write(
            batch.topic,
            key_bytes,
            values,
            partition=batch.partition,
            timestamp=batch.timestamp,
            headers=batch.headers,
        )
        return _total_size(values)

    def first_bad(self, batch: RecordBatch) -> tuple[int, DataError] | None:
        """The index and the error of the first value of a batch that cannot be converted."""
        for index, value in enumerate(batch.values):
            try:
                self.value_converter.convert(batch.topic, batch.schema, value)
            except DataError as error:
                return index, error.located(_place(batch, index))
        return None


def _apart(value: object) -> tuple[Schema | None, object]:
    return (value.schema, value.value) if isinstance(value, SchemaAndValue) else (None, value)


def _total_size(values: Sequence[bytes | None]) -> int:
    # filter(None) drops nulls and empty values, which have no size, at the speed of C.
    return sum(map(len, filter(None, values)))


def _place(batch: RecordBatch, index: int) -> Where:
    before = batch.offset_at(index) if batch.offset_at else {}
    count = before.get(RECORD_COUNT) if before else batch.source_offset.get(RECORD_COUNT, 0) - len(batch.values) + index
    return Where(stage=Stage.CONVERT, position=None if count is None or count < 0 else f"record {count + 1}")
