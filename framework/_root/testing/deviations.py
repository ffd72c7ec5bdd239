"""Where a source deviates from the conformance suite: declared with a reason, or refused."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

__all__ = [
    "Deviation",
    "beside_threads_only",
    "cases_of",
    "deviation_of",
    "is_quick",
    "not_supported",
    "on_threads_only",
    "quick",
    "replaces",
    "runs_on",
    "support_matrix",
    "undeclared",
]

C = TypeVar("C", bound=Callable[..., Any])

QUICK = "__quick_case__"
ONLY_ON = "__case_only_on__"
DEVIATION = "__deviation__"
CASE = "test_"


@attrs.frozen
class Deviation:
    """One case that a source does not run as it is: left out, or with a case of its own in its place."""

    reason: str
    replaced: bool = False


def quick(case: C) -> C:
    """Mark a case that is run on every engine also where time is short; the others wait for the slow suite."""
    setattr(case, QUICK, True)
    return case


def on_threads_only(case: C) -> C:
    """Mark a case that is run on threads of the test's process only."""
    setattr(case, ONLY_ON, {"local"})
    return case


def beside_threads_only(case: C) -> C:
    """Mark a case that is not run on threads of the test's process: it compares with that, or kills processes."""
    setattr(case, ONLY_ON, {"spark", "cluster", "processes"})
    return case


def runs_on(case: Callable[..., Any], engine: str) -> bool:
    """Whether a case is run on an engine."""
    return engine in getattr(case, ONLY_ON, {engine})


def is_quick(case: Callable[..., Any]) -> bool:
    """Whether a case is marked as quick."""
    return getattr(case, QUICK, False)


def not_supported(reason: str) -> Callable[[C], C]:
    """Leave a case out: its source cannot do what it asks for, and `reason` says why.

    class TestAmps(SourceConformance):
        @not_supported("a topic has no pieces that end")
        def test_an_empty_piece_is_no_trouble(self) -> None: ...
    """

    def declare(case: C) -> C:
        import pytest  # noqa: PLC0415 - needed where tests are defined only

        setattr(case, DEVIATION, Deviation(reason))
        marked: C = pytest.mark.skip(reason=f"not supported: {reason}")(case)
        return marked

    return declare


def replaces(reason: str) -> Callable[[C], C]:
    """Put a case of one's own in the place of the suite's; `reason` says what is different about the source."""

    def declare(case: C) -> C:
        setattr(case, DEVIATION, Deviation(reason, replaced=True))
        return case

    return declare


def deviation_of(suite: type, case: str) -> Deviation | None:
    """How a source's suite deviates in a case, or None."""
    return getattr(getattr(suite, case), DEVIATION, None)


def undeclared(suite: type, base: type) -> list[str]:
    """The cases of `base` that `suite` overrides without saying why."""
    return [
        name
        for name in cases_of(base)
        if getattr(suite, name) is not getattr(base, name) and deviation_of(suite, name) is None
    ]


def support_matrix(suites: Mapping[str, type]) -> str:
    """What each source's suite holds, as a table in Markdown with the reasons below it."""
    cases = sorted({name for suite in suites.values() for name in cases_of(suite)})
    reasons: list[str] = []
    rows = [
        [name.removeprefix(CASE).replace("_", " "), *(_cell(suite, name, reasons) for suite in suites.values())]
        for name in cases
    ]
    table = [["case", *suites], ["---"] * (len(suites) + 1), *rows]
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([*lines, *([""] if reasons else []), *reasons]) + "\n"


def cases_of(suite: type) -> list[str]:
    """The names of a suite's cases."""
    return [name for name in dir(suite) if name.startswith(CASE) and getattr(suite, name) is not None]


def _cell(suite: type, case: str, reasons: list[str]) -> str:
    if case not in cases_of(suite):
        return ""
    deviation = deviation_of(suite, case)
    if deviation is None:
        return "yes"
    reason = deviation.reason
    known = [number for number, line in enumerate(reasons, 1) if line == f"{number}. {reason}"]
    if not known:
        reasons.append(f"{len(reasons) + 1}. {reason}")
    number = known[0] if known else len(reasons)
    return f"{'its own way' if deviation.replaced else 'no'} ({number})"
