"""Python processes that Spark starts beside a run's query: one small job, and none once the run is over."""

import pytest

from headrace.framework.config import SourceCommonConfig
from headrace.framework.spark.ready import ReadyWorkers
from headrace.testing.trial import fresh_name


@pytest.fixture
def workers(spark_on_threads):
    props = {"name": fresh_name("ready"), "connector.class": "files", "topic": "t", "bootstrap.servers": "h:1"}
    return ReadyWorkers(spark_on_threads.sparkContext, SourceCommonConfig.from_props(props), is_pickled=False)


def jobs(workers):
    return workers.context.statusTracker().getJobIdsForGroup(f"headrace-{workers.config.name}-ready")


def test_processes_get_ready_in_one_job(workers, eventually):
    """Once begun, a job runs beside everything else and ends by itself."""
    tracker = workers.context.statusTracker()
    workers.start()

    [job] = eventually(lambda: jobs(workers))

    assert eventually(lambda: tracker.getJobInfo(job).status == "SUCCEEDED")
    workers.close()


def test_who_waits_finds_them_there(workers):
    """After waiting there is no such job any more; without a beginning there is nothing to wait for."""
    workers.wait()
    assert not jobs(workers)
    workers.start()

    workers.wait()

    [job] = jobs(workers)
    assert workers.context.statusTracker().getJobInfo(job).status == "SUCCEEDED"
    workers.close()


def test_nothing_is_begun_after_the_end(workers):
    """A run that is over has no such job any more, and begins none."""
    workers.start()
    workers.close()

    active = set(workers.context.statusTracker().getActiveJobsIds())
    assert active.isdisjoint(jobs(workers))
