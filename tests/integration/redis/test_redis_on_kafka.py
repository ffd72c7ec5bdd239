"""Streams on a real broker: what is resolved once stays so, and what comes late is found."""

import pytest

from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name, records_of

# Longer than the test: a micro-batch that ends by its clock comes too late.
NEVER_MS = "600000"


@pytest.fixture
def trial(redis_port, kafka_bootstrap_servers, engine):
    with RedisHarness(redis_port) as harness:
        yield Trial(
            harness=harness,
            engine=engine,
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(f"redis-on-kafka-{engine.name}"),
        )
        harness.close()


def test_a_restart_of_an_idle_source_skips_nothing(trial, eventually):
    """With `latest`, what is added while nothing runs is read by the next run, though the first one read nothing."""
    trial.harness.add("one", records_of("old", 10))
    with trial.running(redis__start="latest") as running:
        eventually(lambda: running.handle.status().state == "RUNNING")
        eventually(lambda: trial.offset("one"))
        summary = running.stop()
    trial.harness.add("one", records_of("new", 5))
    trial.harness.add("two", records_of("later", 5))

    trial.run(redis__start="latest")

    assert (summary.records, summary.error) == (0, None)
    assert trial.values() == [*records_of("new", 5), *records_of("later", 5)]


def test_a_run_that_ends_has_timed_batches_too(trial):
    """What a bounded run has read of a stream is committed when a micro-batch is over, and the next one goes on."""
    trial.add("one", 20_000)
    summary = trial.run(batch__max__ms="400", redis__read__count="5", transaction__boundary__interval__ms="29000")
    assert trial.values() == trial.everything()
    assert summary.transactions > 1


@pytest.mark.parametrize("tasks", ["1", "2"])
def test_streams_that_come_while_others_are_read(trial, tasks):
    """New streams are read at once, also where every task has streams in hand that never end."""
    trial.add("one", 10)
    with trial.running(batch__max__ms=NEVER_MS, discovery__interval__ms="100", tasks__max=tasks) as running:
        trial.await_values(10)
        for number in range(3):
            trial.add(f"late-{number}", 10)
            trial.await_values(20 + number * 10)
        summary = running.stop()
    assert sorted(trial.values()) == sorted(trial.everything())
    assert (summary.records, summary.error, summary.delivery) == (40, None, "exactly_once")
