"""Deviations from the conformance suite are declared, or refused."""

import pytest

from headrace.testing.conformance import SourceConformance
from headrace.testing.deviations import not_supported, replaces, support_matrix, undeclared


class Suite:
    def test_one(self):
        """One."""

    def test_two_of_them(self):
        """Two."""


class Deviating(Suite):
    @not_supported("it has no end")
    def test_one(self):
        """Left out."""

    @replaces("it counts from one")
    def test_two_of_them(self):
        """In its own way."""


class Silent(Suite):
    def test_one(self):
        """Overridden without a word."""


def test_an_override_without_a_reason_is_found():
    """A case that is overridden without a declaration is undeclared; a declared one is not."""
    assert undeclared(Silent, Suite) == ["test_one"]
    assert undeclared(Deviating, Suite) == []


def test_a_suite_with_a_silent_override_is_refused():
    """A conformance suite that overrides a case without a reason cannot be defined."""
    with pytest.raises(TypeError, match="overrides test_an_empty_piece_is_no_trouble without not_supported"):

        class Silently(SourceConformance):
            def test_an_empty_piece_is_no_trouble(self):
                """Nothing."""


def test_a_case_that_is_not_supported_is_skipped_with_its_reason():
    """The reason stands in the skip, so that a report shows it."""
    (mark,) = Deviating.test_one.pytestmark
    assert (mark.name, mark.kwargs["reason"]) == ("skip", "not supported: it has no end")


def test_the_support_matrix_names_every_case_and_every_reason():
    """Who holds what, as a table with the reasons below it, each once."""
    assert support_matrix({"whole": Suite, "other": Deviating}).splitlines() == [
        "| case | whole | other |",
        "| --- | --- | --- |",
        "| one | yes | no (1) |",
        "| two of them | yes | its own way (2) |",
        "",
        "1. it has no end",
        "2. it counts from one",
    ]
