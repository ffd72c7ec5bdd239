"""Producers that were idle for so long that the broker has forgotten them."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace.framework.config import SourceCommonConfig
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.testing import EmbeddedKafka, S3Harness
from headrace.testing.engines import Engine
from headrace.testing.trial import Trial, fresh_name

WITHIN_S = 60.0
FORGETFUL = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="module")
def kafka():
    with EmbeddedKafka(properties=FORGETFUL) as kafka:
        yield kafka


@pytest.fixture
def trial(kafka, s3_endpoint):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka.bootstrap_servers,
            name=fresh_name("idle"),
        )


def await_forgotten(trial, *holders):
    """Wait until the broker has put on record that it knows these transactional ids no more."""
    settings = KafkaSettings.of(SourceCommonConfig.from_props({**trial.props(), "connector.class": "m:C"}))
    wanted = {settings.transactional_id(holder).encode() for holder in holders}
    consumer = Consumer({"bootstrap.servers": trial.bootstrap_servers, "group.id": "watch", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition("__transaction_state", number, 0) for number in range(4)])
    deadline = time.monotonic() + WITHIN_S
    forgotten = set()
    try:
        while forgotten < wanted:
            assert time.monotonic() < deadline, f"{wanted - forgotten} are remembered"
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            for one in wanted:
                if message.key().endswith(one):
                    (forgotten.add if message.value() is None else forgotten.discard)(one)
    finally:
        consumer.close()


def test_a_run_that_was_idle_for_long_goes_on(trial):
    """The forgotten producers of task and driver are made anew: new data goes out once, and the end is clean."""
    trial.add("one", 5)
    with trial.running(discovery__interval__ms="100") as run:
        trial.await_values(5)
        await_forgotten(trial, 0, "driver")
        trial.add("two", 5)
        trial.await_values(10)
        await_forgotten(trial, "driver")
        ended = run.stop()

    view = read_view(KafkaSettings.of(SourceCommonConfig.from_props({**trial.props(), "connector.class": "m:C"})))
    assert (ended.state, ended.error) == ("COMPLETED", None)
    assert trial.values() == trial.everything()
    assert view.generation.stopped
