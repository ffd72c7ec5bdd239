"""What breaks on the way, and crashes."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.framework.dead_letter import DeadLetter
from headrace.testing.deviations import beside_threads_only, on_threads_only, quick
from headrace.testing.dying_sink import DyingKafkaSink, install_dying_sink
from headrace.testing.processes import python_workers
from headrace.testing.trial import Trial, records_of

if TYPE_CHECKING:
    import pytest

__all__ = ["FaultCases"]

WORKERS_WITHIN_S = 60.0


class FaultCases:
    """Reads that fail, records that are none, and processes that die."""

    @quick
    def test_a_read_that_fails_for_a_while_loses_nothing(self, trial: Trial) -> None:
        """Reads that fail in a way that another attempt mends, within a piece and between two, change no record."""
        for number in range(4):
            trial.add(f"piece-{number}", 50)
        trial.harness.stumble(6)

        summary = trial.run()

        assert trial.values() == trial.everything()
        assert summary.error is None

    def test_a_read_that_fails_with_object_boundary_cuts_no_object(self, trial: Trial) -> None:
        """With the object boundary a piece whose read failed half-way becomes visible as a whole all the same."""
        for number in range(3):
            trial.add(f"piece-{number}", 50)
        trial.harness.stumble(9)

        trial.run(transaction__boundary="object")

        assert sorted(trial.transactions()) == sorted(map(trial.harness.expected, trial.pieces.values()))

    @quick
    def test_a_bad_record_stops_at_its_place(self, trial: Trial) -> None:
        """Everything before a bad record is delivered once, run after run, and the error names piece and place."""
        good = records_of("one", 20)
        trial.pieces["one"] = good
        trial.harness.add("one", [*good, trial.harness.bad_record, *records_of("never", 5)])

        first, second = trial.attempt(), trial.attempt()

        assert (first.state, second.state) == ("FAILED", "FAILED")
        assert (first.records, second.records) == (20, 0)
        assert trial.values() == trial.everything()
        assert trial.records_done("one") == 20
        for summary in (first, second):
            assert "one" in (summary.error or "")
            assert "21" in (summary.error or "")

    @quick
    def test_bad_records_are_dead_letters(self, trial: Trial) -> None:
        """With errors.tolerance=all each bad record is one dead letter that says where it lay; all else comes once."""
        good = {piece: records_of(piece, 20) for piece in ("one", "two")}
        for piece, records in good.items():
            trial.pieces[piece] = records
            trial.harness.add(piece, [*records[:7], trial.harness.bad_record, *records[7:], trial.harness.bad_record])

        summary, again = trial.run(**trial.tolerant), trial.run(**trial.tolerant)

        assert trial.values() == trial.everything()
        assert (summary.records, summary.dead_lettered, again.records, again.dead_lettered) == (40, 4, 0, 0)
        assert [trial.records_done(piece) for piece in good] == [22, 22]
        letters = trial.dead_letters()
        assert sorted((_piece_of(letter, good, trial), letter.number) for letter in letters) == [
            ("one", 8),
            ("one", 22),
            ("two", 8),
            ("two", 22),
        ]
        assert all("transform" in letter.error for letter in letters)

    @on_threads_only  # a death in another process is a kill, which the recovery tests have
    def test_a_crash_at_every_step_leaves_one_dead_letter_of_each(
        self, trial: Trial, tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
    ) -> None:
        """Whichever call to Kafka a task dies before, there is one of each record and one of each dead letter."""
        install_dying_sink(tmp_path, monkeypatch)
        good = trial.pieces["one"] = records_of("one", 6)
        bad = trial.harness.bad_record
        trial.harness.add("one", [*good[:2], bad, *good[2:], bad])
        for step in range(1, 100):
            DyingKafkaSink.to_die_before(step)
            ended = trial.attempt(
                sink="dying",
                transaction__boundary="poll",
                max__poll__records="3",
                transaction__timeout__ms="1000",
                **trial.tolerant,
            )
            if ended.state == "COMPLETED":
                break

        assert trial.values() == trial.everything()
        assert [letter.number for letter in trial.dead_letters()] == [3, 8]

    def test_at_least_once_has_dead_letters_too(self, trial: Trial) -> None:
        """Without transactions bad records are dead letters all the same."""
        good = trial.pieces["one"] = records_of("one", 6)
        trial.harness.add("one", [trial.harness.bad_record, *good])

        summary = trial.run(exactly__once__support="disabled", **trial.tolerant)

        assert trial.values() == trial.everything()
        assert summary.dead_lettered == 1
        assert [letter.number for letter in trial.dead_letters()] == [1]

    def test_at_least_once_loses_nothing(self, trial: Trial) -> None:
        """Without transactions everything is delivered, offsets follow, and the summary says what was promised."""
        for number in range(4):
            trial.add(f"piece-{number}", 25)

        summary = trial.run(exactly__once__support="disabled", tasks__max="2")
        again = trial.run(exactly__once__support="disabled", tasks__max="2")

        assert sorted(trial.values()) == sorted(trial.everything())
        assert (summary.delivery, again.records) == ("at_least_once", 0)
        assert [trial.records_done(piece) for piece in trial.pieces] == [25] * 4

    @on_threads_only  # a death in another process is a kill, which the recovery tests have
    def test_a_crash_at_every_step_loses_and_doubles_nothing(
        self, trial: Trial, tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
    ) -> None:
        """Whichever call to Kafka a task dies before, the next run leaves each record once and the offsets right."""
        install_dying_sink(tmp_path, monkeypatch)
        died_before = []
        trial.add("one", 6)
        trial.add("two", 6)
        for step in range(1, 100):
            sink = DyingKafkaSink.to_die_before(step)
            # A short time-out: where the dead one held back the offsets topic, the next run waits until it is over.
            ended = trial.attempt(
                sink="dying", transaction__boundary="poll", max__poll__records="3", transaction__timeout__ms="1000"
            )
            if ended.state == "COMPLETED":
                break
            died_before.append(sink.died_before)

        assert trial.values() == trial.everything()
        assert set(died_before) >= {"init", "write", "flush", "commit"}
        assert [trial.records_done(piece) for piece in trial.pieces] == [6, 6]

    @beside_threads_only
    def test_processes_that_are_killed_lose_and_double_nothing(self, trial: Trial) -> None:
        """All Python processes are killed again and again: the run goes on by itself, and each record comes once."""
        with trial.running(tasks__max="2", transaction__boundary="poll", max__poll__records="20") as running:
            for number in range(4):
                # Only now, so that there is work, and with it a worker, behind each kill.
                trial.add(f"piece-{number}", 750)
                trial.add(f"another-{number}", 750)
                trial.await_values(1500 * number + 1)
                _kill_python_workers()
            trial.await_values(6000)
            summary = running.stop()

        assert (summary.state, summary.error) == ("COMPLETED", None)
        assert sorted(trial.values()) == sorted(trial.everything())
        assert [trial.records_done(piece) for piece in trial.pieces] == [750] * 8


def _kill_python_workers() -> None:
    """Kill those of this process's session, once there are some."""
    deadline = time.monotonic() + WORKERS_WITHIN_S
    while not (found := python_workers(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.05)  # no engine says when it has started one
    assert found, f"there was no Python worker within {WORKERS_WITHIN_S:.0f} s"
    for worker in found:
        os.kill(worker, signal.SIGKILL)


def _piece_of(letter: DeadLetter, pieces: Iterable[str], trial: Trial) -> str:
    """Which piece a dead letter is of."""
    return next(piece for piece in pieces if letter.source_partition == trial.harness.partition(piece))
