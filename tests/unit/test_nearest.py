"""Which known word somebody may have meant."""

import pytest

from headrace.framework.nearest import near_miss, nearest

KNOWN = ["tasks.max", "topic", "transaction.boundary", "bootstrap.servers", "aws.s3.bucket.name"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("task.max", "tasks.max"),
        ("taskx.max", "tasks.max"),
        ("tasks.mxa", "tasks.max"),
        ("tasks_max", "tasks.max"),
        ("tasksMax", "tasks.max"),
        ("topics", "topic"),
        ("transactoin.bondary", "transaction.boundary"),
        ("bootstrap.server", "bootstrap.servers"),
    ],
)
def test_a_slip(word, meant):
    """A letter or two wrong, missing, too many or swapped, or other separators, is a slip in a known word."""
    assert near_miss(word, KNOWN) == meant
    assert nearest(word, KNOWN) == meant


@pytest.mark.parametrize("word", ["numbers.count", "tunic", "tasks", "transaction.flavour", ""])
def test_no_slip(word):
    """A word of its own is none, and short words are less alike than long ones with the same difference."""
    assert near_miss(word, KNOWN) is None


def test_the_nearest_is_more_forgiving():
    """Where any word is better than none, one that is somewhat like it is found, and nothing for nonsense."""
    assert nearest("bucket.name", KNOWN) == "aws.s3.bucket.name"
    assert nearest("zzz", KNOWN) is None
