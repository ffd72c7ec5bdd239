"""What is on a topic, as the readers of the topic see it."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["create_topic", "read_topic"]

WITHIN_S = 60.0


def create_topic(
    bootstrap_servers: str, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until every one of its partitions has a leader."""
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415 - heavy, and not needed until here

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    wanted = NewTopic(topic, num_partitions=partitions, config=dict(config or {}))
    admin.create_topics([wanted])[topic].result(WITHIN_S)
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found = admin.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.02)
    raise TimeoutError(f"topic {topic} has no leaders {WITHIN_S:.0f} s after it was created")


def read_topic(bootstrap_servers: str, topic: str, *, isolation: str = "read_committed") -> list["Message"]:
    """Every message that is on the topic now, partition by partition, each in its order.

    Up to the high watermark: with an open transaction on the topic it waits for that to end. With
    `isolation="read_uncommitted"` records of open and aborted transactions are among the messages.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition  # noqa: PLC0415 - as above
    from confluent_kafka.admin import AdminClient, OffsetSpec  # noqa: PLC0415 - as above

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    numbers = sorted(admin.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions)
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in numbers}
    ends = {at.partition: future.result(WITHIN_S).offset for at, future in admin.list_offsets(wanted).items()}
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
    found: dict[int, list[Message]] = {number: [] for number in numbers}
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
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
