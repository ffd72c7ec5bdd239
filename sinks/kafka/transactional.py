"""Records and offsets in one Kafka transaction."""

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import FencedError, OffsetsError, TakenOverError
from headrace.framework.record import Header
from headrace.framework.sink import SinkWriter
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.records import Counters, Generation, counter_key, generation_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["TransactionalKafkaWriter"]

log = logging.getLogger(__name__)


@attrs.define(kw_only=True)
class TransactionalKafkaWriter(SinkWriter):
    """One attempt of one task at one micro-batch.

    It inits once, and only then reads whose turn it is and how far things are: whoever inits before the claim's
    fencing is fenced, whoever inits after it sees the claim and stops before it produces.
    """

    exactly_once: ClassVar[bool] = True

    settings: KafkaSettings
    task_id: int
    generation: Generation
    partitions: int
    snapshot: OffsetsSnapshot
    _producer: TransactionalProducer | None = attrs.field(default=None, init=False)
    _view: KafkaOffsetView = attrs.field(init=False)
    _counters: Counters = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._view = KafkaOffsetView(self.settings.connector)
        self._counters = Counters(owner=self.generation.owner)

    @override
    def open(self) -> OffsetStore:
        self._producer = TransactionalProducer(self.settings, self.task_id)
        self._producer.init()
        for key, value in self.snapshot.entries.items():
            self._view.take_raw(key, value)
        self._read_on({number: self.snapshot.positions.get(number, 0) for number in range(self.partitions)})
        self._refuse_other_generation()
        known = self._view.counters(self.task_id)
        if known.owner == self.generation.owner:
            self._counters = known
        return self._view

    @override
    def write(
        self,
        topic: str,
        key: bytes | None,
        values: Sequence[bytes | None],
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        if topic == self.settings.offsets_topic:
            raise OffsetsError(f"records cannot go to {topic}: it is the connector's offsets topic; name another topic")
        try:
            self._held.write(topic, key, values, partition=partition, timestamp=timestamp, headers=headers)
        except FencedError as error:
            raise self._whose(error) from error

    @override
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        producer, topic = self._held, self.settings.offsets_topic
        counters = self._counters.plus(counted)
        try:
            # Offsets last, once the records are at the broker: until the commit they hold back whoever reads the
            # same partition of the offsets topic, so the time between is kept short.
            producer.flush()
            for key, value in self._view.records_for(offsets):
                producer.write(topic, key, [value])
            producer.write(topic, counter_key(self.settings.connector, self.task_id), [counters.encode()])
            producer.commit()
        except FencedError as error:
            raise self._whose(error) from error
        self._counters = counters

    @override
    def abort(self) -> None:
        self._held.abort()

    @override
    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    @property
    def _held(self) -> TransactionalProducer:
        if self._producer is None:
            raise OffsetsError("this writer is not open")
        return self._producer

    def _read_on(self, positions: dict[int, int]) -> None:
        reader = OffsetsLog(self.settings, self._view.take, positions)
        try:
            reader.read_to_high_watermark()
        finally:
            reader.close()

    def _refuse_other_generation(self) -> None:
        found = self._view.generation
        if not found.is_same_run(self.generation):
            raise TakenOverError(
                f"connector {self.settings.connector}, task {self.task_id}: taken over by generation "
                f"{found.generation}; this attempt is of generation {self.generation.generation} and stops"
            )

    def _whose(self, error: FencedError) -> TakenOverError:
        """Who has fenced us: a newer run, or another attempt at this task in our own generation."""
        fresh = KafkaOffsetView(self.settings.connector)
        where = partition_for(generation_key(self.settings.connector), self.partitions)
        reader = OffsetsLog(self.settings, fresh.take, {where: 0})
        try:
            reader.read_to_high_watermark()
        finally:
            reader.close()
        if fresh.generation.is_same_run(self.generation):
            return error
        return TakenOverError(
            f"connector {self.settings.connector}, task {self.task_id}: taken over by generation "
            f"{fresh.generation.generation}; this run has {self.generation.generation} and stops"
        )
