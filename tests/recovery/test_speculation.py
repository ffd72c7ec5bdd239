"""Two attempts at one task, side by side, because Spark holds the first for slow."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from headrace.framework.run import run
from headrace.testing.faulty_s3 import Meanwhile

pytestmark = pytest.mark.slow

WITHIN_S = 120.0
EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture
def spark(cluster):
    with cluster.environment():
        builder = SparkSession.builder.master(cluster.url)
        for key, value in EAGER.items():
            builder = builder.config(key, value)
        made = builder.getOrCreate()
        made.sparkContext.setLogLevel("ERROR")
        yield made
        made.stop()


def test_a_second_copy_of_a_task_takes_over_and_gets_on(job, spark):
    """A speculative copy fences the first attempt, which gives way to it; the run ends, and each line is there once."""
    # More bytes in one object than in all others together: one task reads it and ends at once, the other has the rest.
    job.feed(1, lines=1000)
    job.feed(60, lines=10)
    begun, fenced = threading.Event(), threading.Event()
    job.harness.faulty.script(
        # Spark makes the copy once one task has ended: not before the other has records in its transaction.
        Meanwhile(begun.wait, on=of_the_first),
        *[Meanwhile(fenced.wait, on=of_the_last_fifty)] * 200,
    )
    # Longer than the test: what ends the first attempt's transaction is the copy.
    props = job.props(
        transaction__boundary__interval__ms="600000", transaction__timeout__ms="700000", batch__max__ms="600000"
    )

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, props, spark=spark, available_now=True)
        try:
            job.watch.await_open_transaction()
            begun.set()
            await_aborted(job.watch, running)
        finally:
            begun.set()
            fenced.set()
        summary = running.result()

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert summary.records == len(job.lines)
    job.assert_each_line_once()


def of_the_first(request):
    """The GET of the big object."""
    return request.is_object_get and request.path.rpartition("/")[2].startswith("000000-0000")


def of_the_last_fifty(request):
    """The GETs of all objects but the big one and ten of the others."""
    return request.is_object_get and request.path.rpartition("/")[2] >= "001000-0010"


def await_aborted(watch, running):
    """Wait until the records of an open transaction are aborted."""
    deadline = time.monotonic() + WITHIN_S
    while not watch.aborted():
        assert not running.done(), running.result()
        assert time.monotonic() < deadline, "nobody was fenced in mid-transaction"
        time.sleep(0.2)
