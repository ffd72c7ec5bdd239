"""Files on a real broker: a task knows of a rotated file what it is sent, and only committed files are cleaned up."""

import pytest

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.worker.execute import make_source
from headrace.offsets.memory import MemoryOffsetStore
from headrace.testing.files_harness import FilesHarness
from headrace.testing.trial import Trial, fresh_name, records_of


@pytest.fixture
def trial(engine, kafka_bootstrap_servers, request):
    harness = FilesHarness()
    yield Trial(
        harness=harness,
        engine=engine,
        bootstrap_servers=kafka_bootstrap_servers,
        name=fresh_name(request.function.__name__.removeprefix("test_")),
    )
    harness.close()


def append(path, records):
    with path.open("ab") as file:
        file.write(b"".join(record + b"\n" for record in records))


def rotate(folder, count):
    for number in range(count, 0, -1):
        (folder / f"app.log.{number}").rename(folder / f"app.log.{number + 1}")
    (folder / "app.log").rename(folder / "app.log.1")


def test_rotation_between_runs(trial):
    """Each run is a process's first, with what it is sent: files that move on at every rotation are read once."""
    log = trial.harness.folder / "app.log"
    for turn in range(5):
        append(log, records_of("log", 10, start=turn * 20))
        trial.run(files__follow="true", tasks__max="3")
        append(log, records_of("log", 10, start=turn * 20 + 10))
        rotate(trial.harness.folder, turn)
    trial.run(files__follow="true", tasks__max="2")
    trial.run(files__follow="true")
    assert trial.values() == records_of("log", 100)


def test_rotation_while_a_run_goes_on(trial):
    """A continuous run keeps up with a log that is rotated again and again under it."""
    log = trial.harness.folder / "app.log"
    append(log, records_of("log", 10))
    with trial.running(files__follow="true", discovery__interval__ms="50", tasks__max="2") as running:
        for turn in range(1, 6):
            trial.await_values(turn * 10)
            rotate(trial.harness.folder, turn - 1)
            append(log, records_of("log", 10, start=turn * 10))
        trial.await_values(60)
        summary = running.stop()
    assert trial.values() == records_of("log", 60)
    assert (summary.error, summary.warnings) == (None, ())


@pytest.mark.parametrize(
    ("engine", "tasks"), [("local", "1"), ("local", "3"), ("processes", "3"), ("spark", "3")], indirect=["engine"]
)
@pytest.mark.parametrize("cleanup", ["delete", "archive"])
def test_a_bounded_run_leaves_nothing_behind(trial, tmp_path, tasks, cleanup):
    """With files.cleanup everything that a bounded run has read is gone when it ends, or is in the archive."""
    archive = tmp_path / "archive"
    archive.mkdir()
    changes = {"files__cleanup": cleanup, **({"files__archive": str(archive)} if cleanup == "archive" else {})}
    for number in range(6):
        trial.add(f"piece-{number}", 20)
    summary = trial.run(**changes, tasks__max=tasks)
    assert sorted(trial.values()) == sorted(trial.everything())
    assert list(trial.harness.folder.iterdir()) == []
    assert sorted(path.name for path in archive.iterdir()) == (sorted(trial.pieces) if cleanup == "archive" else [])
    assert summary.objects == 6
    assert trial.run(**changes).records == 0


@pytest.mark.parametrize("engine", ["local"], indirect=True)
def test_a_failed_run_cleans_up_only_what_is_committed(trial):
    """A file with a bad record stays, with what was committed of it; a file that is done may go."""
    trial.add("a-good", 10)
    trial.harness.add("b-bad", [*records_of("b-bad", 5), b"{bad"])
    failed = trial.attempt(files__cleanup="delete")
    assert failed.state == "FAILED"
    assert (trial.harness.folder / "b-bad").exists()
    again = trial.attempt(files__cleanup="delete")
    assert (again.records, trial.records_done("b-bad")) == (0, 5)


@pytest.mark.parametrize("follow", ["false", "true"])
def test_what_is_given_back_is_assigned_again(tmp_path, follow):
    """A file that was given back goes to another task, or with its whole family to the same, and can come again."""
    props = {
        "name": "n",
        "connector.class": "files",
        "bootstrap.servers": "h:1",
        "files.paths": str(tmp_path),
        "files.follow": follow,
        "input.format": "text",
        "discovery.interval.ms": "10",
    }
    path = tmp_path / "app.log"
    append(path, [b"one"])
    host = EnumeratorHost("n", 2, MemoryOffsetStore(), bounded=False)
    host.start(make_source(props)[0], None)
    try:
        assert host.wake.wait(30)
        host.work_off()
        [owner] = [reader for reader in (0, 1) if host.plan(reader)]
        host.hand_back(owner, host.plan(owner))
        expected = owner if follow == "true" else 1 - owner
        assert [split.split_id for split in host.plan(expected)] == [str(path)]
        append(path, [b"two"])
        while [split.file.size for split in host.plan(expected)] != [8]:
            assert host.wake.wait(30)
            host.wake.clear()
            host.work_off()
        assert host.plan(1 - expected) == []
    finally:
        host.close()
