"""Many records into the client library at once, on a real broker."""

import pytest
from confluent_kafka import Producer

from headrace.framework.errors import RecordTooLargeError
from headrace.offsets.kafka import produce as producing
from headrace.offsets.kafka.patience import Patience
from headrace.offsets.kafka.produce import produce_all, sent_but_little
from headrace.testing import create_topic, read_topic
from headrace.testing.trial import fresh_name

WITHIN_S = 30
NEVER_MS = 300_000
ROOM_FOR = 7
LARGEST = 2000


@pytest.fixture
def topic(kafka_bootstrap_servers):
    name = fresh_name("many-at-once")
    create_topic(kafka_bootstrap_servers, name)
    return name


@pytest.fixture
def produce(kafka_bootstrap_servers, topic):
    """Produce values through a queue that has room for a few of them."""
    little = {"queue.buffering.max.messages": ROOM_FOR, "message.max.bytes": LARGEST, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": kafka_bootstrap_servers, "enable.idempotence": True, **little})

    def produce(values):
        try:
            produce_all(producer, topic, b"key", values, patience=Patience(WITHIN_S), partition=0)
        finally:
            assert producer.flush(WITHIN_S) == 0

    return produce


@pytest.fixture
def sent(kafka_bootstrap_servers, topic):
    return lambda: [record.value() for record in read_topic(kafka_bootstrap_servers, topic)]


@pytest.mark.parametrize("shape", [list, tuple])
def test_values_that_the_queue_has_no_room_for_are_sent_once_and_in_order(produce, sent, shape):
    """Where the queue is full, waiting goes on with the value that had no room."""
    values = [b"%d" % number for number in range(40 * ROOM_FOR + 3)]

    produce(shape(values))

    assert sent() == values


def test_a_value_that_is_too_large_is_named_behind_a_full_queue(produce, sent):
    """What comes before it is sent; its index counts from the first value, however often there was no room."""
    before = [b"%d" % number for number in range(5 * ROOM_FOR)]

    with pytest.raises(RecordTooLargeError) as caught:
        produce([*before, b"z" * 2 * LARGEST, b"never sent"])

    assert caught.value.index == len(before)
    assert sent() == before


def test_full_requests_go_out_before_somebody_flushes(kafka_bootstrap_servers, topic, sent, monkeypatch):
    """Of many records those that fill requests are sent without a flush; the rest is what a flush is for."""
    monkeypatch.setattr(producing, "AT_REST_S", WITHIN_S)
    waiting = {"linger.ms": NEVER_MS, "batch.num.messages": 100, "message.timeout.ms": 2 * NEVER_MS}
    producer = Producer({"bootstrap.servers": kafka_bootstrap_servers, "enable.idempotence": True, **waiting})
    values = [b"%d" % number for number in range(producing.LITTLE + 1050)]
    produce_all(producer, topic, None, values[:1], patience=Patience(WITHIN_S), partition=0)
    assert producer.flush(WITHIN_S) == 0
    produce_all(producer, topic, None, values[1:], patience=Patience(WITHIN_S), partition=0)

    while not sent_but_little(producer):
        pass
    assert len(producer) <= producing.LITTLE
    assert producer.flush(WITHIN_S) == 0
    assert sent() == values


def test_what_fills_no_request_is_flushed_at_once(kafka_bootstrap_servers, topic, sent):
    """Where nothing goes out by itself, nobody waits for it."""
    waiting = {"linger.ms": NEVER_MS, "batch.num.messages": 100_000, "message.timeout.ms": 2 * NEVER_MS}
    producer = Producer({"bootstrap.servers": kafka_bootstrap_servers, "enable.idempotence": True, **waiting})
    values = [b"%d" % number for number in range(producing.LITTLE + 1050)]
    produce_all(producer, topic, None, values, patience=Patience(WITHIN_S), partition=0)

    assert sent_but_little(producer)
    assert len(producer) == len(values)
    assert producer.flush(WITHIN_S) == 0
    assert sent() == values
