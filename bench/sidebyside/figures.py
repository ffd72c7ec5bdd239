"""From measurements to medians, spreads and ratios."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import attrs

__all__ = ["Measure", "Ratio", "Row", "Spread", "percentile"]

SHORTEST_S = 0.001
"""The broker's clock has milliseconds: what came within one took at most one."""


LEAST = 1e-9
"""What is too little for the sampler to see is no reason to divide by zero."""


@attrs.frozen
class Spread:
    """What several rounds gave: the one in the middle, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """The spread of at least one value."""
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1])

    def as_json(self) -> dict[str, float]:
        """Rounded to what means anything."""
        return {name: _rounded(value) for name, value in attrs.asdict(self).items()}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def percentile(values: Sequence[float], share: float) -> float:
    """The least of `values` that `share` of them do not exceed; there is at least one."""
    found = sorted(values)
    return found[max(0, -int(-share * len(found) // 1) - 1)]


@attrs.frozen(kw_only=True)
class Measure:
    """One run of one engine.

    `flow_s` lies between the broker's first and last append, `start_s` between the start of the process (or of the
    query, in a session that was there) and the first append. The CPU seconds are those of the whole process tree,
    `cpu_start_s` those before the first append; `tree_mb` is the largest sum of resident sizes seen, `worker_mb` the
    largest Python process.
    """

    records: int
    bytes: int
    flow_s: float
    start_s: float
    cpu_s: float = 0.0
    cpu_start_s: float = 0.0
    tree_mb: float = 0.0
    worker_mb: float = 0.0

    def figures(self) -> dict[str, float]:
        """What is reported of it, by name."""
        flow = max(self.flow_s, SHORTEST_S)
        return {
            "records_per_s": self.records / flow,
            "records_per_s_from_start": self.records / (self.start_s + flow),
            "mb_per_s": self.bytes / flow / 1e6,
            "cpu_s_per_million": self.cpu_s / self.records * 1e6,
            "cpu_s_per_million_after_start": max(0.0, self.cpu_s - self.cpu_start_s) / self.records * 1e6,
            "cpu_s": self.cpu_s,
            "start_s": self.start_s,
            "flow_s": self.flow_s,
            "job_s": self.start_s + self.flow_s,
            "tree_mb": self.tree_mb,
            "worker_mb": self.worker_mb,
        }


@attrs.frozen(kw_only=True)
class Row:
    """What the rounds of one engine in one case gave, figure by figure, in the order of the rounds."""

    engine: str
    case: str = ""
    figures: Mapping[str, Sequence[float]]

    @classmethod
    def of(cls, engine: str, measures: Iterable[Measure], *, case: str = "") -> Self:
        """The row of these rounds."""
        rounds = [measure.figures() for measure in measures]
        return cls(engine=engine, case=case, figures={name: [one[name] for one in rounds] for name in rounds[0]})

    def as_json(self) -> dict[str, Any]:
        """Medians with their spread."""
        spreads = {name: Spread.of(values).as_json() for name, values in self.figures.items()}
        rounds = max(len(values) for values in self.figures.values())
        return {"engine": self.engine, "case": self.case, "rounds": rounds, "figures": spreads}


@attrs.frozen(kw_only=True)
class Ratio:
    """One figure of ours over the same of somebody else's: the median of the rounds' own ratios."""

    name: str
    case: str
    figure: str
    spread: Spread

    @classmethod
    def between(cls, ours: Row, theirs: Row, *, figure: str = "records_per_s") -> Self:
        """Round by round, so that what disturbed the machine in one round disturbs both."""
        pairs = zip(ours.figures[figure], theirs.figures[figure], strict=True)
        return cls(
            name=f"{ours.engine} / {theirs.engine}",
            case=ours.case,
            figure=figure,
            spread=Spread.of(one / max(other, LEAST) for one, other in pairs),
        )

    def as_json(self) -> dict[str, Any]:
        """The ratio with its spread."""
        return {"name": self.name, "case": self.case, "figure": self.figure, **self.spread.as_json()}
