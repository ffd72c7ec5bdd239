"""One large object, read by several tasks at once: each record once, whatever happens on the way."""

import gzip
import io
import json
from contextlib import nullcontext

import attrs
import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.altering import explain
from headrace.framework.driver.migrating import migrate_back
from headrace.framework.driver.planning import make_plan
from headrace.framework.errors import OffsetsError
from headrace.framework.local.engine import LocalEngine
from headrace.framework.local.threads import TaskThreads
from headrace.framework.run import Run
from headrace.framework.source_offsets import State
from headrace.framework.worker.execute import execute
from headrace.framework.worker.kept import KEPT
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets.codec import decode_key
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.testing.dying_sink import DyingKafkaSink, install_dying_sink
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import Meanwhile, Pass
from headrace.testing.s3_harness import S3Harness
from headrace.testing.trial import Trial, fresh_name, records_of

LINES = 400
PARTS = 8
SPLIT = {"tasks__max": "4", "split__size__bytes": "1600"}
STEPWISE = {"transaction__boundary__max__records": "10", "transaction__timeout__ms": "5000"}


@pytest.fixture
def trial(request, s3_endpoint, kafka_bootstrap_servers):
    with S3Harness(s3_endpoint) as harness:
        name = fresh_name(request.node.originalname.removeprefix("test_"))
        yield Trial(harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=name)


def put(trial, key, body):
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key=key, Body=body)


def view_of(trial):
    return read_view(KafkaSettings.of(SourceCommonConfig.from_props(trial.props())))


def entries(trial):
    """The entries by object and part."""
    found = {}
    for raw, value in trial.entries().items():
        mapping = decode_key(raw)[1].mapping
        found[mapping["objectKey"], mapping.get("part")] = json.loads(value)
    return found


def assert_read_once(trial):
    assert sorted(trial.values()) == sorted(trial.everything())


def assert_finished(trial, key="big"):
    """The object has the entry of any other finished object, and its parts have none."""
    found = entries(trial)
    assert (found[key, None]["complete"], found[key, None]["recordCount"]) == (True, len(trial.pieces[key]))
    assert [name for name in found if name[1] is not None] == []


def test_several_tasks_read_one_object(trial):
    """Every task has a share, each record is there once, and in the end the object is one finished object."""
    trial.add("big", LINES)
    trial.add("small", 10)
    summary = trial.run(**SPLIT)
    assert (summary.records, summary.objects) == (LINES + 10, 2)
    assert all(task.records >= LINES / 8 for task in summary.tasks)
    assert_read_once(trial)
    assert_finished(trial)
    assert entries(trial)["big", None]["line"] == LINES
    again = trial.run(**SPLIT)
    assert (again.records, again.skipped) == (0, 0)


@pytest.mark.parametrize("distribution", ["object_hash"])
def test_a_strategy_shares_out_parts(trial, distribution):
    """Each part is a thing of its own to a strategy that goes by names."""
    trial.add("big", LINES)
    summary = trial.run(**SPLIT, distribution__type=distribution)
    assert sum(task.records > 0 for task in summary.tasks) > 1
    assert_read_once(trial)


def test_without_the_key_an_object_stays_whole_and_in_order(trial):
    """By default one task reads an object, in its order; so does the only task there is."""
    trial.add("big", LINES)
    trial.run(tasks__max="4")
    assert trial.values() == trial.everything()
    trial.add("next", LINES)
    trial.run(split__size__bytes="3000")
    assert trial.values_of("next") == trial.pieces["next"]


def write_avro(rows):
    target = io.BytesIO()
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    fastavro.writer(target, schema, rows, sync_interval=100)
    return target.getvalue()


def write_parquet(rows):
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=20)
    return target.getvalue()


def write_csv(rows):
    return b"n\n" + b"".join(b"%d\n" % row["n"] for row in rows)


