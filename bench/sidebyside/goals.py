"""What the project wants to reach, and whether a run has."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

__all__ = ["Goal", "goals"]


@attrs.frozen
class Goal:
    """A figure that is to be at least, or at most, so much."""

    goal: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def reached(self) -> bool:
        """Whether it is."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    def as_json(self) -> dict[str, Any]:
        """The goal, the value and the verdict."""
        return {"goal": self.goal, "value": float(f"{self.value:.4g}"), "reached": self.reached}


FROM_START = "records_per_s_from_start"
RATIOS = {
    ("lines", "headrace local / bare loop", "records_per_s"): 0.8,
    ("lines", "headrace spark / bare loop", "records_per_s"): 0.8,
    ("lines", "headrace local / Spark text, warm", "records_per_s"): 2.0,
    ("lines", "headrace spark / Spark text, warm", "records_per_s"): 2.0,
    ("lines", "headrace local / Connect FileStreamSource", "records_per_s"): 2.0,
    ("lines", "headrace spark / Connect FileStreamSource", "records_per_s"): 2.0,
    ("lines", "headrace spark, files / Spark text, files, warm", "records_per_s"): 2.0,
    ("small", "headrace local / Spark text, warm", "records_per_s"): 3.0,
    ("small", "headrace spark / Spark text, warm", "records_per_s"): 3.0,
    ("small", "headrace local, files / Spark text, files, warm", "records_per_s"): 3.0,
    ("small", "headrace spark, files / Spark text, files, warm", "records_per_s"): 3.0,
    ("small", "headrace local / Spark text, warm", FROM_START): 3.0,
    ("small", "headrace spark / Spark text, warm", FROM_START): 3.0,
    ("small", "headrace local, files / Spark text, files, warm", FROM_START): 3.0,
    ("small", "headrace spark, files / Spark text, files, warm", FROM_START): 3.0,
    ("parsed", "headrace local / bare loop", "records_per_s"): 0.8,
    ("csv", "headrace local / bare loop", "records_per_s"): 0.8,
    ("avro", "headrace local / bare loop", "records_per_s"): 0.8,
    ("parquet", "headrace local / bare loop", "records_per_s"): 0.8,
}
LIMITS = {
    ("slope", "headrace local", "", "cpu_s_per_additional_million"): 2.0,
    ("latency", "headrace local", "S3, default", "p50_ms"): 2000,
    ("latency", "headrace local", "S3, default", "p99_ms"): 6000,
    ("latency", "headrace local", "S3, tuned", "p50_ms"): 800,
    ("latency", "headrace spark", "S3, default", "p50_ms"): 2000,
    ("latency", "headrace spark", "S3, default", "p99_ms"): 6000,
    ("latency", "headrace spark", "S3, tuned", "p50_ms"): 800,
    ("latency", "headrace local", "Redis, default", "p50_ms"): 300,
    ("latency", "headrace spark", "Redis, default", "p50_ms"): 300,
    ("latency", "headrace local", "Redis, tuned", "p50_ms"): 300,
    ("latency", "headrace spark", "Redis, tuned", "p50_ms"): 300,
    ("start", "headrace local", "", "start_s"): 1.5,
    ("start", "headrace spark", "beyond an empty session", "start_s"): 2.0,
}
WORKER_MB = 250


def goals(scenarios: Mapping[str, Any]) -> list[Goal]:
    """The goals of which these scenarios say something."""
    return [*_of_ratios(scenarios), *_of_limits(scenarios), *_of_memory(scenarios)]


def _of_ratios(scenarios: Mapping[str, Any]) -> Iterator[Goal]:
    for (scenario, name, figure), least in RATIOS.items():
        for ratio in scenarios.get(scenario, {}).get("ratios", ()):
            if (ratio["name"], ratio["figure"]) == (name, figure):
                told = ", from the start" if figure == FROM_START else ""
                yield Goal(f"{scenario}: {name}{told} ≥ {least:g}", ratio["median"], at_least=least)


def _of_limits(scenarios: Mapping[str, Any]) -> Iterator[Goal]:
    for (scenario, engine, case, figure), most in LIMITS.items():
        for row in scenarios.get(scenario, {}).get("rows", ()):
            if (row["engine"], row["case"]) == (engine, case) and figure in row["figures"]:
                told = " ".join(filter(None, [engine, case and f"({case})", figure]))
                yield Goal(f"{scenario}: {told} ≤ {most:g}", row["figures"][figure]["median"], at_most=most)


def _of_memory(scenarios: Mapping[str, Any]) -> Iterator[Goal]:
    for row in scenarios.get("memory", {}).get("rows", ()):
        largest = row["figures"]["worker_mb"]["high"]
        yield Goal(f"memory: {row['engine']} ({row['case']}) worker MB ≤ {WORKER_MB}", largest, at_most=WORKER_MB)
