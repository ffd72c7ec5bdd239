"""What becomes visible together."""

import itertools

from headrace.testing.deviations import quick
from headrace.testing.trial import Trial, records_of

__all__ = ["BoundaryCases"]


class BoundaryCases:
    """The boundaries of transactions, and pieces that change."""

    @quick
    def test_each_object_becomes_visible_as_a_whole(self, trial: Trial) -> None:
        """With the object boundary every piece is one transaction, whatever its size."""
        for piece, count in (("one", 30), ("two", 1), ("three", 200)):
            trial.add(piece, count)

        trial.run(transaction__boundary="object", max__poll__records="5", transaction__boundary__max__records="5")

        expected = [trial.harness.expected(records) for records in trial.pieces.values()]
        assert sorted(trial.transactions()) == sorted(expected)

    def test_nothing_of_a_bad_object_becomes_visible(self, trial: Trial) -> None:
        """With the object boundary a bad record hides its whole piece, which has no progress; pieces before it stay."""
        trial.add("a-good", 10)
        trial.harness.add("b-bad", [*records_of("b-bad", 10), trial.harness.bad_record])

        summary = trial.attempt(transaction__boundary="object")

        assert summary.state == "FAILED"
        assert trial.values() == trial.everything()
        assert trial.records_done("b-bad") == 0

    def test_poll_ends_a_transaction_once_it_has_the_records_of_a_poll(self, trial: Trial) -> None:
        """With the poll boundary a transaction ends with the batch that brings it to max.poll.records."""
        for number in range(6):
            trial.add(f"piece-{number}", 10)

        trial.run(transaction__boundary="poll", max__poll__records="20")

        cut = trial.transactions()
        assert list(itertools.chain(*cut)) == trial.everything()
        assert len(cut) >= 3

    def test_an_overwritten_piece_is_read_again(self, trial: Trial) -> None:
        """Policy reread: another version of a piece is read from its first record, once."""
        old, new = self._overwritten(trial, "reread")

        assert trial.values() == [*old, *new]
        assert trial.records_done("one") == len(new)
        assert trial.run(**self._policy(trial, "reread")).records == 0

    def test_an_overwritten_piece_is_left_out(self, trial: Trial) -> None:
        """Policy ignore: another version of a piece is not read, the summary says so, and new pieces are read."""
        trial.add("other", 5)
        old, _ = self._overwritten(trial, "ignore")

        summary = trial.run(**self._policy(trial, "ignore"))

        assert sorted(trial.values()) == sorted([*old, *trial.harness.expected(trial.pieces["other"])])
        assert summary.skipped == 1
        assert any("one" in warning for warning in summary.warnings)

    def test_an_overwritten_piece_fails_the_run(self, trial: Trial) -> None:
        """Policy fail: another version of a piece ends the run with its name, and nothing of it is read."""
        trial.add("one", 10)
        trial.run()
        trial.harness.change("one", records_of("changed", 7))

        summary = trial.attempt(**self._policy(trial, "fail"))

        assert summary.state == "FAILED"
        assert "one" in (summary.error or "")
        assert trial.values() == trial.everything()

    def _overwritten(self, trial: Trial, policy: str) -> tuple[list[bytes], list[bytes]]:
        trial.add("one", 10)
        trial.run(**self._policy(trial, policy))
        changed = records_of("changed", 7)
        trial.harness.change("one", changed)
        trial.run(**self._policy(trial, policy))
        return trial.harness.expected(trial.pieces["one"]), trial.harness.expected(changed)

    def _policy(self, trial: Trial, policy: str) -> dict[str, str]:
        return dict(trial.harness.overwrite_policy(policy))
