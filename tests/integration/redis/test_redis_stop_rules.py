"""Runs over streams that end by a rule: the first stream that meets it stops the others."""

import pytest

from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import ConfigError
from headrace.framework.run import Run, on_threads
from headrace.testing.engines import Engine
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name, records_of

pytestmark = pytest.mark.xdist_group("kafka")

NEVER_MS = "600000"


@pytest.fixture(params=["local", "spark"])
def engine(request):
    if request.param == "local":
        return Engine("local")
    return Engine("spark", spark=request.getfixturevalue("spark_on_threads"))


@pytest.fixture
def trial(redis_port, kafka_bootstrap_servers, engine):
    with RedisHarness(redis_port) as harness:
        yield Trial(
            harness=harness,
            engine=engine,
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(f"redis-rules-{engine.name}"),
        )
        harness.close()


@pytest.fixture(autouse=True)
def nobody_is_forced(monkeypatch):
    """No task is ended by force, however long it takes: a run ends because its tasks were told to."""
    monkeypatch.setattr("headrace.framework.spark.engine.KILLED_WITHIN_S", 10_000.0)


@pytest.fixture
def plans(monkeypatch):
    """The plans that the run's tasks have been given."""
    found, tick = [], Coordinator.tick

    def noted(coordinator):
        made = tick(coordinator)
        found.extend(made)
        return made

    monkeypatch.setattr(Coordinator, "tick", noted)
    return found


@pytest.fixture
def busy(trial):
    """A stream of ten entries, one in each second from the first second of 1970 on, beside one that is idle."""
    trial.harness.add("idle", [])
    records = records_of("busy", 10)
    for second, record in enumerate(records, start=1):
        trial.harness.client.xadd(f"{trial.name}:busy", {"value": record}, id=f"{second * 1000}-0")
    return records


def ended(trial, rule):
    with trial.running(stop__rule=rule, batch__max__ms=NEVER_MS, tasks__max="2") as running:
        summary = running.ended()
    assert (summary.state, summary.error) == ("COMPLETED", None)
    return summary


@pytest.mark.parametrize(
    ("rule", "count"),
    [("position:6000-0", 6), ("position:6500", 6), ("time:1970-01-01T00:00:06Z", 5), ("count:4", 4)],
)
def test_one_stream_meets_the_rule_while_another_is_idle(trial, busy, plans, rule, count):
    """The run ends with the last entry that the rule lets through, and does not wait for another task's idle stream."""
    assert ended(trial, rule).records == count
    assert {plan.task_id for plan in plans if plan.splits} == {0, 1}
    assert trial.values() == busy[:count]


@pytest.mark.parametrize("engine", ["local"], indirect=True)
class TestAround:
    def test_the_next_run_goes_on_behind_it(self, trial, busy):
        """What a rule has left is read by the next run, from where the first one ended."""
        ended(trial, "position:6000-0")
        assert trial.run(tasks__max="2").records == 4
        assert trial.values() == busy

    def test_nothing_is_read_where_the_rule_is_met_at_once(self, trial, busy):
        """A time before the first entry ends the run without a record."""
        assert ended(trial, "time:1970-01-01T00:00:01Z").records == 0
        assert trial.values() == []
        assert len(busy) == 10

    def test_a_position_that_is_no_id_is_refused(self, trial):
        """The fault names the key and what an id looks like."""
        with pytest.raises(ConfigError, match=r"stop.rule.*must be an entry's id"):
            Run(props=trial.props(stop__rule="position:soon"), bounded=False, engine=on_threads).go()


@pytest.mark.parametrize("records", [0, 10])
def test_streams_that_give_nothing_are_idle_once_they_are_read(trial, records):
    """The run ends by itself when all is read and nothing comes, however long its workers take to start."""
    trial.add("only", records)
    assert ended(trial, "idle:300").records == records
    assert trial.values() == trial.everything()
