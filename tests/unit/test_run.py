"""A run from its configuration to its summary, as far as it goes without Kafka."""

import threading
from contextlib import contextmanager

import pytest

from headrace.framework.cli.progress import Rate
from headrace.framework.driver.summary import Progress
from headrace.framework.errors import ConfigError, JavaNotFoundError
from headrace.framework.handle import RunHandle
from headrace.framework.run import Run

PROPS = {
    "name": "orders",
    "connector.class": "headrace.testing.scripted:ScriptedTask",
    "bootstrap.servers": "127.0.0.1:1",
    "topic": "orders",
}


def failing(error):
    """An engine that cannot get ready."""

    @contextmanager
    def engine(_config):
        raise error
        yield

    return engine


def test_a_faulty_configuration():
    """A run is not even made of a faulty configuration: every fault is raised."""
    with pytest.raises(ConfigError) as caught:
        Run(props={**PROPS, "tasks.max": "0", "batch.max.ms": "x"}, bounded=True, engine=failing(OSError()))
    assert {fault.key for fault in caught.value.faults} == {"tasks.max", "batch.max.ms"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (JavaNotFoundError("there is no Java: install one"), "there is no Java: install one"),
        (ValueError("two\nlines"), "orders: the run failed: ValueError: two"),
    ],
)
def test_an_engine_that_cannot_get_ready(error, said):
    """What keeps the engine from starting is in the summary, and the connector has not been claimed: no broker is
    asked."""
    run = Run(props=PROPS, bounded=True, engine=failing(error))
    summary = run.go()
    assert (summary.state, summary.error, summary.records, summary.tasks) == ("FAILED", said, 0, ())
    assert (run.status().state, run.status().error, run.status().is_active) == ("FAILED", said, False)


def test_a_fault_that_the_engine_finds_is_raised():
    """A `ConfigError` is raised from wherever it comes, also through a handle."""
    run = Run(props=PROPS, bounded=True, engine=failing(ConfigError("no RDDs here")))
    with pytest.raises(ConfigError, match="no RDDs here"):
        RunHandle(run).await_termination()


def test_a_stop_before_the_claim():
    """A run that is stopped while its engine gets ready claims nothing, and is no failure."""
    ready = threading.Event()

    @contextmanager
    def slow(_config):
        ready.wait()
        yield lambda _: pytest.fail("there is nothing to drive")

    handle = RunHandle(Run(props=PROPS, bounded=True, engine=slow))
    before = handle.status()
    handle.ask_stop()
    stopping = handle.status()
    assert handle.await_termination(0) is None
    ready.set()
    summary = handle.stop()

    assert [before.state, stopping.state] == ["STARTING", "STOPPING"]
    assert (summary.state, summary.error) == ("COMPLETED", None)


def test_the_rate_is_of_the_last_seconds():
    """Records a second are counted over the last few seconds, not from the start."""
    rate = Rate()
    assert rate.of(Progress(records=0), now=0.0) == 0.0
    assert rate.of(Progress(records=100), now=1.0) == 100.0
    for second in range(2, 20):
        rate.of(Progress(records=100), now=float(second))
    assert rate.of(Progress(records=100), now=20.0) == 0.0
