"""Two drivers of one connector, and runs that are stopped: what they leave behind."""

import signal

import pytest

from headrace.testing.engines import Engine
from headrace.testing.topics import await_records

pytestmark = pytest.mark.xdist_group("recovery")

LOCAL = ("--engine", "local")
SPARK = ("--engine", "spark", "--master", "local[2]")
ENGINES = [pytest.param(LOCAL, id="local"), pytest.param(SPARK, id="spark", marks=pytest.mark.slow)]
BUSY_S = {LOCAL: 5, SPARK: 20}  # for longer than the second driver takes to start


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_driver_takes_over_from_a_busy_one(job, engine):
    """Of two drivers the newer goes on; the older, in mid-transaction, ends with exit code 1 and says why."""
    job.feed(BUSY_S[engine] * 20)
    job.slow_down(0.1)
    first = job.start(*engine, transaction__boundary__interval__ms="2000")
    assert job.watch.await_open_transaction(first)

    job.run_to_the_end(*engine)

    assert first.wait() == 1, first.tail(40)
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
    # Longer than the test: what ends the transaction is the stop, and neither its interval nor its time-out.
    running = job.start(*engine, transaction__boundary__interval__ms="600000", transaction__timeout__ms="700000")
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
    open_for_long = {"transaction__boundary__interval__ms": "600000", "transaction__timeout__ms": "700000"}
    with (
        job.harness.holding(after=5),
        threads.running(job.props(tasks__max="4", **open_for_long)) as first,
    ):
        assert job.watch.await_open_transaction()
        second = threads.run(job.props(tasks__max="1", aws__s3__endpoint=job.harness.endpoint))
        ended = first.ended()

    assert (second.state, second.error) == ("COMPLETED", None)
    assert ended.state == "FAILED"
    assert "taken over" in ended.error
    job.assert_each_line_once()
