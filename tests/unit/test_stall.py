"""What does not get on: how often that is said, and in which words."""

import pytest

from headrace.framework.driver.stall import Stall


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now

    def time(self):
        return 1_700_000_000 + self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("headrace.framework.driver.stall.time", clock)
    return clock


def words(caplog):
    return [record.message for record in caplog.records]


def test_it_is_said_at_least_every_half_minute(clock, caplog):
    """A stall is in the log every thirty seconds, however often it fails, and in the warnings once."""
    warnings = []
    stall = Stall("orders", "task 0", warnings.append)
    for clock.now in range(100):
        stall.failed("the source is away")

    word = "task 0 stalled since 2023-11-14T22:13:20Z because the source is away"
    assert words(caplog) == ["orders: the source is away; trying again", *[f"orders: {word}"] * 3]
    assert warnings == [word]
    assert stall.word == word


def test_a_short_one_is_no_warning(clock, caplog):
    """What is mended within seconds is in the log once, and in no summary."""
    warnings = []
    stall = Stall("orders", "task 0", warnings.append)
    stall.failed("hiccup")
    clock.now = 5
    stall.failed("hiccup")
    word = stall.word
    stall.over()

    assert (word, warnings, words(caplog)) == (None, [], ["orders: hiccup; trying again"])


def test_another_stall_is_another_warning(clock, caplog):
    """When it gets on the log says so; what begins later has a time and a reason of its own."""
    warnings = []
    stall = Stall("orders", "task 0", warnings.append)
    stall.failed("one", lasted_s=15)
    stall.over()
    between = stall.word
    clock.now = 60
    lasted_s = stall.failed("two", lasted_s=20)

    assert "orders: task 0 gets on again" in words(caplog)
    assert between is None
    assert lasted_s == 20
    assert warnings == [
        "task 0 stalled since 2023-11-14T22:13:05Z because one",
        "task 0 stalled since 2023-11-14T22:14:00Z because two",
    ]
