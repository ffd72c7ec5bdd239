"""Two attempts at one task, side by side, because Spark holds the first for slow."""

import pytest
from pyspark.sql import SparkSession

from headrace.framework.run import run

pytestmark = [pytest.mark.xdist_group("recovery"), pytest.mark.slow]

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
    # As many bytes in one object as in all others together: one task ends at once, the other takes its time, also with
    # several requests under way.
    job.feed(1, lines=600)
    job.feed(60, lines=10)
    job.slow_down(1.0)

    summary = run(job.props(transaction__boundary__interval__ms="2000"), spark=spark, available_now=True)

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert job.watch.aborted() > 0, "nobody was fenced in mid-transaction"
    assert summary.records == len(job.lines)
    job.assert_each_line_once()
