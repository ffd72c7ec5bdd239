"""The largest Python process, by the size of the one object that it reads."""

from typing import TYPE_CHECKING

from sidebyside.engines import LOCAL, SPARK, headrace
from sidebyside.scenario import Found, Scenario, in_turn, turn
from sidebyside.scenarios.lines import lines_of
from sidebyside.world import World

if TYPE_CHECKING:
    from sidebyside.figures import Row

__all__ = ["SCENARIOS"]

PER_MEGABYTE = 5000


def measured(world: World) -> Found:
    """One object, one task, ever larger."""
    sizes = world.by_size(quick=(1, 4), default=(1, 16, 128, 2048))
    rows: list[Row] = []
    for size in sizes:
        data = world.put(lines_of(1, size * PER_MEGABYTE))
        for engine in (LOCAL, SPARK) if size == max(sizes) and world.size != "quick" else (LOCAL,):
            rows += in_turn(
                world,
                turn(engine, headrace, world, engine, data, tasks=1),
                case=f"{size:,} MB",
                rounds=1,
            ).values()
    return Found(rows=rows)


SCENARIOS = [Scenario(name="memory", about="one object of 1 MB to 2 GB, one task", run=measured)]
