"""Readers that are killed in the middle of a split until Spark gives them up: another task finishes it, once.

Which task has read how much of it is in the counters that the tasks write with their records.
"""

import os
import re
import signal

import attrs
import psutil
import pytest

from headrace.framework.compat import override
from headrace.framework.worker.execute import configured
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.testing import S3Harness
from headrace.testing.engines import Engine
from headrace.testing.faulty_files import STUCK, FaultScript
from headrace.testing.faulty_redis import PASS
from headrace.testing.faulty_s3 import Answer, CutBody, Fault
from headrace.testing.files_harness import FilesHarness
from headrace.testing.processes import at_near_ends
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name

ATTEMPTS = 4
"""How often Spark tries a task, in a session that we make."""

# Longer than the test: what ends a batch is what becomes of its readers.
NEVER_MS = "600000"
MOVED = re.compile(r"1 splits of reader (\d) move: it is lost")


def trial_of(harness, kafka_bootstrap_servers, spark):
    return Trial(
        harness=harness,
        engine=Engine("spark", spark=spark),
        bootstrap_servers=kafka_bootstrap_servers,
        name=fresh_name("lost-readers"),
    )


def claims(trial):
    """How many claims the connector has seen: each move of splits takes one."""
    return read_view(KafkaSettings.of(configured(trial.props()))).generation.generation


def moves(caplog):
    """The readers that have lost a split, in their order."""
    return [int(found[1]) for record in caplog.records if (found := MOVED.search(record.getMessage()))]


@attrs.frozen
class KillAsker(Fault):
    """Kill the process that asks, once what was read before is committed."""

    trial: Trial

    @override
    def before(self, request):
        self.trial.await_values(1)
        for reader in at_near_ends({request.ports}):
            os.kill(reader, signal.SIGKILL)
        return Answer(503, "SlowDown").before(request)


def test_an_object_whose_reader_is_killed(kafka_bootstrap_servers, s3_endpoint, spark_on_threads, caplog):
    """An object goes on with the other task where the dead one's last commit was, and every line comes once."""
    with S3Harness(s3_endpoint) as harness:
        trial = trial_of(harness, kafka_bootstrap_servers, spark_on_threads)
        trial.add("torn", 200)
        trial.harness.faulty.script(
            CutBody(len(b"".join(trial.pieces["torn"][:80])) + 80, on=torn),
            *[KillAsker(trial, on=torn)] * ATTEMPTS,
        )
        summary = trial.run(tasks__max="2", batch__max__ms=NEVER_MS)

    [lost] = moves(caplog)
    assert trial.values() == trial.everything()
    assert {task.task: task.records for task in summary.tasks} == {lost: 80, 1 - lost: 120}
    assert claims(trial) == 2


def torn(request):
    return request.is_object_get and request.path.endswith("/torn")


def test_a_file_whose_reader_is_killed(kafka_bootstrap_servers, spark_on_threads, eventually, caplog):
    """A file goes on with the other task where the dead one's last commit was, and every line comes once."""
    harness = FilesHarness(by_url=True)
    trial = trial_of(harness, kafka_bootstrap_servers, spark_on_threads)
    trial.add("torn", 200)
    FaultScript(harness.folder).write(*[STUCK] * ATTEMPTS)
    done = 0
    try:
        with trial.running(
            tasks__max="2", batch__max__ms=NEVER_MS, transaction__boundary__interval__ms="100", stop__rule="snapshot"
        ) as running:
            for _ in range(ATTEMPTS):
                eventually(lambda done=done: running.handle.status().progress.records > done)
                done = running.handle.status().progress.records
                os.kill(eventually(lambda: reader_of(harness.folder / "torn")), signal.SIGKILL)
            summary = running.ended()
    finally:
        harness.close()

    [lost] = moves(caplog)
    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert trial.values() == trial.everything()
    assert {task.task: task.records for task in summary.tasks} == {lost: done, 1 - lost: 200 - done}
    assert claims(trial) == 2


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_a_stream_whose_reader_is_killed(  # noqa: PLR0917 - fixtures
    kafka_bootstrap_servers, redis_port, spark_on_threads, eventually, caplog, mode
):
    """A stream goes on with the other task where the dead one's last commit was, and every entry comes once."""
    with RedisHarness(redis_port) as harness:
        trial = trial_of(harness, kafka_bootstrap_servers, spark_on_threads)
        trial.add("torn", 200)
        of_mode = {"redis__mode": mode, "redis__group": "g"} if mode == "group" else {}
        harness.faulty.hold()
        harness.faulty.script(PASS, PASS)
        with trial.running(
            tasks__max="2",
            batch__max__ms=NEVER_MS,
            redis__read__count="10",
            transaction__boundary__interval__ms="100",
            stop__rule="snapshot",
            **of_mode,
        ) as running:
            for attempt in range(1, ATTEMPTS + 1):
                eventually(lambda attempt=attempt: running.handle.status().progress.records == 20 * attempt)
                os.kill(eventually(lambda: client_of(harness.faulty)), signal.SIGKILL)
                harness.faulty.script(PASS, PASS)
            harness.faulty.release()
            summary = running.ended()

    [lost] = moves(caplog)
    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert trial.values() == trial.everything()
    assert {task.task: task.records for task in summary.tasks} == {lost: 20 * ATTEMPTS, 1 - lost: 200 - 20 * ATTEMPTS}
    assert claims(trial) == 2


def client_of(faulty):
    """Another process that is connected to a proxy."""
    port = int(faulty.url.rpartition(":")[2])
    for connection in psutil.net_connections("tcp4"):
        if connection.raddr and connection.raddr.port == port and connection.pid not in {None, os.getpid()}:
            return connection.pid
    return None


def reader_of(path):
    """The process below this one that has a file open."""
    for process in psutil.Process().children(recursive=True):
        try:
            if any(opened.path == str(path) for opened in process.open_files()):
                return process.pid
        except psutil.Error:
            continue
    return None
