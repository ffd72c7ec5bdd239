"""Runs over streams that end by a rule: the first stream that meets it stops the others."""

import datetime as dt

import pytest

from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import ConfigError
from headrace.framework.run import Run, on_threads
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name, records_of

NEVER_MS = "600000"


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


def ended(trial, rule, **changes):
    with trial.running(stop__rule=rule, batch__max__ms=NEVER_MS, tasks__max="2", **changes) as running:
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

    @pytest.mark.parametrize(
        ("rule", "count"), [("position:6000-0", 6), ("position:10000-0", 10), ("time:1970-01-01T00:00:06Z", 5)]
    )
    def test_a_rule_that_was_met_before_ends_the_next_run(self, trial, busy, rule, count):
        """Where a stream was read so far before, the run ends at once, also if no further entry is there."""
        for records in (count, 0):
            assert ended(trial, rule).records == records
        assert trial.values() == busy[:count]

    def test_a_time_that_nothing_comes_after(self, trial, busy):
        """Where the time has come and no stream has a later entry, the run ends with the last of all streams."""
        trial.harness.client.xadd(f"{trial.name}:other", {"value": busy[0]}, id="1000-0")
        for records in (11, 0):
            assert ended(trial, "time:1970-01-02").records == records
        assert sorted(trial.values()) == sorted([busy[0], *busy])

    @pytest.mark.parametrize("mode", ["offsets", "group"])
    def test_a_time_that_comes_while_the_run_waits(self, trial, mode):
        """An idle run ends when the server's clock comes to the time, with all that was added before."""
        trial.add("one", 10)
        changes = {"redis__mode": "group", "redis__group": "readers"} if mode == "group" else {}
        seconds, _ = trial.harness.client.time()
        soon = dt.datetime.fromtimestamp(seconds + 4, tz=dt.UTC).isoformat()
        assert ended(trial, f"time:{soon}", discovery__interval__ms="100", **changes).records == 10
        assert trial.harness.client.time()[0] >= seconds + 4

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
