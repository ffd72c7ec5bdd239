"""Topics whose records carry the time of their append, and what has arrived on them."""

import time
from typing import Any

import attrs

from headrace.testing import create_topic
from headrace.testing.topics import end_of_topic

__all__ = ["Arrivals", "arrivals", "drop_topic", "make_topic"]

PARTITIONS = 4
AT_ONCE = 20_000
PATIENCE_S = 30.0
EACH_S = 0.2


@attrs.frozen(kw_only=True)
class Arrivals:
    """The committed records of a topic: how many, their bytes, and the broker's times of the first and the last."""

    records: int
    bytes: int
    first_s: float
    last_s: float


def make_topic(bootstrap_servers: str, topic: str) -> None:
    """A topic on which the broker, not the producer, says when a record came."""
    config = {"message.timestamp.type": "LogAppendTime", "retention.bytes": "-1"}
    create_topic(bootstrap_servers, topic, partitions=PARTITIONS, config=config)


def drop_topic(bootstrap_servers: str, topic: str) -> None:
    """Give the broker its disk back; it takes a minute over that."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - heavy, and not needed until here

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(PATIENCE_S)


def arrivals(bootstrap_servers: str, topic: str, expected: int) -> Arrivals:
    """Read the topic as its readers do, and refuse it unless `expected` records are there, no more and no fewer."""
    records = size = 0
    first, last = float("inf"), 0.0
    for values, times in _batches(bootstrap_servers, topic):
        records += len(values)
        size += sum(map(len, values))
        first, last = min(first, *times), max(last, *times)
    if records != expected:
        raise SystemExit(f"{topic}: {records} committed records were read, and {expected} belong there")
    return Arrivals(records=records, bytes=size, first_s=first / 1000, last_s=last / 1000)


def _batches(bootstrap_servers: str, topic: str) -> Any:
    """Values and times, until every partition is at its end."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition  # noqa: PLC0415 - heavy, and not needed until here

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 32 * 1024,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    ended: set[int | None] = set()
    deadline = time.monotonic() + PATIENCE_S
    try:
        while len(ended) < PARTITIONS:
            values, times = [], []
            # It waits for as many messages as it is asked for: little patience, often.
            messages = consumer.consume(AT_ONCE, EACH_S)
            if messages:
                deadline = time.monotonic() + PATIENCE_S
            elif time.monotonic() > deadline:
                raise SystemExit(f"{topic}: its end was not reached; it has {end_of_topic(bootstrap_servers, topic)}")
            for message in messages:
                error = message.error()
                if error is None:
                    values.append(message.value() or b"")
                    times.append(message.timestamp()[1])
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    ended.add(message.partition())
                else:
                    raise SystemExit(f"{topic} could not be read: {error}")
            if values:
                yield values, [min(times), max(times)]
    finally:
        consumer.close()
