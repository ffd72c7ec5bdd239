"""Why Spark failed a job, in one line."""

import sys

import pytest

from headrace.framework.spark.failure import lost_task, reason_of, unusable_python

MISMATCH = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1800, in main
    check_python_version(infile)
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: \
3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
Caused by: java.lang.Exception: other
"""
LOST = """Job aborted due to stage failure: ResultStage 3 has failed: executor lost
\tat org.apache.spark.Scheduler
"""


def test_the_workers_own_words():
    """What was raised in a Python worker is the reason, not what Java says around it."""
    assert reason_of(RuntimeError(MISMATCH)) == (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.9 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )


def test_the_task_that_spark_has_given_up():
    """The task whose attempts have all failed is named by its number; a job that failed otherwise names none."""
    given_up = "Job aborted due to stage failure: Task 12 in stage 3.0 failed 4 times, most recent: Lost task 12.3"
    assert lost_task(RuntimeError(MISMATCH)) == 0
    assert lost_task(RuntimeError(given_up)) == 12
    assert lost_task(RuntimeError(LOST)) is None
    assert lost_task(RuntimeError("Job 3 cancelled part of cancelled job group headrace")) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [(LOST, "Job aborted due to stage failure: ResultStage 3 has failed: executor lost"), ("", "RuntimeError")],
)
def test_sparks_own_words(said, reason):
    """Without a Python traceback it is the first line that Spark says, or the kind of the error."""
    assert reason_of(RuntimeError(said)) == reason


@pytest.mark.parametrize(
    "raised",
    [
        "ModuleNotFoundError: No module named 'headrace'",
        "ModuleNotFoundError: No module named 'pyspark.errors'",
        "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version",
    ],
)
def test_another_python_is_named_with_the_remedy(raised):
    """Workers on a Python that cannot run source tasks are named with their command, the reason, and what to set."""
    failure = RuntimeError(f"Traceback (most recent call last):\n  File x\n{raised}\n\n\tat java")
    said = str(unusable_python(failure, "python3"))
    assert "'python3'" in said
    assert raised in said
    assert f"PYSPARK_PYTHON={sys.executable}" in said


def test_what_another_python_has_nothing_to_do_with():
    """A module of the user's that is missing, or a lost executor, is not blamed on the session's Python."""
    missing = RuntimeError("Traceback (most recent call last):\nModuleNotFoundError: No module named 'mine'\n\tat x")
    assert unusable_python(missing, "python3") is None
    assert unusable_python(RuntimeError(LOST), "python3") is None
