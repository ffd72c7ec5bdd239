"""Tasks on processes of this machine: what becomes of one that dies, and what reaches the driver from the others."""

import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.framework.compat import override, usable_cores
from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import SourceError
from headrace.framework.local.process import TaskProcess
from headrace.framework.local.words import Setup
from headrace.framework.record import SourceRecord
from headrace.framework.task import AbstractSourceTask
from headrace.offsets.key import OffsetManagerKey
from headrace.testing import create_topic, read_topic
from headrace.testing.engines import Engine
from headrace.testing.processes import python_workers
from headrace.testing.trial import fresh_name

RECORDS = 20

log = logging.getLogger("headrace.sources.counting")


class CountingTask(AbstractSourceTask):
    """Sends the numbers up to 20, each with the process that has sent it; before number 10 something happens."""

    @override
    def configure(self, props):
        self.happens, self.folder = props["happens"], Path(props["folder"])
        return SourceCommonConfig.from_props(props)

    @override
    def get_iterator(self, backoff):
        partition = {"task": self.context.task_id}
        found = self.context.offsets.get_entry(OffsetManagerKey(partition), dict)
        for number in range(found["number"] + 1 if found else 0, RECORDS):
            if number == RECORDS // 2:
                getattr(self, self.happens)()
            value = json.dumps([self.context.task_id, number, os.getpid()]).encode()
            yield SourceRecord(
                source_partition=partition, source_offset={"number": number}, topic=self.context.connector, value=value
            )

    @override
    def close_resources(self):
        pass

    def nothing(self):
        pass

    def dies(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def dies_once(self):
        try:
            (self.folder / f"died-{self.context.task_id}").touch(exist_ok=False)
        except FileExistsError:
            return
        self.dies()

    def crashes(self):
        ctypes.string_at(0)

    def leaves(self):
        os._exit(3)

    def is_told_to_end(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)

    def logs(self):
        log.info("not to be seen")
        try:
            int("the cause")
        except ValueError:
            log.exception("task %d has %s to say", self.context.task_id, "something")

    def fails_in_a_strange_way(self):
        error = SourceError("strange")
        error.handle = lambda: None
        raise error


@pytest.fixture
def props(kafka_bootstrap_servers, tmp_path, monkeypatch, request):
    """The configuration of two tasks, to which the test says what happens in their middle."""
    monkeypatch.syspath_prepend(request.config.rootpath)
    name = fresh_name("processes")
    create_topic(kafka_bootstrap_servers, name)
    return {
        "name": name,
        "connector.class": f"{CountingTask.__module__}:{CountingTask.__qualname__}",
        "topic": name,
        "bootstrap.servers": kafka_bootstrap_servers,
        "offset.storage.topic": f"{name}-offsets",
        "offset.storage.partitions": "2",
        "tasks.max": "2",
        "happens": "nothing",
        "folder": str(tmp_path),
    }


def run(props, **changes):
    return Engine("processes").run(props | {key.replace("__", "."): value for key, value in changes.items()})


def sent(props):
    """What readers of committed records see: task, number and process of each."""
    return [json.loads(message.value()) for message in read_topic(props["bootstrap.servers"], props["topic"])]


def is_each_there_once(props):
    return sorted((task, number) for task, number, _ in sent(props)) == [
        (task, number) for task in range(2) for number in range(RECORDS)
    ]


def test_each_task_has_a_process(props):
    """Two tasks run in two processes, neither of which is the driver's; when the run is over, they are gone."""
    summary = run(props)

    assert (summary.state, summary.error, summary.records) == ("COMPLETED", None, 2 * RECORDS)
    assert is_each_there_once(props)
    processes = {(task, pid) for task, _, pid in sent(props)}
    assert len({pid for _, pid in processes} - {os.getpid()}) == len(processes) == 2
    assert not any(Path(f"/proc/{pid}").exists() for _, pid in processes)


def test_tasks_share_a_process_where_there_are_more(props):
    """Three tasks on two processes: each of them is in one, for as long as the run lasts."""
    run(props, tasks__max="3")

    processes = {(task, pid) for task, _, pid in sent(props)}
    assert sorted(task for task, _ in processes) == [0, 1, 2]
    assert len({pid for _, pid in processes}) == 2


def test_a_process_that_dies_is_replaced(props, caplog):
    """What had been sent before a SIGKILL is sent once all the same; the log names the task and the signal."""
    summary = run(props, happens="dies_once")

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert is_each_there_once(props)
    assert len({pid for *_, pid in sent(props)} - {os.getpid()}) >= 2
    assert f"{props['name']}, task 1: its process was ended by SIGKILL" in caplog.text


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("dies", "its process was ended by SIGKILL"),
        ("crashes", "its process was ended by SIGSEGV"),
        ("leaves", "its process has ended with exit code 3"),
    ],
)
def test_a_process_that_dies_again_and_again_fails_the_run(props, happens, said):
    """As with every failure that another attempt may mend, the run's patience has an end; the error says what died."""
    summary = run(props, happens=happens, errors__retry__timeout="1000", transaction__boundary__max__records="1")

    assert summary.state == "FAILED"
    assert f"{props['name']}, task " in summary.error
    assert said in summary.error
    assert max(number for _, number, _ in sent(props)) < RECORDS // 2


