"""kill -9 at random moments, each in mid-transaction: every line of the bucket is on the topic, once.

A kill counts when a transaction was open at that moment and its records were aborted afterwards: records that a
reader of uncommitted records sees and a reader of committed ones does not. One that comes between two transactions
is made, and does not count.
"""

import os
import signal
import time

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SPARK = ("--engine", "spark", "--master", "local[2]")
LOCAL = ("--engine", "local")
SLOWLY = 0.5
# A transaction is open nearly always; a batch is short, so that Spark's patience with failing tasks is not used up.
OFTEN_OPEN = {"transaction__boundary__interval__ms": "3500", "batch__max__ms": "8000"}
LONGEST_S = 600


def pause(seconds):
    """Let some time go by: the moment of a kill is no event."""
    time.sleep(seconds)


@pytest.mark.parametrize(("engine", "times"), [(SPARK, 3), (LOCAL, 7)], ids=["spark", "local"])
def test_the_driver(job, at_random, engine, times):
    """Ten times in all a driver is killed, its JVM and its workers with it; each time the next run goes on."""
    job.slow_down(SLOWLY)
    counted = high = 0
    while counted < times:
        job.feed(240)
        running = job.start("--available-now", *engine, **OFTEN_OPEN)
        if job.watch.await_open_transaction(running, beyond=high):
            pause(at_random.uniform(0, 1.0))
            kill_with_all_below(running)
            # Nobody is left who could commit it: what is open now is aborted by the next run's claim.
            stable, high = job.watch.ends()
            counted += stable < high

    job.slow_down(0)
    job.run_to_the_end(*engine)

    assert job.watch.aborted() >= counted
    job.assert_each_line_once()


@pytest.mark.parametrize(("engine", "times"), [(SPARK, 12), (LOCAL, 6)], ids=["spark", "local"])
def test_a_process_of_tasks(job, at_random, engine, times):
    """Eighteen times in all a Python process that runs tasks is killed; the run goes on by itself."""
    running = job.start(*engine, **OFTEN_OPEN)

    counted = kill_again_and_again(job, at_random, running, job.readers, times=times)

    assert counted == times
    finish(job, running)


def test_an_executor(job, cluster, at_random):
    """Eight times an executor of a cluster is killed, a JVM with its Python workers; the run goes on by itself."""
    running = job.start("--master", cluster.url, env={**os.environ, **cluster.variables}, **OFTEN_OPEN)

    def at_work():
        readers = job.readers()
        return [executor for executor in cluster.executors() if readers & below(executor)]

    counted = kill_again_and_again(job, at_random, running, at_work, times=8)

    assert counted == 8
    finish(job, running)


def kill_again_and_again(job, at_random, running, victims, *, times):
    """Kill one of the victims at random moments until enough of the kills have hit an open transaction."""
    job.slow_down(SLOWLY)
    counted, deadline = 0, time.monotonic() + LONGEST_S
    while counted < times and time.monotonic() < deadline:
        job.keep_fed()
        assert job.watch.await_open_transaction(running), running.tail(40)
        pause(at_random.uniform(0, 1.0))
        alive = victims()
        stable, high = job.watch.ends()
        if not alive or stable == high:
            continue
        aborted = job.watch.aborted()
        os.kill(at_random.choice(sorted(alive)), signal.SIGKILL)
        _, high = job.watch.ends()
        job.watch.await_resolved(high, running)
        counted += job.watch.aborted() > aborted
    return counted


def finish(job, running):
    """Let the run read the rest, stop it, and look at what is there."""
    job.slow_down(0)
    job.await_all(running)
    running.signal(signal.SIGTERM)
    assert running.wait() == 143, running.tail(40)
    job.assert_each_line_once()


def below(pid):
    """The processes that one has started, and those that they have."""
    try:
        return {process.pid for process in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def kill_with_all_below(running):
    """Kill a driver, unless it has just ended by itself, and wait until everything that it had started is gone."""
    try:
        started = psutil.Process(running.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        started = []
    running.kill()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive, [process.cmdline() for process in alive]
