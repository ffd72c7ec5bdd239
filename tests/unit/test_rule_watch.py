"""When a source is idle, and when it only looks like that."""

import pytest

from headrace.framework.driver.rule_watch import RuleWatch, Signs
from headrace.framework.stop_rule import StopRule

QUIET = Signs(records=0)


class Clock:
    """Goes on when the test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watch(clock):
    return RuleWatch(StopRule.parse("idle:1000"), clock=clock)


def look(watch, clock, after_s, signs):
    clock.now += after_s
    watch.look(signs)
    return watch.met


def test_a_second_without_anything_is_idle(watch, clock):
    """The time adds up over looks; a record begins it anew."""
    assert not look(watch, clock, 0.75, QUIET)
    assert not look(watch, clock, 0.75, Signs(records=1))
    assert not look(watch, clock, 0.5, Signs(records=1))
    assert look(watch, clock, 0.5, Signs(records=1))


def test_a_stall_is_none(watch, clock):
    """While something does not get on nothing is idle, and afterwards the time begins anew."""
    assert not look(watch, clock, 0.75, QUIET)
    assert not look(watch, clock, 60, Signs(records=0, stalled=True))
    assert not look(watch, clock, 0.75, QUIET)
    assert look(watch, clock, 0.25, QUIET)


def test_the_clock_stands_still_while_something_is_read(watch, clock):
    """What is in hand may take as long as it likes; the quiet before and after it adds up."""
    assert not look(watch, clock, 0.75, QUIET)
    assert not look(watch, clock, 60, Signs(records=0, busy=True))
    assert look(watch, clock, 0.25, QUIET)


def test_it_is_not_met_while_nobody_is_sure(watch, clock):
    """A look at the source that takes long counts once it has brought nothing, and ends nothing before that."""
    assert not look(watch, clock, 60, Signs(records=0, unsure=True))
    assert look(watch, clock, 0, QUIET)


def test_records_that_show_late_are_waited_for(clock):
    """Where transactions last as long as the rule's time, what comes all the time is no idleness."""
    watch = RuleWatch(StopRule.parse("idle:1000"), 60.0, clock)
    assert not look(watch, clock, 60, QUIET)
    assert look(watch, clock, 1, QUIET)


def test_a_met_rule_stays_met(watch, clock):
    """What comes after the end changes nothing."""
    assert look(watch, clock, 1, QUIET)
    assert look(watch, clock, 0, Signs(records=5, stalled=True))


def test_a_count_is_a_count(clock):
    """Whatever else goes on, `count` looks at records alone, and says how many are left."""
    watch = RuleWatch(StopRule.parse("count:10"), clock=clock)
    assert not look(watch, clock, 60, Signs(records=4))
    assert (watch.left(), watch.patience_s()) == (6, None)
    assert look(watch, clock, 0, Signs(records=10, stalled=True, busy=True, unsure=True))
