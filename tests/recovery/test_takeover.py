"""Two drivers of one connector, and runs that are stopped: what they leave behind."""

import signal

import pytest

from headrace.testing.engines import Engine
from headrace.testing.topics import await_records

LOCAL = ("--engine", "local")
SPARK = ("--engine", "spark", "--master", "local[2]")
ENGINES = [pytest.param(LOCAL, id="local"), pytest.param(SPARK, id="spark", marks=pytest.mark.slow)]
# Longer than a test: what ends a transaction is a stop or a take-over, and neither a clock nor its time-out.
OPEN_FOR_LONG = {
    "transaction__boundary__interval__ms": "600000",
    "transaction__timeout__ms": "700000",
    "batch__max__ms": "600000",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_driver_takes_over_from_a_busy_one(job, engine):
    """Of two drivers the newer goes on; the older, in mid-transaction, ends with exit code 1 and says why."""
    job.feed(40)
    with job.harness.holding(after=10):
        first = job.start(*engine, **OPEN_FOR_LONG)
        assert job.watch.await_open_transaction(first)
        job.run_to_the_end(*engine, aws__s3__endpoint=job.harness.endpoint)

    assert first.wait() == 1, first.tail(40)
    assert job.watch.aborted() > 0
    assert "taken over" in first.tail(40)
    job.assert_each_line_once()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_driver_takes_over_from_an_idle_one(job, engine):
    """An idle driver, which nobody fences, learns from the topic that it was taken over, and ends the same way."""
    job.feed(2)
    first = job.start(*engine)
    await_records(job.bootstrap_servers, job.watch.topic, len(job.lines))

    job.feed(2)
    second = job.start(*engine)
    await_records(job.bootstrap_servers, job.watch.topic, len(job.lines))

    assert first.wait() == 1, first.tail(40)
    assert "taken over" in first.tail(40)
    assert second.returncode is None
    job.assert_each_line_once()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_leaves_no_open_transaction_behind(job, engine):
    """After SIGTERM in mid-transaction the topic's readers wait for nothing, and the next run goes on."""
    job.feed(300)
    job.slow_down(0.05)
    running = job.start(*engine, **OPEN_FOR_LONG)
    assert job.watch.await_open_transaction(running)

    running.signal(signal.SIGTERM)
    code = running.wait()
    stable, high = job.watch.ends()

    assert code == 143, running.tail(40)
    assert stable == high
    assert 0 < len(job.watch.committed()) < len(job.lines)
    job.slow_down(0)
    job.run_to_the_end(*engine)
    job.assert_each_line_once()


def test_work_that_moves_to_another_id_is_a_new_generation(job):
    """A half-read object that a run with fewer tasks takes over is finished by that run alone, each line once."""
    job.feed(8)
    threads = Engine("local")
    with (
        job.harness.holding(after=5),
        threads.running(job.props(tasks__max="4", **OPEN_FOR_LONG)) as first,
    ):
        assert job.watch.await_open_transaction()
        second = threads.run(job.props(tasks__max="1", aws__s3__endpoint=job.harness.endpoint))
        ended = first.ended()

    assert (second.state, second.error) == ("COMPLETED", None)
    assert ended.state == "FAILED"
    assert "taken over" in ended.error
    job.assert_each_line_once()
