"""The dead-letter topic: made, read, and written to by who replays what is on it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.framework.dead_letter import REPLAYED, DeadLetter, known_headers, replayed_headers
from headrace.framework.errors import RetriableError, SinkError
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.reading import count_partitions
from headrace.offsets.kafka.settings import DEFAULT_REPLICATION, KafkaSettings

__all__ = ["Buried", "Replaying", "ensure_dead_letter_topic", "read_letters", "replaying"]

REACH_WITHIN_S = 30.0
HOLDER = "dlq"


@attrs.frozen(kw_only=True)
class Buried:
    """A dead letter, and where it is on the topic."""

    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    letter: DeadLetter

    @property
    def place(self) -> str:
        """What names it: its partition and its offset."""
        return f"{self.partition}:{self.offset}"


def ensure_dead_letter_topic(settings: KafkaSettings, name: str, replication: int | None) -> None:
    """Make the topic, with one partition as Kafka Connect does, if it is missing.

    `SinkError` if it cannot be made, `RetriableError` if Kafka cannot be reached.
    """
    admin = AdminClient(settings.admin_config())
    try:
        cluster = admin.list_topics(timeout=REACH_WITHIN_S)
        if name in cluster.topics:
            return
        factor = min(replication or DEFAULT_REPLICATION, len(cluster.brokers))
        admin.create_topics([NewTopic(name, 1, factor)])[name].result(REACH_WITHIN_S)
        _await_leader(admin, name)
    except KafkaException as error:
        code, said = error.args[0].code(), error.args[0].str()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if error.args[0].retriable() or code == KafkaError._TRANSPORT:  # noqa: SLF001 - its public name
            raise RetriableError(
                f"Kafka at {settings.bootstrap_servers} does not answer for the dead-letter topic {name}: {said}"
            ) from error
        raise SinkError(
            f"the dead-letter topic {name} could not be created: {said}; create it, or allow this user to"
        ) from error


def _await_leader(admin: AdminClient, name: str) -> None:
    deadline = time.monotonic() + REACH_WITHIN_S
    while time.monotonic() < deadline:
        topic = admin.list_topics(name, timeout=REACH_WITHIN_S).topics[name]
        if topic.partitions and all(partition.leader >= 0 for partition in topic.partitions.values()):
            return
        time.sleep(0.02)
    raise RetriableError(f"the new dead-letter topic {name} has no leader after {REACH_WITHIN_S:.0f} s")


def read_letters(settings: KafkaSettings, topic: str) -> list[Buried] | None:
    """The connector's dead letters on a topic that are not replayed, in their order; None where there is no topic.

    It reads to the topic's end, and waits for transactions that are open there. The letters' values are not kept.
    """
    there = attrs.evolve(settings, offsets_topic=topic)
    partitions = count_partitions(there)
    if partitions is None:
        return None
    reading = _Reading(settings.connector)
    log = OffsetsLog(there, reading.take, dict.fromkeys(range(partitions), 0))
    try:
        log.read_to_high_watermark()
    finally:
        log.close()
    return [found for _, found in sorted(reading.letters.items())]


@attrs.define
class _Reading:
    connector: str
    letters: dict[tuple[int, int], Buried] = attrs.field(factory=dict)
    _done: set[tuple[int, int]] = attrs.field(factory=set)

    def take(self, message: Message) -> None:
        headers = known_headers(message.headers())
        partition, offset = message.partition() or 0, message.offset() or 0
        if REPLAYED in headers:
            number, _, at = headers[REPLAYED].decode().partition(":")
            # The topic may have more than one partition, and a word may be read before what it speaks of.
            self._done.add((int(number), int(at)))
            self.letters.pop((int(number), int(at)), None)
            return
        letter = DeadLetter.from_headers(headers)
        if letter is None or letter.connector != self.connector or (partition, offset) in self._done:
            return
        key = message.key()
        self.letters[partition, offset] = Buried(
            partition=partition,
            offset=offset,
            timestamp=message.timestamp()[1],
            key=key if isinstance(key, bytes) else None,
            letter=letter,
        )


@attrs.define
class Replaying:
    """The one replay that a connector has: whoever had begun another before is fenced."""

    settings: KafkaSettings
    topic: str
    _producer: TransactionalProducer

    def letters(self) -> list[Buried]:
        """The letters that are not replayed; after the fencing, so that nobody else can be about to."""
        return read_letters(self.settings, self.topic) or []

    def write(self, topic: str, key: bytes | None, values: Sequence[bytes | None], **more: Any) -> None:
        """Send records; the first ones begin a transaction."""
        self._producer.write(topic, key, values, **more)

    def done(self, found: Buried) -> None:
        """Commit what was sent, and with it that this letter is replayed."""
        headers = replayed_headers(found.letter.connector, found.place)
        self._producer.write(self.topic, found.key, [None], headers=headers, partition=found.partition)
        self._producer.commit()

    def abort(self) -> None:
        """Take back what was sent for a letter."""
        self._producer.abort()


@contextmanager
def replaying(settings: KafkaSettings, topic: str) -> Iterator[Replaying]:
    """The right to replay a connector's dead letters. A run of the connector goes on undisturbed."""
    producer = TransactionalProducer(settings, HOLDER)
    try:
        producer.init()
        yield Replaying(settings, topic, producer)
    finally:
        producer.close()
