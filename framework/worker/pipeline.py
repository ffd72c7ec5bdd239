"""From what a task yields to bytes at the sink: the stages convert and produce."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import attrs

from headrace.converters.base import Converter
from headrace.framework.errors import DataError, PipelineError, RecordTooLargeError, Where
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.framework.schema import Schema, SchemaAndValue
from headrace.framework.sink import SinkWriter
from headrace.framework.stage import Stage
from headrace.framework.worker.dead_letters import DeadLetters
from headrace.offsets.entry import RECORD_COUNT

__all__ = ["Converted", "Pipeline", "Sent", "as_batch"]

log = logging.getLogger(__name__)


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


class Sent(NamedTuple):
    """What became of a batch: records and their bytes that were sent, and records that were passed over.

    With `refused` the sink did not take the record behind those that were sent, and has nothing of what follows it.
    """

    records: int = 0
    bytes: int = 0
    dead: int = 0
    refused: RecordTooLargeError | None = None


class Converted(NamedTuple):
    """The key and the values of a batch as bytes."""

    key: bytes | None
    values: Sequence[bytes | None]


@attrs.frozen
class Pipeline:
    """A task's converters, and its way to the sink; with `dead_letters` a bad record is no error."""

    key_converter: Converter
    value_converter: Converter
    writer: SinkWriter
    dead_letters: DeadLetters | None = None

    def convert(self, batch: RecordBatch) -> Converted | None:
        """A batch as `send` takes it; None where there is nothing in it, or `send` has to find out what is wrong."""
        if not batch.values:
            return None
        try:
            key = self._key_of(batch)
            return Converted(key, self.value_converter.convert_all(batch.topic, batch.schema, batch.values))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is met again when the batch is sent
            log.debug("a batch for %s is not all good: %s", batch.topic, error)
            return None

    def send(self, batch: RecordBatch, converted: Converted | None = None) -> Sent:
        """Send a batch, with what is bad in it to the dead letters if there are such.

        Otherwise a `DataError` has nothing of the batch sent; `first_bad` says where in the batch it is. One that is
        too large is found out by the sink only, when it has those before it: that is in what is returned.
        """
        if not batch.values:
            return self._send_piece(batch)
        self._refuse_dead_topic(batch)
        if converted is not None:
            return self._write(batch, converted.key, converted.values, range(len(converted.values)))
        try:
            key_bytes = self._key_of(batch)
        except DataError as error:
            if self.dead_letters is None:
                raise
            return self._bury_all(batch, error)
        try:
            values = self.value_converter.convert_all(batch.topic, batch.schema, batch.values)
        except DataError:
            if self.dead_letters is None:
                raise
            return self._send_good(batch, key_bytes, self.dead_letters)
        return self._write(batch, key_bytes, values, range(len(values)))

    def close(self) -> None:
        """Nothing more comes for now: what is still to be said of bad records is said."""
        if self.dead_letters is not None:
            self.dead_letters.close()

    def _key_of(self, batch: RecordBatch) -> bytes | None:
        schema, key = _apart(batch.key)
        return self.key_converter.convert(batch.topic, schema, key)

    def _send_piece(self, batch: RecordBatch) -> Sent:
        if batch.rejected is None:
            return Sent()
        if self.dead_letters is None:
            raise batch.rejected.error
        self._refuse_dead_topic(batch)
        self.dead_letters.piece(batch)
        return Sent(dead=1)

    def _send_good(self, batch: RecordBatch, key: bytes | None, dead_letters: DeadLetters) -> Sent:
        """Send the values of a batch that can be converted."""
        good: list[bytes | None] = []
        places: list[int] = []
        for index, value in enumerate(batch.values):
            try:
                good.append(self.value_converter.convert(batch.topic, batch.schema, value))
                places.append(index)
            except DataError as error:
                dead_letters.value(batch, index, error.located(_place(batch, index)))
        sent = self._write(batch, key, good, places)
        return sent._replace(dead=len(batch.values) - sent.records)

    def _bury_all(self, batch: RecordBatch, error: DataError) -> Sent:
        assert self.dead_letters is not None  # noqa: S101 - the caller has looked
        for index in range(len(batch.values)):
            named = DataError(error.message, error.where.filled(_place(batch, index)))
            self.dead_letters.value(batch, index, named)
        return Sent(dead=len(batch.values))

    def _write(
        self, batch: RecordBatch, key: bytes | None, values: Sequence[bytes | None], places: Sequence[int]
    ) -> Sent:
        """Write values; `places` says which ones of the batch they are.

        One that is too large is passed over, or ends it where nothing is.
        """
        records = size = dead = 0
        while values:
            try:
                self.writer.write(
                    batch.topic,
                    key,
                    values,
                    partition=batch.partition,
                    timestamp=batch.timestamp,
                    headers=batch.headers,
                )
            except RecordTooLargeError as error:
                index = error.index
                error.located(_place(batch, places[index], Stage.PRODUCE))
                if self.dead_letters is None:
                    return Sent(index, _total_size(values[:index]), refused=error)
                self.dead_letters.value(batch, places[index], error)
                dead += 1
                taken, values, places = values[:index], values[index + 1 :], places[index + 1 :]
            else:
                taken, values = values, ()
            records, size = records + len(taken), size + _total_size(taken)
        return Sent(records, size, dead)

    def _refuse_dead_topic(self, batch: RecordBatch) -> None:
        if self.dead_letters is not None and batch.topic == self.dead_letters.topic:
            raise PipelineError(
                f"records cannot go to {batch.topic}: it is the topic of the dead letters; name another topic",
                Where(stage=Stage.PRODUCE, object=batch.origin.object if batch.origin else None),
            )

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


def _place(batch: RecordBatch, index: int, stage: Stage = Stage.CONVERT) -> Where:
    before = batch.offset_at(index) if batch.offset_at else {}
    count = before.get(RECORD_COUNT) if before else batch.source_offset.get(RECORD_COUNT, 0) - len(batch.values) + index
    if batch.origin is None:
        return Where(stage=stage, position=None if count is None or count < 0 else f"record {count + 1}")
    line = batch.origin.place(index).line
    if line is not None:
        return Where(stage=stage, object=batch.origin.object, position=batch.origin.line(line))
    position = None if count is None or count < 0 else batch.origin.record(count + 1)
    return Where(stage=stage, object=batch.origin.object, position=position)
