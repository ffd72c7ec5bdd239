"""S3 to Kafka on a real standalone cluster, whose executors have no headrace until it is shipped to them."""

import json
import os
import subprocess
import threading
import zipfile
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

import headrace
from headrace.framework.compat import override
from headrace.framework.run import Run, on_spark
from headrace.framework.spark.session import session
from headrace.testing.faulty_s3 import Fault
from headrace.testing.processes import at_near_ends

pytestmark = pytest.mark.slow

DRIVER = """
import json, sys
from pyspark.sql import SparkSession
import headrace
from headrace.framework.run import run

def where(_):
    import headrace
    return headrace.__file__

spark = SparkSession.builder.appName("shipped").getOrCreate()
with open(sys.argv[1]) as file:
    summary = run(json.load(file), available_now=True)
places = spark.sparkContext.parallelize(range(2), 2).map(where).collect()
spark.stop()
print(json.dumps({"driver": headrace.__file__, "executors": places, "summary": summary.as_json()}))
"""


@attrs.frozen
class NoteReader(Fault):
    """Note the process that asks for an object."""

    seen: set

    @override
    def before(self, request):
        self.seen.update(at_near_ends({request.ports}))


@attrs.frozen
class Together(Fault):
    """Keep whoever asks for an object waiting until as many have asked as the barrier is for."""

    barrier: threading.Barrier

    @override
    def before(self, request):
        self.barrier.wait()


class Noting:
    """A run's coordinator, as it is, and the workers' names of the reports that come to it."""

    def __init__(self, coordinator, workers):
        vars(self).update(coordinator=coordinator, workers=workers)

    def __getattr__(self, name):
        return getattr(self.coordinator, name)

    def __setattr__(self, name, value):
        setattr(self.coordinator, name, value)

    def take_in(self, reports):
        self.workers.update(report.worker for report in reports if report.records)
        self.coordinator.take_in(reports)


def noting(engine, workers):
    """The engine given, which notes the workers of its run."""

    @contextmanager
    def noted(config):
        with engine(config) as drive:
            yield lambda coordinator: drive(Noting(coordinator, workers))

    return noted


def package_zip(folder):
    """The installed package as a zip, without its metadata, as --py-files takes it."""
    root = Path(headrace.__file__).parent
    target = folder / "headrace.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, Path("headrace") / path.relative_to(root))
    return target


def test_the_package_comes_by_py_files(job, cluster, tmp_path):
    """Started by spark-submit with a zip, driver and executors run what is in it, and each line arrives once."""
    job.feed(20)
    program, file = tmp_path / "driver.py", tmp_path / "job.json"
    program.write_text(DRIVER)
    file.write_text(json.dumps(job.props()))

    answer = subprocess.run(
        [cluster.spark_submit, "--master", cluster.url, "--py-files", package_zip(tmp_path), program, file],
        env={**os.environ, **cluster.variables, "PYSPARK_DRIVER_PYTHON": str(cluster.python)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr[-3000:]
    said = json.loads(answer.stdout.splitlines()[-1])
    assert all("headrace.zip/headrace/" in place for place in [said["driver"], *said["executors"]])
    assert (said["summary"]["state"], said["summary"]["records"]) == ("COMPLETED", 200)
    job.assert_each_line_once()


@pytest.fixture(scope="module")
def spark(cluster):
    with cluster.environment(), session(None, master=cluster.url, name="tests") as spark:
        yield spark


def test_records_go_from_the_executors_to_kafka(job, spark, cluster):
    """Two processes, below two executors, read the objects and hold the producers; the driver reads none."""
    readers, workers = set(), set()
    job.feed(40)
    job.harness.faulty.script(*[NoteReader(readers)] * 40)

    summary = Run(props=job.props(), bounded=True, engine=noting(on_spark(spark), workers)).go()

    assert summary.error is None
    assert all(task.records for task in summary.tasks)
    producers = {int(worker.split(":")[1]) for worker in workers}
    assert producers == readers
    assert len(producers) >= 2
    assert os.getpid() not in readers
    assert len(cluster.executors()) == 2
    job.assert_each_line_once()


def test_more_tasks_than_slots_share_them(job, spark, caplog):
    """Five source tasks read at once in four processes; the warning has both numbers, in the log and in the summary."""
    all_five = threading.Barrier(5, timeout=60)
    job.feed(10)
    job.harness.faulty.script(*[Together(all_five)] * 5)
    workers = set()

    summary = Run(props=job.props(tasks__max="5"), bounded=True, engine=noting(on_spark(spark), workers)).go()

    assert "5 source tasks share 4 Spark slots" in summary.warnings
    assert "5 source tasks on 4 Spark slots" in caplog.text
    assert [task.records for task in summary.tasks] == [20] * 5
    assert (all_five.broken, len(workers)) == (False, 4)
    job.assert_each_line_once()
