"""The offsets topic's raw records, read to its end and on."""

import concurrent.futures
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any

import attrs
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.framework.errors import OffsetsError, RetriableError
from headrace.offsets.kafka.identity import TopicIdentity
from headrace.offsets.kafka.patience import STEP_S, Patience, StoppedAt, Wait, timed_out
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["OffsetsLog"]

log = logging.getLogger(__name__)

SAY_AFTER_S = 5.0
BEYOND_TRANSACTION_S = 15.0
REACH_WITHIN_S = 30.0
BATCH = 10_000
RETRY_S = 0.05

# A topic that has just been made, or moved, has no leader yet that knows it; nor has one whose broker was away.
PASSING = {
    KafkaError._NOENT,  # noqa: SLF001 - its public name
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._TRANSPORT,  # noqa: SLF001 - its public name
}


@attrs.define
class OffsetsLog:
    """A reader of the topic's committed records: of the partitions that `positions` names, each from there on.

    With an `identity`, a topic that is made anew is refused soon, also where it has grown beyond what was read.

    "To the end" is the high watermark, not the last stable offset: stopping at that would hide what we have committed
    ourselves behind a neighbour's open transaction. So a reading waits for transactions that are open, as long as
    they may last and no longer. One thread at a time.
    """

    settings: KafkaSettings
    take: Callable[[Message], None]
    positions: dict[int, int]
    identity: TopicIdentity | None = None
    patience: Patience = attrs.field(init=False)
    _tombstones: int = attrs.field(default=0, init=False)
    _consumer: Consumer = attrs.field(init=False)
    _admin: AdminClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.patience = Patience(self.settings.transaction_timeout_ms / 1000 + BEYOND_TRANSACTION_S)
        self._admin = AdminClient(self.settings.admin_config())
        self._consumer = Consumer({**self.settings.consumer_config(), "auto.offset.reset": "earliest"})
        # An explicit offset: "the beginning" would cost a round of look-ups, a second with the default waits.
        self._consumer.assign(
            [TopicPartition(self.settings.offsets_topic, number, at) for number, at in self.positions.items()]
        )

    def heed(self, stopped_at: StoppedAt) -> None:
        """Give up waiting soon after a stop."""
        self.patience = attrs.evolve(self.patience, stopped_at=stopped_at)

    def read_to_high_watermark(self, *, within_s: float | None = None) -> None:
        """Read on until everything that is on the topic now has been taken.

        Raises `RetriableError` when nothing comes for longer than a transaction may stay open, when Kafka is away, or
        when the time that the caller has is over, and `OffsetsError` when the topic is not the one any more that was
        read so far.
        """
        patience = self.patience if within_s is None else self.patience.at_most(within_s)
        gets_on = within_s is None
        # A roll-up removes entries here and writes its shards there, in one transaction; the ends of the partitions
        # are not of one instant. An entry that the cleaner took before we came, with a tombstone that we did not come
        # to see, has its shard in front of ends that are looked up afterwards.
        self._read_on(patience, gets_on=gets_on)
        while True:
            before = self._tombstones
            self._read_on(patience, gets_on=gets_on)
            if self._tombstones == before:
                return

    def _read_on(self, patience: Patience, *, gets_on: bool) -> None:
        """Read to the ends as they are now; where it `gets_on`, it may take as long as it likes."""
        if self.identity is not None:
            self.identity.check()
        ends = self._high_watermarks(patience.at_most(REACH_WITHIN_S).begin())
        self._refuse_shorter(ends)
        unread = {number for number, end in ends.items() if self.positions[number] < end}
        wait, said = patience.begin(), 0.0
        while unread:
            if self._take_what_comes(unread, ends, wait_s=STEP_S) and gets_on:
                wait, said = patience.begin(), 0.0
            if unread and wait.so_far_s - said > SAY_AFTER_S:
                said = wait.so_far_s
                log.warning(
                    "%s: waiting for open transactions on %s, partitions %s",
                    self.settings.connector,
                    self.settings.offsets_topic,
                    sorted(unread),
                )
            if unread and wait.is_over:
                raise RetriableError(
                    f"the end of {self.settings.offsets_topic}, partitions {sorted(unread)}, was not reached within "
                    f"{wait.so_far_s:.0f} s: a transaction hangs there, or the broker is away"
                )

    def read_what_there_is(self) -> None:
        """Take what has arrived, without waiting for anything: what a driver does at every tick."""
        if self.identity is not None:
            self.identity.look()
        self._take_what_comes(set(), {}, wait_s=0.0)

    def close(self) -> None:
        """Let go of the topic."""
        self._consumer.close()

    def _refuse_shorter(self, ends: Mapping[int, int]) -> None:
        """A topic that ends before where it was read has been made anew, or has lost what was committed to it."""
        shorter = sorted(number for number, end in ends.items() if end < self.positions[number])
        if shorter:
            raise OffsetsError(
                f"{self.settings.offsets_topic}, partitions {shorter}, ends before where it was read already: it was "
                "deleted and made anew, or has lost records; restore it (headrace offsets import) before the next run, "
                "which would read anew what it does not find there"
            )

    def _high_watermarks(self, wait: Wait) -> Mapping[int, int]:
        wanted = {TopicPartition(self.settings.offsets_topic, number): OffsetSpec.latest() for number in self.positions}
        while True:
            try:
                # Without the topic's leaders at hand, list_offsets now and then waits for three seconds.
                self._admin.list_topics(self.settings.offsets_topic, timeout=STEP_S)
                # Its isolation is READ_UNCOMMITTED, which makes "latest" the high watermark.
                answers = self._admin.list_offsets(wanted, request_timeout=REACH_WITHIN_S)
                self._await_answers(answers.values(), wait)
                return {at.partition: answer.result().offset for at, answer in answers.items()}
            except KafkaException as error:
                if (error.args[0].code() in PASSING or timed_out(error)) and not wait.is_over:
                    time.sleep(RETRY_S)
                    continue
                raise self._unreachable(error.args[0].str()) from error

    def _await_answers(self, answers: Collection[Future[Any]], wait: Wait) -> None:
        while concurrent.futures.wait(answers, STEP_S).not_done:
            if wait.is_over:
                raise self._unreachable(f"no answer within {wait.so_far_s:.0f} s")

    def _unreachable(self, why: str) -> RetriableError:
        return RetriableError(
            f"the ends of {self.settings.offsets_topic} cannot be had from Kafka at "
            f"{self.settings.bootstrap_servers}: {why}"
        )

    def _take_what_comes(self, unread: set[int], ends: Mapping[int, int], *, wait_s: float) -> int:
        """How many records that were."""
        taken = 0
        for message in self._next(wait_s):
            partition, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is None:
                self.positions[partition] = offset + 1
                self._tombstones += message.value() is None
                self.take(message)
                taken += 1
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
        return taken

    def _next(self, wait_s: float) -> list[Message]:
        """What is there; waits for the first message only."""
        first = self._consumer.poll(wait_s)
        return [] if first is None else [first, *self._consumer.consume(BATCH, 0.0)]
