"""Everything that is there, once, in its order."""

from collections.abc import Sequence

from headrace.framework.backoff import BackoffConfig
from headrace.testing.deviations import beside_threads_only, on_threads_only, quick
from headrace.testing.engines import Engine
from headrace.testing.source_tasks import task_on
from headrace.testing.topics import create_topic
from headrace.testing.trial import Trial

__all__ = ["ReadingCases"]


class ReadingCases:
    """Bounded runs on what is there at their start, and continuous ones on what comes."""

    @quick
    def test_one_piece_is_read_once_and_in_its_order(self, trial: Trial) -> None:
        """One piece comes out record by record, its progress says so, and the summary counts it."""
        trial.add("one", 100)

        summary = trial.run()

        assert trial.values() == trial.everything()
        assert trial.records_done("one") == 100
        assert (summary.records, summary.delivery, summary.error) == (100, "exactly_once", None)

    @quick
    def test_many_pieces_are_shared_among_tasks(self, trial: Trial) -> None:
        """More pieces than tasks: each record once, the order within each piece kept, every piece's progress stored."""
        for number in range(12):
            trial.add(f"piece-{number:02}", 10 + number)

        summary = trial.run(tasks__max="3")

        assert sorted(trial.values()) == sorted(trial.everything())
        for piece, records in trial.pieces.items():
            assert trial.values_of(piece) == trial.harness.expected(records)
            assert trial.records_done(piece) == len(records)
        assert summary.records == sum(task.records for task in summary.tasks) == len(trial.everything())

    def test_an_empty_piece_is_no_trouble(self, trial: Trial) -> None:
        """A piece without records ends the run as well as any other, and takes nothing from its neighbours."""
        trial.add("before", 5)
        trial.add("empty", 0)
        trial.add("later", 5)

        trial.run()
        again = trial.run()

        assert trial.values() == trial.everything()
        assert again.records == 0

    def test_an_empty_place_is_a_run_without_records(self, trial: Trial) -> None:
        """Where there is nothing to read, a bounded run ends, and has read nothing."""
        summary = trial.run(tasks__max="2")

        assert (summary.records, summary.transactions) == (0, 0)
        assert trial.values() == []

    def test_the_order_within_a_piece_survives_small_transactions(self, trial: Trial) -> None:
        """However often a piece is cut by transactions, its records stay in their order."""
        trial.add("long", 15_000)
        trial.add("other", 15_000)

        summary = trial.run(tasks__max="2", transaction__boundary="poll", max__poll__records="7")

        for piece, records in trial.pieces.items():
            assert trial.values_of(piece) == trial.harness.expected(records)
        assert summary.transactions > len(trial.pieces) + 1

    @quick
    @beside_threads_only
    def test_both_engines_leave_the_same_behind(self, trial: Trial, two_engines: Sequence[Engine]) -> None:
        """Two engines leave identical records, in their order, and identical entries, byte for byte."""
        for number in range(5):
            trial.add(f"piece-{number}", 20)
        left = []
        for engine in two_engines:
            topics = {"topic": f"{trial.topic}-{engine.name}", "offset.storage.topic": f"{trial.name}-o-{engine.name}"}
            create_topic(trial.bootstrap_servers, topics["topic"])
            engine.run(trial.props(**topics, transaction__boundary="object"))
            left.append(
                (trial.transactions(topics["topic"]), list(trial.entries(topics["offset.storage.topic"]).items()))
            )

        assert left[0] == left[1]
        assert [value for values in left[0][0] for value in values] == trial.everything()
        assert len(left[0][1]) == 5

    @quick
    def test_a_piece_that_appears_during_a_run_is_read(self, trial: Trial) -> None:
        """A continuous run reads what is there, waits, and finds what comes later."""
        trial.add("early", 10)
        with trial.running(tasks__max="2", discovery__interval__ms="100") as running:
            trial.await_values(10)
            trial.add("late", 10)
            trial.await_values(20)
            summary = running.stop()

        assert sorted(trial.values()) == sorted(trial.everything())
        assert (summary.records, summary.error) == (20, None)

    @on_threads_only  # no engine takes part in it
    def test_close_is_idempotent(self, trial: Trial) -> None:
        """Resources can be closed twice, after half of the records were taken and before anything was opened."""
        trial.add("one", 5)
        trial.add("two", 5)
        for taken in (0, 1):
            task = task_on(trial.props())
            iterator = task.get_iterator(BackoffConfig())
            for _ in range(taken):
                next(iterator)
            task.close_resources()
            task.close_resources()
