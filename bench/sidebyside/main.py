"""The command: choose, measure, save, draw."""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from sidebyside import page, svg
from sidebyside.engines import bare
from sidebyside.goals import goals
from sidebyside.memory_at_hand import memory_at_hand
from sidebyside.scenario import Scenario
from sidebyside.scenarios import scenarios
from sidebyside.scenarios.lines import lines_of
from sidebyside.world import world

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".bench"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance.svg"


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the arguments say."""
    known = scenarios()
    parser = argparse.ArgumentParser(
        prog="make bench ARGS=...",
        description="Headrace beside its peers and its limit, on one broker and the same data, in turn.",
        epilog="\n".join(f"  {one.name:12} {one.about}" for one in known.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help="which ones; all of them without any")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="little data, one round: shows that it runs, not how fast")
    size.add_argument("--full", action="store_true", help="more data: an hour")
    parser.add_argument("--rounds", type=int, help="of each (5; 1 with --quick)")
    parser.add_argument("--no-peers", action="store_true", help="without Spark's own pipeline and Kafka Connect")
    parser.add_argument("--out", type=Path, help="folder of results.json and .svg (.bench; quick and full ones below)")
    parser.add_argument(
        "--write-page", action="store_true", help="write docs/performance.md from results.json, and end"
    )
    chosen = parser.parse_args(arguments)
    how = "quick" if chosen.quick else "full" if chosen.full else "default"
    results = (chosen.out or RESULTS / ("" if how == "default" else how)) / "results.json"
    if chosen.write_page:
        found = json.loads(results.read_text())
        PAGE.write_text(page.written(found, PAGE.read_text()))
        PICTURE.write_text(svg.picture(found))
        return
    if unknown := [name for name in chosen.scenarios if name not in known]:
        parser.error(f"there is no scenario {', '.join(unknown)}: choose of {', '.join(known)}")
    wanted = [known[name] for name in chosen.scenarios or known]
    found = measured(wanted, size=how, rounds=chosen.rounds or (1 if chosen.quick else 5), peers=not chosen.no_peers)
    save(found, results, keep=bool(chosen.scenarios))


def measured(wanted: Sequence[Scenario], *, size: str, rounds: int, peers: bool) -> dict[str, Any]:
    """The scenarios' findings, with the machine that they are of."""
    found: dict[str, Any] = {"machine": machine(), "scenarios": {}}
    with (
        nullcontext() if size == "quick" else memory_at_hand(),
        world(rounds=rounds, size=size, peers=peers, say=say) as servers,
    ):
        say("warming the broker")
        bare(servers, servers.put(servers.by_size(quick=lines_of(4, 5000), default=lines_of(20, 50_000))))
        for one in wanted:
            say(f"{one.name}: {one.about}")
            started, load = time.monotonic(), psutil.getloadavg()[0]
            result = one.run(servers)
            found["scenarios"][one.name] = {
                "about": one.about,
                "size": size,
                "load_before": round(load, 2),
                "took_s": round(time.monotonic() - started, 1),
                "rows": [row.as_json() for row in result.rows],
                "ratios": [ratio.as_json() for ratio in result.ratios],
            }
    return found


def save(found: dict[str, Any], results: Path, *, keep: bool) -> None:
    """Write the JSON and the picture, and print the ratios; scenarios that were not run now keep what they had."""
    if keep and results.exists():
        found["scenarios"] = {**json.loads(results.read_text())["scenarios"], **found["scenarios"]}
    found["goals"] = [goal.as_json() for goal in goals(found["scenarios"])]
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(found, indent=1) + "\n")
    results.with_suffix(".svg").write_text(svg.picture(found))
    for name, scenario in found["scenarios"].items():
        for ratio in scenario["ratios"]:
            case = f" ({ratio['case']})" if ratio["case"] else ""
            of = page.COLUMNS[ratio["figure"]]
            median, low, high = (f"{ratio[figure]:.2f}" for figure in ("median", "low", "high"))
            print(f"{name}: {ratio['name']}{case}, {of}: {median} ({low} to {high})")
    for goal in found["goals"]:
        print(f"{'reached' if goal['reached'] else 'MISSED '}  {goal['goal']}: {goal['value']:.3g}")
    print(f"saved: {results}, {results.with_suffix('.svg')}")


def machine() -> dict[str, Any]:
    """What it was measured on."""
    names = ("headrace", "pyspark", "confluent-kafka", "moto")
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
