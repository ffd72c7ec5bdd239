"""The offsets topic's raw records, read to its end and on."""

import logging
import time
from collections.abc import Callable, Mapping

import attrs
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.framework.errors import OffsetsError, RetriableError
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["OffsetsLog"]

log = logging.getLogger(__name__)

SAY_AFTER_S = 5.0
BEYOND_TRANSACTION_S = 15.0
REACH_WITHIN_S = 30.0
BATCH = 10_000
RETRY_S = 0.05

# A topic that has just been made, or moved, has no leader yet that knows it.
PASSING = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._TRANSPORT,  # noqa: SLF001 - its public name
}


@attrs.define
class OffsetsLog:
    """A reader of the topic's committed records: of the partitions that `positions` names, each from there on.

    "To the end" is the high watermark, not the last stable offset: stopping at that would hide what we have committed
    ourselves behind a neighbour's open transaction. So a reading waits for transactions that are open, as long as
    they may last and no longer. One thread at a time.
    """

    settings: KafkaSettings
    take: Callable[[Message], None]
    positions: dict[int, int]
    _consumer: Consumer = attrs.field(init=False)
    _admin: AdminClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._admin = AdminClient(self.settings.admin_config())
        self._consumer = Consumer({**self.settings.consumer_config(), "auto.offset.reset": "earliest"})
        # An explicit offset: "the beginning" would cost a round of look-ups, a second with the default waits.
        self._consumer.assign(
            [TopicPartition(self.settings.offsets_topic, number, at) for number, at in self.positions.items()]
        )

    def read_to_high_watermark(self) -> None:
        """Read on until everything that is on the topic now has been taken.

        Raises `RetriableError` when a transaction stays open for longer than it may, or when Kafka is away.
        """
        ends = self._high_watermarks()
        unread = {number for number, end in ends.items() if self.positions[number] < end}
        started = said = time.monotonic()
        while unread:
            self._take_what_comes(unread, ends, wait_s=0.5)
            now = time.monotonic()
            if unread and now - said > SAY_AFTER_S:
                said = now
                log.warning(
                    "%s: waiting for open transactions on %s, partitions %s",
                    self.settings.connector,
                    self.settings.offsets_topic,
                    sorted(unread),
                )
            if unread and now - started > self.settings.transaction_timeout_ms / 1000 + BEYOND_TRANSACTION_S:
                raise RetriableError(
                    f"the end of {self.settings.offsets_topic}, partitions {sorted(unread)}, was not reached within "
                    f"{now - started:.0f} s: a transaction hangs there, or the broker is away"
                )

    def read_what_there_is(self) -> None:
        """Take what has arrived, without waiting for anything: what a driver does at every tick."""
        self._take_what_comes(set(), {}, wait_s=0.0)

    def close(self) -> None:
        """Let go of the topic."""
        self._consumer.close()

    def _high_watermarks(self) -> Mapping[int, int]:
        wanted = {TopicPartition(self.settings.offsets_topic, number): OffsetSpec.latest() for number in self.positions}
        deadline = time.monotonic() + REACH_WITHIN_S
        while True:
            try:
                # Without the topic's leaders at hand, list_offsets now and then waits for three seconds.
                self._admin.list_topics(self.settings.offsets_topic, timeout=REACH_WITHIN_S)
                # Its isolation is READ_UNCOMMITTED, which makes "latest" the high watermark.
                answers = self._admin.list_offsets(wanted, request_timeout=REACH_WITHIN_S)
                return {at.partition: answer.result(REACH_WITHIN_S).offset for at, answer in answers.items()}
            except KafkaException as error:
                if error.args[0].code() in PASSING and time.monotonic() < deadline:
                    time.sleep(RETRY_S)
                    continue
                raise RetriableError(
                    f"the ends of {self.settings.offsets_topic} cannot be had from Kafka at "
                    f"{self.settings.bootstrap_servers}: {error.args[0].str()}"
                ) from error

    def _take_what_comes(self, unread: set[int], ends: Mapping[int, int], *, wait_s: float) -> None:
        for message in self._next(wait_s):
            partition, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is None:
                self.positions[partition] = offset + 1
                self.take(message)
                if offset + 1 >= ends.get(partition, offset + 2):
                    unread.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                self.positions[partition] = max(self.positions[partition], offset)
                if offset >= ends.get(partition, offset + 1):
                    unread.discard(partition)
            elif error.code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART}:
                raise OffsetsError(f"{self.settings.offsets_topic} cannot be read: {error.str()}")
            else:
                log.warning("%s: reading %s: %s", self.settings.connector, self.settings.offsets_topic, error.str())

    def _next(self, wait_s: float) -> list[Message]:
        """What is there; waits for the first message only."""
        first = self._consumer.poll(wait_s)
        return [] if first is None else [first, *self._consumer.consume(BATCH, 0.0)]