@pytest.mark.parametrize(
    ("write", "props"),
    [
        (write_avro, {"input__format": "avro"}),
        (write_parquet, {"input__format": "parquet"}),
        (write_csv, {"input__format": "csv", "csv__quoted__newlines": "false", "csv__types": "inferred"}),
    ],
    ids=["avro", "parquet", "csv"],
)
def test_formats_with_a_head_or_a_foot(trial, write, props):
    """Blocks, row groups and rows are shared out as lines are."""
    rows = [{"n": number} for number in range(LINES)]
    body = write(rows)
    put(trial, "big", body)
    summary = trial.run(**props, tasks__max="4", split__size__bytes=str(len(body) // 7))
    assert sum(task.records > 0 for task in summary.tasks) > 1
    assert sorted(json.loads(value)["n"] for value in trial.values()) == list(range(LINES))
    assert entries(trial)["big", None]["recordCount"] == LINES


@pytest.mark.parametrize("key", ["big.gz", "big"])
def test_a_compressed_object_is_read_by_one_task(trial, key):
    """It is not cut if its name says what it is; if only its first bytes do, the first part has all of it."""
    lines = records_of("big", 2000)
    put(trial, key, gzip.compress(b"".join(line + b"\n" for line in lines)))
    summary = trial.run(**SPLIT, discovery__interval__ms="50")
    assert summary.objects == 1
    assert trial.values() == lines
    assert entries(trial)[key, None]["complete"] is True


def half_read(trial, tmp_path, monkeypatch, **changes):
    """Kill the tasks of a run once some parts have been read, in part or as a whole."""
    install_dying_sink(tmp_path, monkeypatch)
    death = DyingKafkaSink.to_die_before(30)
    summary = trial.attempt(**SPLIT, **STEPWISE, sink="dying", **changes)
    assert (death.has_come, summary.state) == (True, "FAILED")
    assert 0 < len(trial.values()) < LINES


@pytest.mark.parametrize("size", ["0", "700", "3000", "10000"])
def test_a_crash_and_another_size(trial, tmp_path, monkeypatch, size):
    """What was begun goes on as it was cut, whatever the key says by then, and with any number of tasks."""
    trial.add("big", LINES)
    half_read(trial, tmp_path, monkeypatch)
    found = entries(trial)
    assert found["big", None]["parts"] == PARTS
    assert {number for _, number in found} - {None}
    trial.run(tasks__max="2", split__size__bytes=size)
    assert_read_once(trial)
    assert_finished(trial)


def test_an_object_begun_as_a_whole_goes_on_as_a_whole(trial):
    """It is not cut any more, so its order holds to its end."""
    trial.add("big", LINES)
    trial.run(stop__rule="count:50", **STEPWISE)
    assert 0 < len(trial.values()) < LINES
    trial.run(**SPLIT)
    assert trial.values() == trial.everything()
    assert_finished(trial)


def overwrite_during(trial, after, count=300):
    """Have the object overwritten once so many requests for it have been answered."""
    fresh = records_of("big", count, start=10_000)
    before = trial.pieces["big"]
    trial.harness.faulty.script(*[Pass()] * after, Meanwhile(lambda: trial.put("big", fresh)))
    return before, fresh


@pytest.mark.parametrize("count", [300, 700, 20], ids=["fewer parts", "more parts", "one part"])
def test_overwritten_in_the_middle(trial, count):
    """All of the new version is read, once; of the old one what had been read by then, at most once."""
    trial.add("big", LINES)
    old, fresh = overwrite_during(trial, 9, count)
    summary = trial.run(**SPLIT, **STEPWISE)
    values = trial.values()
    assert [value for value in values if value in set(fresh)] != []
    assert sorted(set(values) - set(old)) == sorted(fresh)
    assert len(values) == len(set(values))
    assert set(values) & set(old)
    assert summary.objects == 1
    assert_finished(trial)


def test_overwritten_in_the_middle_may_be_left_out(trial):
    """`ignore` leaves out what had not been read, with a word; `fail` fails the run."""
    trial.add("big", LINES)
    old, _ = overwrite_during(trial, 9)
    summary = trial.run(**SPLIT, **STEPWISE, s3__overwrite__policy="ignore")
    assert set(trial.values()) < set(old)
    assert "big is left out: it was overwritten" in "".join(summary.warnings)
    failed = trial.attempt(**SPLIT, s3__overwrite__policy="fail")
    assert (failed.state, "overwritten" in failed.error) == ("FAILED", True)
    read = trial.run(**SPLIT)
    assert read.records == 300


def test_overwritten_between_runs(trial, tmp_path, monkeypatch):
    """Parts of the version that is gone are forgotten, and all of the new one is read, in parts or whole."""
    trial.add("big", LINES)
    half_read(trial, tmp_path, monkeypatch)
    for fresh in (records_of("big", 200, start=1000), records_of("big", 5, start=5000)):
        trial.put("big", fresh)
        assert trial.run(**SPLIT).records == len(fresh)
        assert_finished(trial)


def test_deleted_in_the_middle(trial):
    """`data.loss` decides, once for the object; if it comes back as it was, the rest is read."""
    trial.add("big", LINES)
    delete = Meanwhile(lambda: trial.harness.client.delete_object(Bucket=trial.harness.bucket, Key="big"))
    trial.harness.faulty.script(*[Pass()] * 9, delete)
    summary = trial.run(**SPLIT, **STEPWISE, data__loss="continue")
    assert (summary.objects, 0 < summary.records < LINES) == (0, True)
    assert [word for word in summary.warnings if "was deleted" in word] != []
    assert summary.skipped == 1
    trial.put("big", trial.pieces["big"])
    trial.run(**SPLIT)
    assert_read_once(trial)
    trial.harness.faulty.script(Pass(), delete)
    trial.put("big", records_of("big", LINES, start=1000))
    failed = trial.attempt(**SPLIT)
    assert (failed.state, "gone" in failed.error or "no such" in failed.error.lower()) == ("FAILED", True)


def test_it_is_rolled_up_like_any_other(trial):
    """A finished object that was read in parts gives way to the roll-up, and is known afterwards."""
    trial.add("big", LINES)
    trial.run(**SPLIT)
    trial.run(**SPLIT, offsets__rollup__min__entries="1")
    assert trial.entries() == {}
    assert len(view_of(trial).rollup) == 1
    assert trial.run(**SPLIT).records == 0
    trial.put("big", records_of("big", LINES, start=1000))
    assert trial.run(**SPLIT).records == LINES


def test_half_read_parts_are_not_rolled_up(trial, tmp_path, monkeypatch):
    """Neither the parts that have ended nor the object leave the topic before all of it is read."""
    trial.add("big", LINES)
    half_read(trial, tmp_path, monkeypatch, offsets__rollup__min__entries="1")
    assert entries(trial)["big", None]["parts"] == PARTS
    trial.run(**SPLIT, offsets__rollup__min__entries="1")
    assert_read_once(trial)


def test_a_plan_lists_the_parts(trial):
    """Before, in the middle and after: parts with their bytes, tasks and requests; the object counts once."""
    trial.add("big", LINES)
    plan = make_plan(trial.props(**SPLIT))
    size = sum(len(line) + 1 for line in trial.pieces["big"])
    assert [one.part for one in plan.objects] == [f"part {number} of {PARTS}" for number in range(1, PARTS + 1)]
    assert {one.task for one in plan.objects} == {0, 1, 2, 3}
    assert [one.start for one in plan.objects] == [number * size // PARTS for number in range(PARTS)]
    assert all(json.loads(one.first_record)["number"] > 0 for one in plan.objects[1:])
    assert plan.objects[1].as_json()["part"] == f"part 2 of {PARTS}"
    totals = plan.totals
    assert (totals["objects"], totals["to_read"], totals["bytes"], totals["bytes_to_read"]) == (1, 1, size, size)
    assert totals["estimated_get_calls"] == 2 * PARTS - 1
    trial.run(**SPLIT)
    assert len(trial.harness.faulty.gets) - plan.get_calls == 2 * PARTS - 1
    (one,) = make_plan(trial.props(**SPLIT)).objects
    assert (one.part, one.complete, one.records_done) == ("", True, LINES)


def test_people_are_told_of_parts(trial, tmp_path, monkeypatch):
    """`explain` says how many parts are left; Kafka Connect is not given what it would take for an unread object."""
    trial.add("big", LINES)
    half_read(trial, tmp_path, monkeypatch)
    records = len(trial.values())
    found, _ = explain(trial.props(**SPLIT), "big")
    assert (found.state, found.records_done) == (State.PARTIAL, records)
    assert f"it is read in {PARTS} parts, of which" in found.reason
    assert any(check.name == "parts" and f"{records} records in all" in check.says for check in found.checks)
    left = [one for one in make_plan(trial.props(**SPLIT)).objects if not one.complete]
    assert 0 < sum(one.records_done for one in left) <= records
    with pytest.raises(OffsetsError, match="big is half read, in parts"):
        migrate_back(trial.props())
    trial.run(**SPLIT)
    (moved,) = migrate_back(trial.props()).pieces
    assert (moved.state, moved.records_done) == (State.COMPLETE, LINES)


def test_a_late_attempt_passes_over_what_was_joined_since_its_plan(trial):
    """A copy of a task that comes late finds no entries of parts, but the object finished: it reads nothing."""
    trial.add("big", LINES)
    plans = []

    def drive(coordinator):
        class Recording(LocalEngine):
            def _run_batch(self, batch):
                plans.extend(batch)
                super()._run_batch(batch)

        Recording(coordinator, [TaskThreads()]).run()

    for changes in ({}, {"offsets__rollup__min__entries": "1"}):
        run = Run(props=trial.props(**SPLIT, **changes), bounded=True, engine=lambda _: nullcontext(drive))
        assert run.go().state == "COMPLETED"
        assert [len(plan.splits) for plan in plans] == [2] * 4
        now = view_of(trial).generation
        for plan in plans:
            report = execute(attrs.evolve(plan, generation=now.generation, owner=now.owner), TaskSignals())
            KEPT.close()
            assert (report.error, report.records, len(report.finished_splits)) == (None, 0, 2)
    assert_read_once(trial)


@pytest.mark.slow
def test_on_spark(trial, spark_on_threads):
    """On Spark the parts go to its tasks, and the same stands on the topic in the end."""
    trial.engine = Engine("spark", spark=spark_on_threads)
    trial.add("big", LINES)
    summary = trial.run(**SPLIT)
    assert (summary.records, summary.objects) == (LINES, 1)
    assert sum(task.records > 0 for task in summary.tasks) == 4
    assert_read_once(trial)
    assert_finished(trial)


def test_a_continuous_run_joins_what_is_done(trial, eventually):
    """An object that comes while a run goes on is cut, read and joined without an end of the run."""
    with trial.running(**SPLIT, discovery__interval__ms="50") as running:
        for start in (0, 1000):
            trial.put("big", records_of("big", LINES, start=start))
            trial.await_values(LINES if start == 0 else 2 * LINES)
            eventually(lambda: "complete" in entries(trial)["big", None])
        summary = running.stop()
    assert summary.objects == 2
    assert_finished(trial)


def test_a_bad_line_is_named_by_its_place(trial):
    """Nobody knows how many lines are before a part: the error says from which byte it counts."""
    lines = records_of("big", LINES)
    lines[LINES // 2] = b"{"
    trial.harness.add("big", lines)
    failed = trial.attempt(**SPLIT)
    assert failed.state == "FAILED"
    assert "s3://" in failed.error
    assert " of the part from byte " in failed.error