def test_signals_are_for_the_driver(props, caplog):
    """What a terminal or a supervisor sends to every process ends no task: the driver gets it, too, and tells them."""
    summary = run(props, happens="is_told_to_end")

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert is_each_there_once(props)
    assert "its process" not in caplog.text


def test_what_a_task_logs_goes_to_the_drivers_handlers(props, caplog):
    """With its level, its arguments filled in and its traceback; what the driver would not log is not sent."""
    caplog.set_level(logging.WARNING, logger="headrace")

    run(props, happens="logs")

    records = [record for record in caplog.records if record.name == log.name]
    assert sorted((record.levelname, record.getMessage()) for record in records) == [
        ("ERROR", "task 0 has something to say"),
        ("ERROR", "task 1 has something to say"),
    ]
    assert all(record.process != os.getpid() and "ValueError: invalid literal" in record.exc_text for record in records)


def test_a_report_that_cannot_be_sent_fails_its_task(props):
    """An error that does not survive the way to the driver is told in words, with what was wrong with it."""
    summary = run(props, happens="fails_in_a_strange_way")

    assert summary.state == "FAILED"
    assert "strange; and its report cannot be sent to the driver: " in summary.error
    assert f"{props['name']}, task " in summary.error


def test_a_process_that_does_not_end_is_ended_by_force(props, monkeypatch, eventually):
    """Where it does nothing any more, also not what it is told, nobody waits for it for ever."""
    monkeypatch.setattr("headrace.framework.local.process.CLOSED_WITHIN_S", 0.1)
    process = TaskProcess(Setup.of_this_process(SourceCommonConfig.from_props(props)))
    (pid,) = eventually(lambda: python_workers(os.getpid()))
    os.kill(pid, signal.SIGSTOP)

    process.ask_close()
    process.close()

    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("tasks", [1, 2])
def test_the_command_line_takes_as_many_processes_as_it_can_use(props, tasks, tmp_path, request):
    """One for each task as far as there are cores; where that is one, the driver's own."""
    file = tmp_path / "connector.json"
    file.write_text(json.dumps(props | {"tasks.max": str(tasks)}))
    argv = [sys.executable, "-P", "-m", "headrace", "run", file, "--engine", "local", "--available-now"]

    with subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(request.config.rootpath)},
    ) as driver:
        assert driver.wait() == 0

    processes = {pid for *_, pid in sent(props)}
    expected = min(tasks, usable_cores())
    assert (len(processes), driver.pid in processes) == (expected, expected == 1)
