"""Spark sessions: which are usable, and how one of our own is made."""

import pytest

from headrace.framework.errors import ConfigError
from headrace.framework.spark.session import _with_attempts, refuse_unusable


class ConnectSession:
    """What tells a Spark Connect session from a classic one: there is no JVM behind it in this process."""


class ClassicSession:
    _jsc = object()


def test_a_spark_connect_session_is_refused_with_the_reason():
    """A session without RDDs cannot run source tasks; the error says why and what to use in its place."""
    with pytest.raises(ConfigError, match=r"Spark Connect session.*no RDDs.*--engine local"):
        refuse_unusable(ConnectSession())


def test_a_classic_session_is_taken():
    """A session with a Spark context is usable."""
    refuse_unusable(ClassicSession())


@pytest.mark.parametrize(
    ("master", "made"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,7]", "local[2,7]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_session_survives_the_loss_of_a_worker(master, made):
    """Without a number of attempts Spark's local mode fails with its first lost Python worker, so it gets one."""
    assert _with_attempts(master) == made
