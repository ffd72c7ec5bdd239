"""The dead-letter topic: made, read, and written to by who replays what is on it."""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.framework.dead_letter import CONNECTOR, REPLAYED, DeadLetter, known_headers, replayed_headers
from headrace.framework.errors import DataError, RetriableError, SinkError
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.reading import count_partitions
from headrace.offsets.kafka.settings import DEFAULT_REPLICATION, KafkaSettings

__all__ = ["Buried", "Replaying", "ensure_dead_letter_topic", "read_letters", "replaying"]

log = logging.getLogger(__name__)

REACH_WITHIN_S = 30.0
NEXT_LOOK_S = 0.01
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


def read_letters(settings: KafkaSettings, topic: str) -> Iterator[Buried] | None:
    """The connector's dead letters on a topic that are not replayed, in their order; None where there is no topic.

    The topic is read to its end first, with a wait for transactions that are open there: a letter may be done. It is
    read once more as letters are asked for: none but these are held, and their values are not kept.
    """
    there = attrs.evolve(settings, offsets_topic=topic)
    partitions = count_partitions(there)
    if partitions is None:
        return None
    done = _Done(topic)
    reader = OffsetsLog(there, done.take, dict.fromkeys(range(partitions), 0))
    try:
        reader.read_to_high_watermark()
    finally:
        reader.close()
    return _letters(there, done, reader.positions)


@attrs.define
class _Done:
    """The places of the letters that are replayed; the topic may have more than one partition."""

    topic: str
    places: set[str] = attrs.field(factory=set)

    def take(self, message: Message) -> None:
        place = known_headers(message.headers()).get(REPLAYED)
        if place is not None:
            self.places.add(place.decode(errors="replace"))


def _letters(settings: KafkaSettings, done: _Done, ends: Mapping[int, int]) -> Iterator[Buried]:
    for partition, end in sorted(ends.items()):
        for message in _messages(settings, partition, end):
            found = _buried(settings, message)
            if found is not None and found.place not in done.places:
                yield found


def _messages(settings: KafkaSettings, partition: int, end: int) -> Iterator[Message]:
    """What there is of a partition before a place that has been reached before."""
    taken: deque[Message] = deque()
    reader = OffsetsLog(settings, taken.append, {partition: 0})
    try:
        wait = reader.patience.begin()
        while reader.positions[partition] < end:
            reader.read_what_there_is()
            if taken:
                wait = reader.patience.begin()
            elif wait.is_over:
                raise RetriableError(f"{settings.offsets_topic}, partition {partition}, cannot be read any further")
            else:
                time.sleep(NEXT_LOOK_S)
            while taken:
                message = taken.popleft()
                if (message.offset() or 0) < end:
                    yield message
    finally:
        reader.close()


def _buried(settings: KafkaSettings, message: Message) -> Buried | None:
    """The letter of a record; None for a record of somebody else's, or one that nobody can read: that is said."""
    headers = known_headers(message.headers())
    if REPLAYED in headers or headers.get(CONNECTOR) != settings.connector.encode():
        return None
    partition, offset, key = message.partition() or 0, message.offset() or 0, message.key()
    try:
        letter = DeadLetter.from_headers(headers)
    except DataError as error:
        log.warning("%s, record %d:%d is passed over: %s", settings.offsets_topic, partition, offset, error)
        return None
    if letter is None:
        return None
    return Buried(
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

    def letters(self) -> Iterator[Buried]:
        """The letters that are not replayed; after the fencing, so that nobody else can be about to."""
        return read_letters(self.settings, self.topic) or iter(())

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
