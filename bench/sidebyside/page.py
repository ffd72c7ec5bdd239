"""The tables of docs/performance.md, written between marks into the page that is there."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["COLUMNS", "figures_of", "written"]

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COLUMNS = {
    "records_per_s": "records/s",
    "mb_per_s": "MB/s",
    "records_per_s_from_start": "records/s, from the start",
    "cpu_s_per_million": "CPU s per million",
    "cpu_s_per_million_after_start": "CPU s per million after the start",
    "cpu_s_per_additional_million": "CPU s per additional million",
    "start_s": "start s",
    "tree_mb": "MB, all processes",
    "worker_mb": "MB, largest Python",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
}

SIZES = {
    "quick": " **Little data (`--quick`): shows that it runs, not how fast.**",
    "default": "",
    "full": " With the data of `--full`.",
}


def written(found: Mapping[str, Any], text: str) -> str:
    """The page with new figures; what people wrote around them stays."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"the page has no marks: put {BEGIN} and {END} where the figures belong")
    return f"{before}{BEGIN}\n\n{figures_of(found)}\n{END}{after}"


def figures_of(found: Mapping[str, Any]) -> str:
    """All figures as tables."""
    return "\n".join([*_machine(found), *_goals(found), *_scenarios(found)])


def _machine(found: Mapping[str, Any]) -> Iterator[str]:
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["machine"].items())
    loads = [scenario["load_before"] for scenario in found["scenarios"].values()]
    yield f"Measured: {told}; other load on the machine before each scenario: {min(loads):g} to {max(loads):g}.\n"


def _goals(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| goal | measured | |\n| --- | ---: | --- |"
    for goal in found["goals"]:
        yield f"| {goal['goal']} | {_number(goal['value'])} | {'reached' if goal['reached'] else '**missed**'} |"
    yield ""


def _scenarios(found: Mapping[str, Any]) -> Iterator[str]:
    for name, scenario in found["scenarios"].items():
        rounds = max((row["rounds"] for row in scenario["rows"]), default=1)
        about = f"{scenario['about'][0].upper()}{scenario['about'][1:]}. {_rounds(rounds)}{SIZES[scenario['size']]}"
        yield f"### {name}\n\n{about}\n"
        yield from _table(scenario["rows"])
        yield from _ratios(scenario["ratios"])


def _rounds(rounds: int) -> str:
    return "One round." if rounds == 1 else f"Medians of {rounds} rounds, with the least and the greatest."


def _table(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    names = [name for name in COLUMNS if any(name in row["figures"] for row in rows)]
    yield "| | " + " | ".join(COLUMNS[name] for name in names) + " |\n| --- |" + " ---: |" * len(names)
    for row in rows:
        label = re.sub(r" +", " ", f"{row['engine']} {row['case']}").strip()
        yield f"| {label} | " + " | ".join(_spread(row["figures"].get(name)) for name in names) + " |"
    yield ""


def _ratios(ratios: list[Mapping[str, Any]]) -> Iterator[str]:
    if ratios:
        yield "| ratio | of | |\n| --- | --- | ---: |"
        for ratio in ratios:
            label = " ".join(filter(None, [ratio["name"], ratio["case"] and f"({ratio['case']})"]))
            yield f"| {label} | {COLUMNS[ratio['figure']]} | {_spread(ratio)} |"
        yield ""


def _spread(spread: Mapping[str, float] | None) -> str:
    if spread is None:
        return ""
    middle = _number(spread["median"])
    low, high = _number(spread["low"]), _number(spread["high"])
    return middle if low == high else f"{middle} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits either way
