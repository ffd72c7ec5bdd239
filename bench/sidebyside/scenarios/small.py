"""Many small objects: listing, requests and offsets are the work."""

from sidebyside.data import Dataset
from sidebyside.engines import BARE, LOCAL, ON_FILES, SPARK, bare, headrace, headrace_files
from sidebyside.goals import FROM_START
from sidebyside.peer_spark import FILES_WARM, WARM, spark_text, spark_text_files
from sidebyside.scenario import FIGURES, Found, Scenario, in_turn, ratios, turn
from sidebyside.scenarios.lines import lines_of
from sidebyside.world import World

__all__ = ["SCENARIOS", "small_objects"]

LINES = 5


def small_objects(objects: int) -> Dataset:
    """So many objects of five lines, a kilobyte each."""
    return lines_of(objects, LINES)


def measured(world: World) -> Found:
    """Everybody over the same objects, once: from S3, and as local files who can."""
    data = world.put(small_objects(world.by_size(quick=200, default=20_000)))
    peers = [lambda: spark_text(world, data), lambda: spark_text_files(world, data)]
    rows = in_turn(
        world,
        turn(BARE, bare, world, data),
        turn(LOCAL, headrace, world, LOCAL, data),
        turn(SPARK, headrace, world, SPARK, data),
        *(turn(name, headrace_files, world, engine, data) for engine, name in ON_FILES.items()),
        *(peers if world.peers else []),
        rounds=1,
    )
    figures = (*FIGURES, FROM_START)
    on_s3 = ratios(rows, (LOCAL, SPARK), (BARE, WARM), figures=figures)
    on_files = ratios(rows, ON_FILES.values(), (BARE, FILES_WARM), figures=figures)
    return Found(rows=[*rows.values()], ratios=[*on_s3, *on_files])


SCENARIOS = [Scenario(name="small", about="20,000 objects of a kilobyte, five lines each", run=measured)]
