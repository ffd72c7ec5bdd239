from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.framework.stop_rule import StopKind, StopRule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("snapshot", StopRule(kind=StopKind.SNAPSHOT)),
        ("position:1526919030474-55", StopRule(kind=StopKind.POSITION, position="1526919030474-55")),
        ("position:a:b", StopRule(kind=StopKind.POSITION, position="a:b")),
        ("time:2026-11-18T09:30:00Z", StopRule(kind=StopKind.TIME, time=datetime(2026, 11, 18, 9, 30, tzinfo=UTC))),
        ("time:2026-11-18", StopRule(kind=StopKind.TIME, time=datetime(2026, 11, 18, tzinfo=UTC))),
        (
            "time:2026-11-18T09:30:00+01:00",
            StopRule(kind=StopKind.TIME, time=datetime(2026, 11, 18, 9, 30, tzinfo=timezone(timedelta(hours=1)))),
        ),
        ("count:100", StopRule(kind=StopKind.COUNT, count=100)),
        ("idle:1500", StopRule(kind=StopKind.IDLE, idle_s=1.5)),
    ],
)
def test_a_rule_is_read(text, rule):
    """Each form of `stop.rule` is the rule that it says; a time without a zone is UTC."""
    assert StopRule.parse(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "snapshot:1",
        "position",
        "position:",
        "time:",
        "time:noon",
        "count:",
        "count:0",
        "count:-1",
        "count:1.5",
        "count:\u0661",
        "idle:0",
        "idle:1s",
        "never",
    ],
)
def test_what_is_no_rule_is_refused(text):
    """Anything else is refused with what it may be."""
    with pytest.raises(ValueError, match=r"must be snapshot, position|which is none"):
        StopRule.parse(text)
