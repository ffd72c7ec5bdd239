"""Records that are decoded and written as JSON, beside a bare loop that does the same with the fastest libraries."""

import functools

from sidebyside.data import Dataset
from sidebyside.engines import BARE, LOCAL, bare, headrace
from sidebyside.scenario import Found, Scenario, in_turn, ratios, turn
from sidebyside.world import World

__all__ = ["SCENARIOS"]

OBJECTS = 10


def measured(world: World, form: str) -> Found:
    """Ourselves and the limit over the same rows in one format."""
    lines = world.by_size(quick=1000, default=25_000, full=100_000)
    data = world.put(Dataset(name=f"{form}-{lines}", objects=OBJECTS, lines=lines, size=200, form=form))
    rows = in_turn(world, turn(BARE, bare, world, data), turn(LOCAL, headrace, world, LOCAL, data))
    return Found(rows=[*rows.values()], ratios=ratios(rows, (LOCAL,), (BARE,)))


ABOUT = {
    "parsed": ("json", "elements of JSON arrays, each parsed and written again; the bare loop uses orjson for both"),
    "csv": ("csv", "rows of CSV files as JSON; the bare loop uses csv and orjson"),
    "avro": ("avro", "rows of Avro files, deflated, as JSON; the bare loop uses fastavro and orjson"),
    "parquet": ("parquet", "rows of Parquet files as JSON; the bare loop uses pyarrow and orjson"),
}
SCENARIOS = [
    Scenario(name=name, about=about, run=functools.partial(measured, form=form))
    for name, (form, about) in ABOUT.items()
]
