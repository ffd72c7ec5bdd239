"""What a run leaves to the next one."""

from headrace.testing.deviations import quick
from headrace.testing.trial import Trial, records_of

__all__ = ["ResumingCases"]


class ResumingCases:
    """Several runs of one connector, one after the other."""

    @quick
    def test_a_piece_that_appears_after_the_end_is_read_by_the_next_run(self, trial: Trial) -> None:
        """A second run reads what was added since, and nothing else."""
        trial.add("first", 10)
        trial.run()
        trial.add("second", 10)

        summary = trial.run()

        assert trial.values() == trial.everything()
        assert summary.records == 10

    def test_without_news_nothing_is_read_and_nothing_written(self, trial: Trial) -> None:
        """A run that finds everything done commits nothing: no record, no transaction, the same offsets."""
        trial.add("one", 10)
        trial.run()
        before = trial.entries()

        summary = trial.run()

        assert (summary.records, summary.transactions) == (0, 0)
        assert trial.entries() == before
        assert trial.values() == trial.everything()

    def test_more_tasks_read_only_what_is_new(self, trial: Trial) -> None:
        """With more tasks than before, what is done stays done, whoever had read it."""
        self._rescaled(trial, before="1", after="4")

    @quick
    def test_fewer_tasks_read_only_what_is_new(self, trial: Trial) -> None:
        """With fewer tasks than before, what is done stays done, whoever had read it."""
        self._rescaled(trial, before="4", after="1")

    def test_a_piece_that_failed_half_way_goes_on_where_it_stopped(self, trial: Trial) -> None:
        """What was committed of a piece before its run failed is not read again, whatever the number of tasks is."""
        good = records_of("one", 10)
        trial.harness.add("one", [*good, trial.harness.bad_record])
        trial.add("two", 10)

        failed = [trial.attempt(tasks__max=tasks).state for tasks in ("1", "3", "2")]

        values = trial.values()
        assert failed == ["FAILED"] * 3
        assert [value for value in values if b'"one"' in value] == trial.harness.expected(good)
        assert trial.records_done("one") == 10

    @quick
    def test_an_orderly_stop_half_way_loses_and_doubles_nothing(self, trial: Trial) -> None:
        """A continuous run that is stopped between two pieces commits what it has; the next run reads the rest."""
        for number in range(8):
            trial.add(f"piece-{number}", 10)
        with (
            trial.harness.holding(after=3),
            trial.running(
                transaction__boundary__interval__ms="10", transaction__boundary__max__records="10"
            ) as running,
        ):
            trial.await_values(20)
            stopped = running.stop()

        rest = trial.run()

        assert trial.values() == trial.everything()
        assert stopped.error is None
        assert stopped.records + rest.records == 80
        assert 20 <= stopped.records < 80

    def _rescaled(self, trial: Trial, *, before: str, after: str) -> None:
        for number in range(6):
            trial.add(f"piece-{number}", 10)
        trial.run(tasks__max=before)
        trial.add("piece-6", 10)
        trial.add("piece-7", 10)

        summary = trial.run(tasks__max=after)

        assert sorted(trial.values()) == sorted(trial.everything())
        assert summary.records == 20
        assert len(summary.tasks) == int(after)
