"""Streams on a real broker: what is resolved once stays so, and what comes late is found."""

import pytest

from headrace.testing.engines import Engine
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name, records_of

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture
def trial(redis_port, kafka_bootstrap_servers, request):
    with RedisHarness(redis_port) as harness:
        yield Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
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


def test_streams_that_come_while_others_are_read(trial):
    """New streams are read within the micro-batch after they were found, also where every task has others in hand."""
    trial.add("one", 10)
    with trial.running(batch__max__ms="500", discovery__interval__ms="100") as running:
        trial.await_values(10)
        for number in range(3):
            trial.add(f"late-{number}", 10)
            trial.await_values(20 + number * 10)
        summary = running.stop()
    assert sorted(trial.values()) == sorted(trial.everything())
    assert (summary.records, summary.error, summary.delivery) == (40, None, "exactly_once")
