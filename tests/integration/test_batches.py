"""The end of a micro-batch: work for an idle task does not wait for the slowest of its siblings."""

import threading

import pytest

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.spark.engine import SparkEngine
from headrace.testing import S3Harness
from headrace.testing.faulty_s3 import Meanwhile
from headrace.testing.trial import Trial, fresh_name

# Longer than the test: what ends a batch is that there is other work, and no clock.
NEVER_MS = "600000"


@pytest.fixture
def trial(engine, kafka_bootstrap_servers, s3_endpoint):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=engine,
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(f"batches-{engine.name}"),
        )


def test_work_for_an_idle_task_ends_the_batch(trial):
    """Of two tasks one is held up by its object; what comes for the other, which is idle, is delivered before it."""
    trial.add("slow", 500)
    trial.add("quick", 1)
    released = threading.Event()
    held = Meanwhile(released.wait, on=lambda request: request.path.endswith("/slow"))
    trial.harness.faulty.script(*[held] * 100)
    try:
        with trial.running(tasks__max="2", batch__max__ms=NEVER_MS):
            trial.await_values(1)
            trial.add("later", 1)
            trial.await_values(2)
            trial.add("last", 1)
            early = trial.await_values(3)
            released.set()
            values = trial.await_values(503)
    finally:
        released.set()

    expected = {piece: trial.harness.expected(records) for piece, records in trial.pieces.items()}
    assert early == [*expected["quick"], *expected["later"], *expected["last"]]
    assert values == [*early, *expected["slow"]]


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_what_is_found_while_spark_starts_its_query_waits_for_nothing(trial, monkeypatch):
    """Objects are assigned before the query's first tick, however late that comes."""
    assigned = threading.Event()
    assign, tick = EnumeratorHost.assign_split, SparkEngine._on_tick

    def note(host, split, reader_id):
        assign(host, split, reader_id)
        assigned.set()

    def late(engine, rows, number):
        if not assigned.wait(60):
            raise TimeoutError("nothing was assigned before the first tick")
        tick(engine, rows, number)

    monkeypatch.setattr(EnumeratorHost, "assign_split", note)
    monkeypatch.setattr(SparkEngine, "_on_tick", late)
    trial.add("piece", 3)

    assert trial.run().records == 3
    assert trial.values() == trial.everything()


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_a_failure_while_spark_starts_its_query_ends_that_query(trial, monkeypatch):
    """A bug of a source that shows before the first tick fails the run, and leaves no query in the session."""
    failed = threading.Event()
    tick = SparkEngine._on_tick

    def fail(*_):
        failed.set()
        raise ZeroDivisionError("a bug of a source")

    def late(engine, rows, number):
        if not failed.wait(60):
            raise TimeoutError("nothing was assigned before the first tick")
        tick(engine, rows, number)

    monkeypatch.setattr(EnumeratorHost, "assign_split", fail)
    monkeypatch.setattr(SparkEngine, "_on_tick", late)
    trial.add("piece", 3)

    assert "a bug of a source" in trial.attempt().error
    assert trial.engine.spark.streams.active == []
