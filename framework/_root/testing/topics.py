"""Topics in tests: made, written in transactions, and read as their readers see them."""

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["await_records", "create_topic", "end_of_topic", "read_topic", "write_topic"]

WITHIN_S = 60.0

SILENT = 0
"""A client of these functions may outlive the broker by a moment; what it says of that helps nobody."""


def create_topic(
    bootstrap_servers: str, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until every one of its partitions has a leader."""
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415 - heavy, and not needed until here

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": SILENT})
    wanted = NewTopic(topic, num_partitions=partitions, config=dict(config or {}))
    admin.create_topics([wanted])[topic].result(WITHIN_S)
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found = admin.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.02)
    raise TimeoutError(f"topic {topic} has no leaders {WITHIN_S:.0f} s after it was created")


def write_topic(bootstrap_servers: str, topic: str, values: Iterable[bytes], *, commit: bool = True) -> None:
    """Put `values` on a topic in one transaction, and commit it, or with `commit=False` abort it."""
    from confluent_kafka import Producer  # noqa: PLC0415 - as above

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": f"headrace-testing-{uuid.uuid4()}",
            "log_level": 3,  # a young broker says "loading" to its first transaction, and librdkafka asks again
        }
    )
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    producer.flush(WITHIN_S)
    if commit:
        producer.commit_transaction(WITHIN_S)
    else:
        producer.abort_transaction(WITHIN_S)


def end_of_topic(bootstrap_servers: str, topic: str) -> int:
    """The high watermarks of all partitions, added up: what was ever put there, markers of transactions included."""
    return sum(_high_watermarks(bootstrap_servers, topic).values())


def read_topic(bootstrap_servers: str, topic: str, *, isolation: str = "read_committed") -> list["Message"]:
    """Every message that is on the topic now, partition by partition, each in its order.

    Up to the high watermark: with an open transaction on the topic it waits for that to end. With
    `isolation="read_uncommitted"` records of open and aborted transactions are among the messages.
    """
    from confluent_kafka import KafkaError  # noqa: PLC0415 - as above

    ends = _high_watermarks(bootstrap_servers, topic)
    numbers = sorted(ends)
    consumer = _from_the_beginning(bootstrap_servers, topic, numbers, isolation)
    found: dict[int, list[Message]] = {number: [] for number in numbers}
    try:
        unread = {number for number, end in ends.items() if end > 0}
        deadline = time.monotonic() + WITHIN_S
        while unread:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} {sorted(unread)}: its end was not reached within {WITHIN_S:.0f} s")
            message = consumer.poll(1.0)
            if message is None:
                continue
            error, partition = message.error(), message.partition() or 0
            if error is None:
                found[partition].append(message)
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                raise RuntimeError(f"{topic} could not be read: {error}")
            elif (message.offset() or 0) >= ends[partition]:
                unread.discard(partition)
    finally:
        consumer.close()
    return [message for number in numbers for message in found[number]]


def await_records(
    bootstrap_servers: str, topic: str, count: int, *, isolation: str = "read_committed", within_s: float = WITHIN_S
) -> list["Message"]:
    """Wait until there are `count` messages on the topic: those, in the order in which they were read.

    With `isolation="read_uncommitted"` records of open and aborted transactions count.
    """
    consumer = _from_the_beginning(bootstrap_servers, topic, _high_watermarks(bootstrap_servers, topic), isolation)
    found: list[Message] = []
    deadline = time.monotonic() + within_s
    try:
        while len(found) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: {len(found)} of {count} records have come within {within_s:.0f} s")
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
    finally:
        consumer.close()
    return found


def _from_the_beginning(bootstrap_servers: str, topic: str, partitions: Iterable[int], isolation: str) -> "Consumer":
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - as above

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "headrace-testing",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
        }
    )
    # An explicit offset: "the beginning" would cost a round of look-ups, a second with the default waits.
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    return consumer


def _high_watermarks(bootstrap_servers: str, topic: str) -> dict[int, int]:
    from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415 - as above
    from confluent_kafka.admin import AdminClient, OffsetSpec  # noqa: PLC0415 - as above

    from headrace.offsets.kafka.log import PASSING  # noqa: PLC0415 - as above

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": SILENT})
    deadline = time.monotonic() + WITHIN_S
    while True:
        # All of them: a broker makes the one that it is asked for by name.
        topics = admin.list_topics(timeout=WITHIN_S).topics
        if topic not in topics:
            raise LookupError(f"there is no topic {topic} on {bootstrap_servers}")
        wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in topics[topic].partitions}
        try:
            return {at.partition: future.result(WITHIN_S).offset for at, future in admin.list_offsets(wanted).items()}
        except KafkaException as error:
            # A leader that has just begun, or a topic that has just been made, is not what the other knows of it.
            if error.args[0].code() not in PASSING or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
