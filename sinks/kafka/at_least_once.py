"""Records first, offsets after their acknowledgement: at least once."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.framework.compat import override
from headrace.framework.errors import OffsetsError, RetriableError, SinkError, TakenOverError
from headrace.framework.record import Header
from headrace.framework.sink import SinkWriter
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.patience import STEP_S, Patience, StoppedAt
from headrace.offsets.kafka.produce import KeyPartitions, produce_all, sent_but_little
from headrace.offsets.kafka.records import Counters, Generation, counter_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["AtLeastOnceKafkaWriter"]

FLUSH_WITHIN_S = 120.0
LAST_WORD_S = 1.0


@attrs.define
class _Undelivered:
    """The first record of a producer that could not be delivered, and why; heard of while the producer is polled.

    Called for failures only: a callback for each record would double its price. An object of its own, because a
    producer that knew its owner would not go with it.
    """

    error: KafkaError | None = attrs.field(default=None, init=False)

    def config(self) -> dict[str, Any]:
        """What the producer has to be told."""
        return {"on_delivery": self._note, "delivery.report.only.error": True}

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self.error is None:
            self.error = error


@attrs.define(kw_only=True)
class AtLeastOnceKafkaWriter(SinkWriter):
    """One attempt of one task, without transactions.

    Offsets are written when everything before them has been acknowledged, so a crash repeats records and loses none.
    A record that cannot be delivered fails the commit, and its offset is not written.
    """

    exactly_once: ClassVar[bool] = False

    settings: KafkaSettings
    task_id: int
    generation: Generation
    partitions: int
    snapshot: OffsetsSnapshot
    _producer: Producer = attrs.field(init=False)
    _view: KafkaOffsetView = attrs.field(init=False)
    _counters: Counters = attrs.field(init=False)
    _key_partitions: KeyPartitions = attrs.field(init=False)
    _undelivered: _Undelivered = attrs.field(factory=_Undelivered, init=False)
    _patience: Patience = attrs.field(default=Patience(FLUSH_WITHIN_S), init=False)

    def __attrs_post_init__(self) -> None:
        self._view = KafkaOffsetView(self.settings.connector)
        self._counters = Counters(owner=self.generation.owner)
        self._producer = Producer({**self.settings.producer_config(), **self._undelivered.config()})
        self._key_partitions = KeyPartitions(self._producer)

    @override
    def heed(self, stopped_at: StoppedAt) -> None:
        self._patience = Patience(FLUSH_WITHIN_S, stopped_at)

    @override
    def open(self) -> OffsetStore:
        for key, value in self.snapshot.entries.items():
            self._view.take_raw(key, value)
        positions = {number: self.snapshot.positions.get(number, 0) for number in range(self.partitions)}
        reader = OffsetsLog(self.settings, self._view.take, positions)
        reader.heed(self._patience.stopped_at)
        try:
            reader.read_to_high_watermark()
        finally:
            reader.close()
        if not self._view.generation.is_same_run(self.generation):
            raise TakenOverError(
                f"connector {self.settings.connector}, task {self.task_id}: taken over by generation "
                f"{self._view.generation.generation}; this attempt is of {self.generation.generation} and stops"
            )
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
        if partition is None:
            partition = self._partition_of(topic, key, len(values))
        self._produce(topic, key, values, partition=partition, timestamp=timestamp, headers=headers)

    @override
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        self._flush()
        topic, counters = self.settings.offsets_topic, self._counters.plus(counted)
        for key, value in self._view.records_to_commit(offsets):
            self._produce(topic, key, [value])
        self._produce(topic, counter_key(self.settings.connector, self.task_id), [counters.encode()])
        self._flush()
        self._counters = counters

    @override
    def abort(self) -> None:
        """Nothing can be taken back: what was sent stays, its offsets were not written."""

    @override
    def close(self) -> None:
        self._producer.flush(0.0 if self._patience.begin().is_over else LAST_WORD_S)

    def _partition_of(self, topic: str, key: bytes | None, records: int) -> int | None:
        try:
            return self._key_partitions.of(topic, key, records, patience=self._patience)
        except KafkaException as error:
            raise RetriableError(f"the partitions of {topic} cannot be had: {error.args[0].str()}") from error

    def _produce(self, topic: str, key: bytes | None, values: Sequence[bytes | None], **options: Any) -> None:
        try:
            produce_all(self._producer, topic, key, values, patience=self._patience, **options)
        except KafkaException as error:
            raise SinkError(f"producing to {topic} failed: {error.args[0].str()}") from error

    def _flush(self) -> None:
        wait = self._patience.begin()
        while self._unsent():
            if wait.is_over:
                raise RetriableError(
                    f"Kafka at {self.settings.bootstrap_servers} did not acknowledge the records within "
                    f"{wait.so_far_s:.0f} s; check that it is up"
                )
        if self._undelivered.error is not None:
            raise SinkError(f"a record was not delivered: {self._undelivered.error.str()}")

    def _unsent(self) -> int:
        """Wait a moment for the rest to go out; what has become of the producer meanwhile is raised here."""
        try:
            return self._producer.flush(STEP_S) if sent_but_little(self._producer) else len(self._producer)
        except KafkaException as error:
            raise SinkError(f"records were not delivered: {error.args[0].str()}") from error
        except SystemError as error:
            # The client raises what is fatal beside the delivery reports that it hands out, and Python minds.
            raise SinkError(f"records were not delivered: {error.__cause__ or error}") from error
