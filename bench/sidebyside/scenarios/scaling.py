"""How the speed changes with tasks, with the size of objects and of records, and with the number of objects."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sidebyside.data import Dataset
from sidebyside.engines import BARE, LOCAL, SPARK, bare, headrace
from sidebyside.scenario import Found, Scenario, in_turn, ratios, turn
from sidebyside.scenarios.lines import lines_of
from sidebyside.scenarios.small import small_objects
from sidebyside.world import World

if TYPE_CHECKING:
    from sidebyside.figures import Ratio, Row

__all__ = ["SCENARIOS"]

KILO, MEGA = 1000, 1_000_000


def _compared(world: World, cases: Iterable[tuple[str, Dataset, int]]) -> Found:
    """Ourselves without Spark beside the limit, once in each case."""
    rows: list[Row] = []
    found: list[Ratio] = []
    for case, data, tasks in cases:
        world.put(data)
        both = in_turn(
            world,
            turn(BARE, bare, world, data, tasks=tasks),
            turn(LOCAL, headrace, world, LOCAL, data, tasks=tasks),
            case=case,
            rounds=1,
        )
        rows += both.values()
        found += ratios(both, (LOCAL,), (BARE,), figures=("records_per_s",))
    return Found(rows=rows, ratios=found)


def by_tasks(world: World) -> Found:
    """One, two and four tasks, without Spark and on it."""
    data = world.put(world.by_size(quick=lines_of(4, 5000), default=lines_of(20, 50_000)))
    counts = world.by_size(quick=(1, 2), default=(1, 2, 4))
    found = _compared(world, [(f"{tasks} tasks", data, tasks) for tasks in counts])
    if world.size == "quick":
        return found
    spark: list[Row] = []
    for tasks in counts:
        case = f"{tasks} tasks"
        spark += in_turn(
            world,
            turn(SPARK, headrace, world, SPARK, data, tasks=tasks),
            case=case,
            rounds=1,
        ).values()
    return Found(rows=[*found.rows, *spark], ratios=found.ratios)


def by_object_size(world: World) -> Found:
    """Objects of a kilobyte to a gigabyte, a hundred megabytes in all where that is possible."""
    cases = {
        "1 KB objects": small_objects(world.by_size(quick=50, default=5000, full=20_000)),
        "10 KB objects": lines_of(world.by_size(quick=5, default=1000, full=5000), 50),
        "100 KB objects": lines_of(world.by_size(quick=2, default=500, full=1000), 500),
        "1 MB objects": lines_of(world.by_size(quick=1, default=100), 5000),
        "10 MB objects": lines_of(world.by_size(quick=0, default=10), 50_000),
        "100 MB objects": lines_of(world.by_size(quick=0, default=2), 500_000),
        "1 GB objects": lines_of(world.by_size(quick=0, default=1), 5_000_000),
    }
    return _compared(world, [(case, data, 2) for case, data in cases.items() if data.objects])


def by_record_size(world: World) -> Found:
    """Records of fifty bytes to a hundred kilobytes."""
    total = world.by_size(quick=MEGA, default=100 * MEGA)
    cases = []
    for size in (50, 200, KILO, 10 * KILO, 100 * KILO):
        records = min(total // size, MEGA)
        cases.append((f"{size:,} B records", lines_of(4, max(1, records // 4), size), 2))
    return _compared(world, cases)


def by_objects(world: World) -> Found:
    """Ten to a hundred thousand objects of a kilobyte."""
    counts = world.by_size(
        quick=(10, 100), default=(10, 100, 1000, 10_000, 100_000), full=(10, 100, 1000, 10_000, 20_000, 100_000)
    )
    return _compared(world, [(f"{count:,} objects", small_objects(count), 2) for count in counts])


SCENARIOS = [
    Scenario(name="tasks", about="a million lines of 200 bytes by one, two and four tasks", run=by_tasks),
    Scenario(name="object-size", about="lines of 200 bytes in objects of 1 KB to 1 GB", run=by_object_size),
    Scenario(name="record-size", about="lines of 50 bytes to 100 KB in four objects", run=by_record_size),
    Scenario(name="objects", about="10 to 100,000 objects of a kilobyte", run=by_objects),
]
