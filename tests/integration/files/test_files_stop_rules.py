"""Runs over files that end by a rule: at a byte of a file, or with what was modified before a time."""

import os
import time
from datetime import UTC, datetime

import pytest

from headrace.framework.errors import ConfigError
from headrace.framework.run import Run, on_threads
from headrace.testing.files_harness import FilesHarness
from headrace.testing.trial import Trial, fresh_name, records_of

# Longer than the test: no clock of a micro-batch ends anything here.
NEVER_MS = "600000"
LINE_BYTES = len(records_of("log", 1)[0]) + 1


@pytest.fixture
def trial(engine, kafka_bootstrap_servers):
    harness = FilesHarness()
    yield Trial(
        harness=harness,
        engine=engine,
        bootstrap_servers=kafka_bootstrap_servers,
        name=fresh_name(f"files-rules-{engine.name}"),
    )
    harness.close()


def append(trial, name, records):
    with (trial.harness.folder / name).open("ab") as file:
        file.write(b"".join(record + b"\n" for record in records))


def ended(trial, rule, **changes):
    """A run without `--available-now`, once it has ended by itself."""
    with trial.running(stop__rule=rule, batch__max__ms=NEVER_MS, **changes) as running:
        summary = running.ended()
    assert (summary.state, summary.error) == ("COMPLETED", None)
    return summary


def modified(trial, name, second):
    os.utime(trial.harness.folder / name, (second, second))


def iso(second):
    return datetime.fromtimestamp(second, UTC).isoformat()


def test_a_growing_file_ends_the_run_at_its_byte(trial):
    """A followed file ends the run once it has come to the byte, while another one of the other task waits for more."""
    lines = records_of("log", 9)
    append(trial, "log", lines[:3])
    append(trial, "other", records_of("other", 2))
    rule = f"position:{LINE_BYTES * 6}"
    with trial.running(stop__rule=rule, batch__max__ms=NEVER_MS, files__follow="true", tasks__max="2") as running:
        trial.await_values(5)
        append(trial, "log", lines[3:])
        summary = running.ended()

    assert (summary.state, summary.records) == ("COMPLETED", 8)
    assert [value for value in trial.values() if b'"log"' in value] == lines[:6]
    trial.run(files__follow="true", tasks__max="2")
    assert [value for value in trial.values() if b'"log"' in value] == lines


@pytest.mark.parametrize("engine", ["local"], indirect=True)
class TestPosition:
    @pytest.mark.parametrize(
        ("byte", "count"), [(0, 0), (1, 0), (LINE_BYTES - 1, 0), (LINE_BYTES, 1), (LINE_BYTES * 5 - 1, 4)]
    )
    def test_only_whole_lines_up_to_the_byte_are_read(self, trial, byte, count):
        """A line that goes beyond the byte is not read, and no file after the one that came to it."""
        trial.add("log", 9)
        trial.add("next", 9)
        assert ended(trial, f"position:{byte}").records == count
        assert trial.values() == trial.everything()[:count]
        assert trial.run().records == 18 - count
        assert trial.values() == trial.everything()

    @pytest.mark.parametrize("follow", ["false", "true"])
    @pytest.mark.parametrize(("byte", "count"), [(LINE_BYTES * 2, 2), (LINE_BYTES * 3, 3)])
    def test_a_run_that_finds_it_met_ends_at_once(self, trial, follow, byte, count):
        """A run that comes after the one that met the rule, and did not get to say so, reads nothing and ends."""
        trial.add("log", 3)
        assert ended(trial, f"position:{byte}", files__follow=follow).records == count
        trial.add("next", 3)
        assert ended(trial, f"position:{byte}", files__follow=follow).records == 0
        append(trial, "log", [b'{"piece":"log","num'])
        assert ended(trial, f"position:{byte}", files__follow=follow).records == 0
        assert trial.values() == records_of("log", count)

    def test_a_file_that_was_read_so_far_in_an_earlier_run_meets_it(self, trial):
        """What is stored of a file counts, whether it was read by a rule or without one, unless it is another file."""
        trial.add("log", 9)
        trial.run()
        assert ended(trial, f"position:{LINE_BYTES * 4}").records == 0
        trial.put("log", records_of("new", 9))
        assert ended(trial, f"position:{LINE_BYTES * 4}").records == 4

    def test_a_shorter_file_does_not_meet_it(self, trial):
        """A file that ends before the byte is read as a whole, and the run goes on to one that reaches it."""
        trial.add("a", 2)
        trial.add("log", 9)
        assert ended(trial, f"position:{LINE_BYTES * 4}").records == 6
        assert trial.records_done("a") == 2
        assert trial.records_done("log") == 4


@pytest.mark.parametrize("engine", ["local"], indirect=True)
class TestTime:
    def test_only_what_was_modified_before_is_read(self, trial):
        """A time that has been ends the run with the files from before it; the rest is the next run's."""
        for second, name in enumerate("abc", start=1000):
            trial.add(name, 10)
            modified(trial, name, second)
        assert ended(trial, f"time:{iso(1002)}", tasks__max="2").records == 20
        assert trial.offset("c") is None
        assert trial.run().records == 10

    @pytest.mark.parametrize("tasks", ["1", "3"])
    def test_a_time_that_has_been_ends_the_run_at_once(self, trial, tasks):
        """The first listing is the last one, whether there is nothing, nothing from before it, or nothing left."""
        rule = {"rule": f"time:{iso(1002)}", "discovery__interval__ms": NEVER_MS, "tasks__max": tasks}
        assert ended(trial, **rule).records == 0
        trial.add("late", 10)
        assert ended(trial, **rule).records == 0
        trial.add("early", 10)
        modified(trial, "early", 1001)
        assert [ended(trial, **rule).records for _ in range(2)] == [10, 0]

    def test_files_are_read_as_they_come_until_then(self, trial):
        """A time to come ends the run when it is there, with what has come in the meantime."""
        soon = time.time() + 8
        trial.add("a", 10)
        with trial.running(stop__rule=f"time:{iso(soon)}", batch__max__ms=NEVER_MS) as running:
            trial.await_values(10)
            trial.add("b", 10)
            modified(trial, "b", soon - 1)
            trial.add("late", 10)
            modified(trial, "late", soon + 1)
            summary = running.ended()
        assert (summary.state, summary.records, trial.offset("late")) == ("COMPLETED", 20, None)

    def test_what_is_read_is_cleaned_up_before_the_end(self, trial):
        """Such a run ends once the files that it has read are gone; those that it has not read stay."""
        for second, name in enumerate("ab", start=1000):
            trial.add(name, 10)
            modified(trial, name, second)
        ended(trial, f"time:{iso(1001)}", files__cleanup="delete")
        assert [path.name for path in trial.harness.folder.iterdir()] == ["b"]


@pytest.mark.parametrize("engine", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("rule", "changes", "said"),
    [
        ("position:soon", {}, "must be a byte"),
        ("position:5", {"input.format": "csv"}, "csv is none"),
        ("position:5", {"transaction.boundary": "object"}, "cannot cut a file"),
        ("time:2026-01-01", {"files.follow": "true"}, "the lines of a file have none"),
    ],
)
def test_a_rule_that_cannot_be_met_is_refused(trial, rule, changes, said):
    """A rule that makes no sense for what is read is a fault that says why, before anything is read."""
    props = {**trial.props(stop__rule=rule), **changes}
    with pytest.raises(ConfigError, match=f"stop.rule.*{said}"):
        Run(props=props, bounded=False, engine=on_threads).go()
