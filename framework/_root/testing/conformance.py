"""What every source is held to, on a real broker and on every engine.

    class TestMySource(SourceConformance):
        @pytest.fixture
        def harness(self):
            with MyHarness() as harness:
                yield harness

A source supplies a `SourceHarness` and inherits the cases; its test file is nearly empty. A case that it cannot
hold is declared with `not_supported(reason)`, one that it holds in another way with `replaces(reason)`; a suite that
overrides a case without either is refused when its class is made. `support_matrix` prints who holds what.

The cases run on threads of the test's process (`local`), on two processes beside it (`processes`), and on a Spark
session on two threads (`spark`); a suite with `engines = ("cluster",)` runs them on a standalone cluster. Where time is
short, run `-m "not slow"`: then all cases run on threads, and only the most important ones elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from headrace.framework.compat import override
from headrace.testing.cases.boundaries import BoundaryCases
from headrace.testing.cases.faults import FaultCases
from headrace.testing.cases.reading import ReadingCases
from headrace.testing.cases.resuming import ResumingCases
from headrace.testing.deviations import (
    cases_of,
    is_quick,
    not_supported,
    replaces,
    runs_on,
    support_matrix,
    undeclared,
)
from headrace.testing.engines import Engine
from headrace.testing.source_harness import SourceHarness
from headrace.testing.trial import Trial, fresh_name

__all__ = ["SourceConformance", "SourceHarness", "Trial", "not_supported", "replaces", "support_matrix"]

SESSIONS = {"spark": "spark_on_threads", "cluster": "spark_on_cluster"}


class SourceConformance(ReadingCases, ResumingCases, FaultCases, BoundaryCases):
    """The suite: inherit it, and supply the fixture `harness`."""

    engines: ClassVar[Sequence[str]] = ("local", "processes", "spark")

    @override
    def __init_subclass__(cls) -> None:
        """Refuse deviations that nobody has declared."""
        super().__init_subclass__()
        if names := undeclared(cls, SourceConformance):
            raise TypeError(f"{cls.__name__} overrides {', '.join(names)} without not_supported(...) or replaces(...)")
        for name in cases_of(cls):
            if not any(runs_on(getattr(cls, name), engine) for engine in cls.engines):
                setattr(cls, name, None)  # pytest would report it as skipped

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each case on each engine."""
        if "engine" not in metafunc.fixturenames:
            return
        case = metafunc.function
        metafunc.parametrize(
            "engine",
            [
                pytest.param(name, marks=() if name == "local" or is_quick(case) else pytest.mark.slow)
                for name in self.engines
                if runs_on(case, name)
            ],
            indirect=True,
        )

    @pytest.fixture
    def harness(self) -> SourceHarness:
        """The source's own; overridden by each suite."""
        raise NotImplementedError(f"{type(self).__name__} has no fixture `harness`")

    @pytest.fixture
    def engine(self, request: pytest.FixtureRequest) -> Engine:
        """The engine of this parametrisation."""
        session = SESSIONS.get(request.param)
        return Engine(request.param, spark=None if session is None else request.getfixturevalue(session))

    @pytest.fixture
    def two_engines(self, engine: Engine) -> Sequence[Engine]:
        """The engine of this parametrisation and the local one: for cases that compare the two."""
        return engine, Engine("local")

    @pytest.fixture
    def trial(
        self, harness: SourceHarness, engine: Engine, kafka_bootstrap_servers: str, request: pytest.FixtureRequest
    ) -> Iterator[Trial]:
        """This test's connector."""
        function: Any = request.function
        yield Trial(
            harness=harness,
            engine=engine,
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(function.__name__.removeprefix("test_")),
        )
        harness.close()
