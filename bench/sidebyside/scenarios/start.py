"""How long it takes from the start of a process to the first record on the topic."""

import sys
from typing import TYPE_CHECKING

from sidebyside.engines import LOCAL, PROGRAMS, SPARK, headrace
from sidebyside.figures import Row
from sidebyside.scenario import Found, Scenario
from sidebyside.scenarios.lines import lines_of
from sidebyside.world import World

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SCENARIOS"]

EMPTY = "empty Spark session"


def measured(world: World) -> Found:
    """Ourselves twice, and a Spark session that does nothing, in turn."""
    data = world.put(lines_of(4, 5000))
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(world.rounds):
        spark, empty = headrace(world, SPARK, data).start_s, _empty(world)
        for key, value in (
            ((LOCAL, ""), headrace(world, LOCAL, data).start_s),
            ((SPARK, ""), spark),
            ((EMPTY, ""), empty),
            ((SPARK, "beyond an empty session"), spark - empty),
        ):
            found.setdefault(key, []).append(value)
    for (engine, case), values in found.items():
        world.say(f"  {engine:25} {case:25} {min(values):5.2f} to {max(values):5.2f} s")
    return Found(
        rows=[Row(engine=engine, case=case, figures={"start_s": values}) for (engine, case), values in found.items()]
    )


def _empty(world: World) -> float:
    program: list[str | Path] = [sys.executable, "-P", PROGRAMS / "empty_session.py", "local[2]"]
    process = world.run(program, env={"PYSPARK_PYTHON": sys.executable})
    return next(process.events())["called"] - process.started


SCENARIOS = [
    Scenario(
        name="start",
        about="from the start of the process to the broker's append of the first record; "
        "an empty session: to its first foreachBatch",
        run=measured,
    )
]
