"""`stop.rule`: what ends a run by itself, for the whole source."""

import math
import threading
import time
from datetime import UTC, datetime

import pytest

from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import ConfigError
from headrace.framework.run import Run, on_threads
from headrace.testing import S3Harness
from headrace.testing.faulty_s3 import Answer, Meanwhile, listings
from headrace.testing.trial import Trial, fresh_name

# Longer than the test: no clock of a micro-batch ends anything here.
NEVER_MS = "600000"


@pytest.fixture
def trial(engine, kafka_bootstrap_servers, s3_endpoint):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=engine,
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(f"stop-rules-{engine.name}"),
        )


def ended(trial, rule, **changes):
    """A run without `--available-now`, once it has ended by itself."""
    with trial.running(stop__rule=rule, batch__max__ms=NEVER_MS, **changes) as running:
        summary = running.ended()
    assert (summary.state, summary.error) == ("COMPLETED", None)
    return summary


def test_a_start_is_not_idle(trial, monkeypatch):
    """However long it takes until the first task has begun: the clock of `idle` waits for it."""
    begin = Coordinator.tick

    def late(coordinator):
        time.sleep(1.0)
        return begin(coordinator)

    monkeypatch.setattr(Coordinator, "tick", late)
    trial.add("a", 10)
    assert ended(trial, "idle:300", transaction__boundary="poll").records == 10


def test_the_first_split_that_meets_the_rule_stops_the_others(trial, monkeypatch):
    """Of two tasks one is held up and the other meets the rule: the run ends, and both have stopped, being told to."""
    monkeypatch.setattr("headrace.framework.spark.engine.KILLED_WITHIN_S", 10_000.0)
    trial.add("slow", 500)
    trial.add("quick", 10)
    released = threading.Event()
    held = Meanwhile(released.wait, on=lambda request: request.path.endswith("/slow"))
    trial.harness.faulty.script(*[held] * 100)
    try:
        summary = ended(trial, "count:10", tasks__max="2")
    finally:
        released.set()
    assert summary.records == 10
    assert trial.values() == trial.harness.expected(trial.pieces["quick"])
    assert trial.run(tasks__max="2").records == 500


@pytest.mark.parametrize("engine", ["local"], indirect=True)
class TestRules:
    def test_one_task_ends_after_exactly_so_many_records(self, trial):
        """`count` cuts within an object, and the next run goes on behind it."""
        for name in "abc":
            trial.add(name, 10)
        assert ended(trial, "count:15").records == 15
        assert trial.values() == trial.everything()[:15]
        assert trial.run().records == 15
        assert trial.values() == trial.everything()

    def test_a_whole_object_is_not_cut(self, trial):
        """With the boundary `object` the count is reached at the end of an object."""
        for name in "abc":
            trial.add(name, 10)
        assert ended(trial, "count:15", transaction__boundary="object").records == 20

    def test_a_run_ends_when_nothing_has_come_for_so_long(self, trial):
        """`idle` waits for what may still come, and then ends the run."""
        trial.add("a", 10)
        with trial.running(stop__rule="idle:1500", discovery__interval__ms="50") as running:
            trial.await_values(10)
            trial.add("b", 10)
            assert running.ended().records == 20

    def test_a_source_that_is_down_is_not_idle(self, trial):
        """Nothing was read because nothing could be: the run goes on, and reads what there is once it can."""
        trial.add("a", 10)
        refused = [Answer(503, "SlowDown", on=listings)] * 10_000
        trial.harness.faulty.script(*refused)
        with trial.running(stop__rule="idle:500", discovery__interval__ms="50") as running:
            began = time.monotonic()
            while time.monotonic() - began < 2 or len(trial.harness.faulty.lists) < 3:
                assert running.handle.status().state in {"STARTING", "RUNNING"}
                time.sleep(0.05)
            trial.harness.faulty.forget()
            summary = running.ended()
        assert (summary.state, summary.records) == ("COMPLETED", 10)

    @pytest.mark.parametrize("boundary", ["object", "interval"])
    def test_an_object_that_takes_long_is_not_cut(self, trial, boundary):
        """An object in hand is read to its end, however long that takes beside the rule's time."""
        trial.add("slow", 10)
        released = threading.Event()
        held = Meanwhile(lambda: released.wait(2.5), on=lambda request: request.path.endswith("/slow"))
        trial.harness.faulty.script(held)
        assert ended(trial, "idle:500", transaction__boundary=boundary).records == 10
        assert trial.values() == trial.everything()

    def test_a_snapshot_is_what_available_now_reads(self, trial):
        """`snapshot` reads what there is, and ends."""
        trial.add("a", 10)
        assert ended(trial, "snapshot").records == 10

    def test_objects_that_were_modified_before_a_time(self, trial):
        """`time` ends the run by itself once it has come, with what is older; nothing that is later is read."""
        soon = datetime.fromtimestamp(math.ceil(time.time()) + 3, UTC)
        trial.add("a", 10)
        assert ended(trial, "time:2001-01-01T00:00:00Z").records == 0
        assert ended(trial, f"time:{soon.isoformat()}", tasks__max="2").records == 10
        trial.add("b", 10)
        assert ended(trial, f"time:{soon.isoformat()}").records == 0
        assert trial.run().records == 10

    def test_a_rule_that_the_source_does_not_know_is_refused(self, trial):
        """Objects have no position of the whole bucket: the fault names the rules that there are."""
        with pytest.raises(ConfigError, match=r"stop.rule.*this source knows count, idle, snapshot, time"):
            Run(props=trial.props(stop__rule="position:5"), bounded=False, engine=on_threads).go()
