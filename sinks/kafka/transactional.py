"""Records and offsets in one Kafka transaction."""

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import FencedError, OffsetsError, RetriableError, TakenOverError
from headrace.framework.record import Header
from headrace.framework.sink import SinkWriter
from headrace.framework.worker.kept import KEPT
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.patience import StoppedAt, never
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.records import Counters, Generation, counter_key, generation_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["TransactionalKafkaWriter"]

log = logging.getLogger(__name__)

NOBODY_BUT_US_S = 1.0


@attrs.frozen
class _KeptProducer:
    """A producer that stands idle after a micro-batch in which all went well, and whose it was."""

    producer: TransactionalProducer
    settings: KafkaSettings
    generation: Generation

    def close(self) -> None:
        """Let go of the id."""
        self.producer.close()


@attrs.define(kw_only=True)
class TransactionalKafkaWriter(SinkWriter):
    """One attempt of one task at one micro-batch.

    It inits once, and only then reads whose turn it is and how far things are: whoever inits before the claim's
    fencing is fenced, whoever inits after it sees the claim and stops before it produces.

    With `was_last` this process had the id in the micro-batch before, in which all went well, and nobody is known to
    have had it since. If its producer is still here, and is of the same run and configuration, that one goes on
    without another init. It has no transaction open that anybody could wait for, and whoever has claimed or taken the
    id meanwhile has fenced it: then its first transaction fails, as any other's would. What is read, and asked of the
    generation record, is the same.
    """

    exactly_once: ClassVar[bool] = True

    settings: KafkaSettings
    task_id: int
    generation: Generation
    partitions: int
    snapshot: OffsetsSnapshot
    was_last: bool = False
    _stopped_at: StoppedAt = attrs.field(default=never, init=False)
    _producer: TransactionalProducer | None = attrs.field(default=None, init=False)
    _view: KafkaOffsetView = attrs.field(init=False)
    _counters: Counters = attrs.field(init=False)
    _is_open: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._view = KafkaOffsetView(self.settings.connector)
        self._counters = Counters(owner=self.generation.owner)

    @override
    def heed(self, stopped_at: StoppedAt) -> None:
        self._stopped_at = stopped_at

    @override
    def open(self) -> OffsetStore:
        for key, value in self.snapshot.entries.items():
            self._view.take_raw(key, value)
        reader = OffsetsLog(
            self.settings,
            self._view.take,
            {number: self.snapshot.positions.get(number, 0) for number in range(self.partitions)},
        )
        reader.heed(self._stopped_at)
        try:
            if not self._goes_on_from_before(reader):
                self._begin_anew(reader)
        finally:
            reader.close()
        self._refuse_other_generation()
        known = self._view.counters(self.task_id)
        if known.owner == self.generation.owner:
            self._counters = known
        self._is_open = True
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
            self._refuse_newer_run(error)
            raise

    @override
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        producer, topic = self._held, self.settings.offsets_topic
        counters = self._counters.plus(counted)
        try:
            # Offsets last, once the records are at the broker: until the commit they hold back whoever reads the
            # same partition of the offsets topic, so the time between is kept short.
            producer.flush()
            for key, value in self._view.records_to_commit(offsets):
                producer.write(topic, key, [value])
            producer.write(topic, counter_key(self.settings.connector, self.task_id), [counters.encode()])
            producer.commit()
        except FencedError as error:
            self._refuse_newer_run(error)
            raise
        self._counters = counters

    @override
    def abort(self) -> None:
        self._held.abort()

    @override
    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        producer.abort()
        if self._is_open and producer.is_sound:
            producer.heed(never)
            KEPT.keep(self._place, _KeptProducer(producer, self.settings, self.generation))
        else:
            producer.close()

    @property
    def _place(self) -> tuple[str, str]:
        return self.settings.bootstrap_servers, self.settings.transactional_id(self.task_id)

    def _begin_anew(self, reader: OffsetsLog) -> None:
        self._producer = TransactionalProducer(self.settings, self.task_id)
        self._producer.heed(self._stopped_at)
        self._producer.init()
        reader.read_to_high_watermark()

    def _goes_on_from_before(self, reader: OffsetsLog) -> bool:
        """Whether the producer of the micro-batch before is still here and may go on; one that may not is closed."""
        kept = KEPT.take(self._place)
        if not isinstance(kept, _KeptProducer):
            return False
        try:
            if not (self.was_last and kept.settings == self.settings and kept.generation.is_same_run(self.generation)):
                return False
            kept.producer.heed(self._stopped_at)
            # Without an init an attempt that nobody knows of may still hold its transaction open: init ends it.
            reader.read_to_high_watermark(within_s=NOBODY_BUT_US_S)
            self._producer = kept.producer
        except RetriableError as error:
            log.info("%s: %s", self.settings.transactional_id(self.task_id), error)
            return False
        finally:
            if self._producer is None:
                kept.close()
        return True

    @property
    def _held(self) -> TransactionalProducer:
        if self._producer is None:
            raise OffsetsError("this writer is not open")
        return self._producer

    def _refuse_other_generation(self) -> None:
        found = self._view.generation
        if not found.is_same_run(self.generation):
            raise TakenOverError(
                f"connector {self.settings.connector}, task {self.task_id}: taken over by generation "
                f"{found.generation}; this attempt is of generation {self.generation.generation} and stops"
            )

    def _refuse_newer_run(self, error: FencedError) -> None:
        """Who has fenced us: `TakenOverError` for a newer run; else it was another attempt in our own generation."""
        fresh = KafkaOffsetView(self.settings.connector)
        where = partition_for(generation_key(self.settings.connector), self.partitions)
        reader = OffsetsLog(self.settings, fresh.take, {where: 0})
        reader.heed(self._stopped_at)
        try:
            reader.read_to_high_watermark()
        finally:
            reader.close()
        if not fresh.generation.is_same_run(self.generation):
            raise TakenOverError(
                f"connector {self.settings.connector}, task {self.task_id}: taken over by generation "
                f"{fresh.generation.generation}; this run has {self.generation.generation} and stops"
            ) from error
