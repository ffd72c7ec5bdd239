"""The object boundary where objects go or change while they are read: whole or not at all."""

import pytest

from headrace.testing import S3Harness
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import CutBody, Meanwhile, Pass
from headrace.testing.trial import Trial, fresh_name, records_of

MANY = 10_000
"""Records enough for an object to be given out in several pieces."""

HALF = 200_000
"""Bytes after which the connection breaks: records have been given out by then, and more are to come."""


@pytest.fixture
def trial(s3_endpoint, kafka_bootstrap_servers, request):
    with S3Harness(s3_endpoint) as harness:
        trial = Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
        )
        trial.add("a-before", 20)
        trial.add("b-half", MANY)
        trial.add("c-after", 20)
        yield trial


def in_the_middle(trial, action):
    """Have the connection break in the middle of the second object, and something happen before it goes on."""
    trial.harness.faulty.script(Pass(), CutBody(HALF), Meanwhile(action))


def delete(trial):
    return lambda: trial.harness.client.delete_object(Bucket=trial.harness.bucket, Key="b-half")


def expected(trial, *pieces):
    return [trial.harness.expected(trial.pieces[piece]) for piece in pieces]


def test_an_object_that_goes_while_it_is_read_is_left_out_as_a_whole(trial):
    """With data.loss=continue nothing of it becomes visible, the summary says so, and the others are there."""
    in_the_middle(trial, delete(trial))

    summary = trial.run(transaction__boundary="object", data__loss="continue")

    assert trial.transactions() == expected(trial, "a-before", "c-after")
    assert summary.skipped == 1
    assert any("b-half" in warning for warning in summary.warnings)


def test_an_object_that_goes_while_it_is_read_fails_the_run(trial):
    """With data.loss=fail the run names it and fails, and nothing of it becomes visible."""
    in_the_middle(trial, delete(trial))

    summary = trial.attempt(transaction__boundary="object", data__loss="fail")

    assert summary.state == "FAILED"
    assert "b-half" in summary.error
    assert trial.transactions() == expected(trial, "a-before")


def test_an_object_that_is_overwritten_while_it_is_read_is_read_again_as_a_whole(trial):
    """What becomes visible is the new version, in one transaction with nothing of the old one."""
    changed = records_of("changed", 7)
    in_the_middle(trial, lambda: trial.put("b-half", changed))

    trial.run(transaction__boundary="object")

    assert trial.transactions() == expected(trial, "a-before", "b-half", "c-after")
    assert trial.records_done("b-half") == 7


def test_an_object_that_is_left_out_for_its_overwriting_is_told_of(trial):
    """With the policy ignore an object that is overwritten half-way is left out from there on, with a word."""
    in_the_middle(trial, lambda: trial.put("b-half", records_of("changed", 7)))
    old = expected(trial, "b-half")[0]

    summary = trial.run(s3__overwrite__policy="ignore", max__poll__records="1", transaction__boundary="poll")

    seen = trial.values()
    assert seen[:20] + seen[-20:] == [value for piece in expected(trial, "a-before", "c-after") for value in piece]
    assert 0 < len(seen) - 40 < MANY
    assert seen[20:-20] == old[: len(seen) - 40]
    assert summary.skipped == 1
    assert any("b-half" in warning and "overwritten" in warning for warning in summary.warnings)
