"""What a scenario is, what it finds, and how everybody gets a turn in it."""

from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from sidebyside.figures import Measure, Ratio, Row
from sidebyside.world import World

__all__ = ["FIGURES", "Found", "Scenario", "in_turn", "ratios", "turn"]

FIGURES = ("records_per_s", "cpu_s_per_million_after_start")
Turn = Callable[[], Mapping[str, Measure]]


@attrs.frozen(kw_only=True)
class Found:
    """What a scenario found."""

    rows: Sequence[Row]
    ratios: Sequence[Ratio] = ()


@attrs.frozen(kw_only=True)
class Scenario:
    """One thing to measure; `about` says in a sentence what is done."""

    name: str
    about: str
    run: Callable[[World], Found]


def turn(name: str, run: Callable[..., Measure], *arguments: object, **options: object) -> Turn:
    """The turn of one engine: a run of it, under its name."""
    return lambda: {name: run(*arguments, **options)}


def in_turn(world: World, *turns: Turn, case: str = "", rounds: int = 0) -> dict[str, Row]:
    """Rounds, those of the run unless told otherwise, in which everybody has a turn: a row for each engine."""
    measures: dict[str, list[Measure]] = {}
    for number in range(min(rounds, world.rounds) or world.rounds):
        for turn in turns:
            for name, one in turn().items():
                measures.setdefault(name, []).append(one)
                world.say(_told(number + 1, name, case, one))
    return {name: Row.of(name, found, case=case) for name, found in measures.items()}


def _told(number: int, name: str, case: str, one: Measure) -> str:
    figures = one.figures()
    return (
        f"  {number} {name:25} {case:20} {figures['records_per_s']:>10,.0f} records/s {figures['mb_per_s']:6.1f} MB/s "
        f"{figures['cpu_s_per_million']:8.2f} CPU s/M  start {one.start_s:5.1f} s  {one.tree_mb:5.0f} MB"
    )


def ratios(
    rows: Mapping[str, Row], ours: Collection[str], theirs: Collection[str], *, figures: Sequence[str] = FIGURES
) -> list[Ratio]:
    """Each of ours over each of theirs, as far as they took part: in speed, and in what it costs."""
    return [
        Ratio.between(rows[one], rows[other], figure=figure)
        for figure in figures
        for other in theirs
        if other in rows
        for one in ours
        if one in rows
    ]
