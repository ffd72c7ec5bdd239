"""The benchmark itself: that each of its programs runs, and that its results have the fields that others read."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

WITHOUT_SPARK = [
    "slope",
    "parsed",
    "csv",
    "avro",
    "parquet",
    "latency",
    "tasks",
    "object-size",
    "record-size",
    "objects",
    "memory",
]
OF_A_RUN = {
    "records_per_s",
    "records_per_s_from_start",
    "mb_per_s",
    "cpu_s_per_million",
    "cpu_s_per_million_after_start",
    "cpu_s",
    "start_s",
    "flow_s",
    "job_s",
    "tree_mb",
    "worker_mb",
}


def bench(project, folder, *arguments):
    """The results of a run, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", project / "bench", "--quick", "--no-peers", "--out", folder, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text()), done.stdout


def test_every_scenario_without_spark_finds_something(project, tmp_path):
    """Each has rows with medians and spreads of positive figures, and the goals that it speaks of are judged."""
    results, said = bench(project, tmp_path, *WITHOUT_SPARK)

    assert [*results["scenarios"]] == WITHOUT_SPARK
    for name, scenario in results["scenarios"].items():
        assert scenario["rows"], name
        for row in scenario["rows"]:
            assert {*row} == {"engine", "case", "rounds", "figures"}
            for spread in row["figures"].values():
                assert spread["low"] <= spread["median"] <= spread["high"]
            if name not in {"slope", "latency"}:
                assert {*row["figures"]} == OF_A_RUN
                assert row["figures"]["records_per_s"]["median"] > 0
                assert row["figures"]["cpu_s"]["median"] > 0
    assert {goal["goal"].partition(":")[0] for goal in results["goals"]} >= {"slope", "avro", "latency", "memory"}
    assert (tmp_path / "results.svg").read_text().startswith("<svg")
    assert "headrace local / bare loop" in said


def test_scenarios_that_are_not_run_again_keep_their_results(project, tmp_path):
    """A run of one scenario puts its figures beside those of an earlier one."""
    bench(project, tmp_path, "avro")
    results, _ = bench(project, tmp_path, "parquet")

    assert [*results["scenarios"]] == ["avro", "parquet"]
    assert {ratio["name"] for ratio in results["scenarios"]["avro"]["ratios"]} == {"headrace local / bare loop"}


def test_both_engines_run_side_by_side(project, tmp_path):
    """A run has a row for the limit and for both engines on S3 and on files, and ratios of all these to the limit."""
    results, _ = bench(project, tmp_path, "lines")

    scenario = results["scenarios"]["lines"]
    engines = ["headrace local", "headrace spark", "headrace local, files", "headrace spark, files"]
    assert [row["engine"] for row in scenario["rows"]] == ["bare loop", *engines]
    assert sorted((ratio["name"], ratio["figure"]) for ratio in scenario["ratios"]) == sorted(
        (f"{engine} / bare loop", figure)
        for engine in engines
        for figure in ("records_per_s", "cpu_s_per_million_after_start")
    )
