"""Many small objects: listing, requests and offsets are the work."""

from sidebyside.data import Dataset
from sidebyside.engines import BARE, LOCAL, ON_FILES, SPARK, bare, headrace, headrace_files
from sidebyside.figures import Measure
from sidebyside.goals import FROM_START
from sidebyside.peer_spark import COLD, WARM, spark_text
from sidebyside.scenario import FIGURES, Found, Scenario, in_turn, ratios, turn
from sidebyside.world import World

__all__ = ["SCENARIOS", "small_objects"]

LINES = 5


def small_objects(objects: int) -> Dataset:
    """So many objects of five lines, a kilobyte each, which nobody has to put anywhere."""
    return Dataset(name=f"made-{objects}x{LINES}x200", objects=objects, lines=LINES, size=200, made=True)


def measured(world: World) -> Found:
    """Everybody over the same objects, once: Spark's own stream has them as local files, and so have we beside S3."""
    data = small_objects(world.by_size(quick=200, default=20_000))

    def spark() -> dict[str, Measure]:
        return dict(zip((COLD, WARM), spark_text(world, data), strict=True))

    rows = in_turn(
        world,
        turn(BARE, bare, world, data),
        turn(LOCAL, headrace, world, LOCAL, data),
        turn(SPARK, headrace, world, SPARK, data),
        *(turn(name, headrace_files, world, engine, data) for engine, name in ON_FILES.items()),
        *([spark] if world.peers else []),
        rounds=1,
    )
    ours = (LOCAL, SPARK, *ON_FILES.values())
    return Found(rows=[*rows.values()], ratios=ratios(rows, ours, (BARE, WARM), figures=(*FIGURES, FROM_START)))


SCENARIOS = [Scenario(name="small", about="20,000 objects of a kilobyte, five lines each", run=measured)]
