"""A million lines of JSON, everybody in turn; and what one more million costs."""

from sidebyside.data import Dataset
from sidebyside.engines import BARE, LOCAL, ON_FILES, SPARK, bare, headrace, headrace_files
from sidebyside.figures import Row
from sidebyside.peer_connect import CONNECT, file_stream
from sidebyside.peer_spark import FILES_WARM, WARM, spark_text, spark_text_files
from sidebyside.scenario import Found, Scenario, in_turn, ratios, turn
from sidebyside.world import World

__all__ = ["SCENARIOS", "lines_of"]

MOST_MADE_BYTES = 1_200_000_000
LARGEST_MADE_BYTES = 500_000_000
SLOPE_ROUNDS = 3


def lines_of(objects: int, lines: int, size: int = 200) -> Dataset:
    """So many objects of so many lines; what the server of made objects cannot keep is put into S3."""
    each = lines * (size + 1)
    made = objects * each < MOST_MADE_BYTES and each < LARGEST_MADE_BYTES
    kind = "made" if made else "lines"
    return Dataset(name=f"{kind}-{objects}x{lines}x{size}", objects=objects, lines=lines, size=size, made=made)


def million(world: World) -> Found:
    """Everybody over the same million from S3, and over local files who can; Connect's source reads nothing else."""
    data = world.put(world.by_size(quick=lines_of(4, 5000), default=lines_of(20, 50_000)))
    peers = [
        lambda: spark_text(world, data),
        lambda: spark_text_files(world, data),
        turn(CONNECT, file_stream, world, data),
    ]
    rows = in_turn(
        world,
        turn(BARE, bare, world, data),
        turn(LOCAL, headrace, world, LOCAL, data),
        turn(SPARK, headrace, world, SPARK, data),
        *(turn(name, headrace_files, world, engine, data) for engine, name in ON_FILES.items()),
        *(peers if world.peers else []),
    )
    on_s3 = ratios(rows, (LOCAL, SPARK), (BARE, WARM, CONNECT))
    on_files = ratios(rows, ON_FILES.values(), (BARE, FILES_WARM, CONNECT))
    return Found(rows=[*rows.values()], ratios=[*on_s3, *on_files])


def slope(world: World) -> Found:
    """The difference between little and much, so that neither the start nor the end of a process counts."""
    few = world.put(world.by_size(quick=lines_of(4, 5000), default=lines_of(20, 50_000)))
    many = world.put(world.by_size(quick=lines_of(8, 5000), default=lines_of(100, 50_000)))
    found: dict[str, list[float]] = {BARE: [], LOCAL: []}
    for _ in range(min(world.rounds, SLOPE_ROUNDS)):
        for data, sign in ((few, -1), (many, 1)):
            for name, one in ((BARE, bare(world, data)), (LOCAL, headrace(world, LOCAL, data))):
                if sign < 0:
                    found[name].append(0.0)
                found[name][-1] += sign * one.cpu_s / (many.records - few.records) * 1e6
    for name, values in found.items():
        world.say(f"  {name:25} {min(values):.2f} to {max(values):.2f} CPU s for an additional million")
    return Found(rows=[Row(engine=name, figures={COST: values}) for name, values in found.items()])


COST = "cpu_s_per_additional_million"
SCENARIOS = [
    Scenario(name="lines", about="JSON lines of 200 bytes from 20 objects, two tasks or cores", run=million),
    Scenario(
        name="slope",
        about="CPU seconds for an additional million lines of 200 bytes, between one million and five",
        run=slope,
    ),
]
