"""Many records into a producer, at the speed that the client library has."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat, starmap
from operator import length_hint
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.framework.errors import RecordTooLargeError, RetriableError
from headrace.framework.record import Header
from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.patience import STEP_S, Patience, timed_out

__all__ = ["KeyPartitions", "produce_all", "sent_but_little"]

METADATA_WITHIN_S = 30.0
ROOM_WITHIN_S = 0.05
KNOWN_FOR_S = 60.0
WORTH_IT = 16
LITTLE = 5000
LOOK_EVERY_S = 0.002
AT_REST_S = 0.008


def produce_all(
    producer: Producer,
    topic: str,
    key: bytes | None,
    values: Sequence[bytes | None],
    *,
    patience: Patience,
    partition: int | None = None,
    timestamp: int | None = None,
    headers: Sequence[Header] = (),
) -> None:
    """Hand records that differ in their values to the client library, waiting where its queue is full.

    `partition` None leaves the choice to the library. Raises its `KafkaException`, `RecordTooLargeError` with the index
    of the value that it does not take, and `RetriableError` when nothing leaves the full queue for as long as
    `patience` has.
    """
    options: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    if headers:
        options["headers"] = list(headers)
    produce: Callable[..., None] = partial(producer.produce, **options) if options else producer.produce
    number = -1 if partition is None else partition
    left = iter(values)
    while True:
        # zip fills one tuple anew for every call.
        calls = starmap(produce, zip(repeat(topic), left, repeat(key), repeat(number)))  # noqa: RUF058 - map makes a new one
        try:
            deque(calls, maxlen=0)
        except BufferError:
            _await_room(producer, topic, patience)
            left = iter(values[_refused(values, left) :])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            raise _too_large(topic, values, _refused(values, left)) from error
        else:
            if len(values) >= WORTH_IT:
                producer.poll(0)
            return


def _refused(values: Sequence[bytes | None], left: Iterator[bytes | None]) -> int:
    """The index of the value that was taken last, where these are left."""
    return len(values) - length_hint(left) - 1


def _too_large(topic: str, values: Sequence[bytes | None], index: int) -> RecordTooLargeError:
    error = RecordTooLargeError(
        f"a record of {len(values[index] or b'')} bytes for {topic} is more than the producer sends: raise "
        "producer.override.max.request.size, and max.message.bytes of the topic"
    )
    error.index = index
    return error


def _await_room(producer: Producer, topic: str, patience: Patience) -> None:
    full, wait = len(producer), patience.begin()
    while True:
        producer.poll(ROOM_WITHIN_S)
        if len(producer) < full:
            return
        if wait.is_over:
            raise RetriableError(
                f"Kafka took none of {full} records for {topic} and others within {wait.so_far_s:.0f} s; "
                "check that the broker is up"
            )


def sent_but_little(producer: Producer) -> bool:
    """Wait for a moment while requests that are full go out; whether the rest is worth a flush.

    While somebody flushes, the library's own thread asks without a pause whether it may send the next request, which it
    may not before the last one is answered. With much to send that is more CPU than sending it. So what goes out by
    itself is waited for: until a request's worth is left, or nothing has gone for 8 ms.
    """
    left, began = len(producer), time.monotonic()
    moved = began
    while left > LITTLE:
        producer.poll(LOOK_EVERY_S)
        now, before, left = time.monotonic(), left, len(producer)
        if left < before:
            moved = now
        if now - moved >= AT_REST_S:
            return True
        if now - began >= STEP_S:
            return False
    return True


@attrs.define
class KeyPartitions:
    """Which partition a key belongs to, worked out once for a batch in place of once for every record.

    The same answer as the library's murmur2, for as many partitions as the topic had within the last minute.
    """

    producer: Producer
    _counts: dict[str, tuple[int, float]] = attrs.field(factory=dict)

    def of(self, topic: str, key: bytes | None, records: int, *, patience: Patience) -> int | None:
        """The partition; None where the library may as well choose: without a key, or for a handful of records."""
        if key is None or records < WORTH_IT:
            return None
        count, until = self._counts.get(topic, (0, 0.0))
        if time.monotonic() > until:
            count = self._count(topic, patience.at_most(METADATA_WITHIN_S))
            self._counts[topic] = (count, time.monotonic() + KNOWN_FOR_S)
        return partition_for(key, count) if count else None

    def _count(self, topic: str, patience: Patience) -> int:
        wait = patience.begin()
        while True:
            try:
                return len(self.producer.list_topics(topic, timeout=STEP_S).topics[topic].partitions)
            except KafkaException as error:
                if wait.is_over or not timed_out(error):
                    raise
