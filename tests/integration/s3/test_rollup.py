"""Progress that stays small: finished objects rolled up, and everything still told apart."""

import time
from collections import Counter
from contextlib import nullcontext

import pytest
from confluent_kafka import Producer

from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.rollup import RollUp
from headrace.framework.local.engine import LocalEngine
from headrace.framework.local.threads import TaskThreads
from headrace.framework.run import Run
from headrace.framework.worker.execute import execute
from headrace.framework.worker.kept import KEPT
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets import rollup
from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.reading import count_partitions, read_view
from headrace.offsets.kafka.records import EnumeratorState, enumerator_key
from headrace.offsets.kafka.reset import reset
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.s3 import S3Source, enumerator, sweep
from headrace.sources.s3.objects import S3Object, version_name
from headrace.sources.s3.splits import S3Split
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import Answer, Pass, listings
from headrace.testing.s3_harness import S3Harness
from headrace.testing.trial import Trial, fresh_name, records_of

SMALL = {"offsets__rollup__min__entries": "10", "aws__s3__fetch__page__size": "4", "tasks__max": "2"}


@pytest.fixture
def trial(request, s3_endpoint, kafka_bootstrap_servers):
    with S3Harness(s3_endpoint) as harness:
        name = fresh_name(request.node.originalname)
        yield Trial(harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=name)


def settings_of(trial):
    return KafkaSettings.of(SourceCommonConfig.from_props(trial.props()))


def view_of(trial):
    return read_view(settings_of(trial))


def remembered(trial):
    """What the enumerator has left on the topic."""
    view = view_of(trial)
    state = None if view is None else EnumeratorState.decode(view.beside.get(enumerator_key(trial.name)))
    return {} if state is None else state.state


def feed(trial, numbers, records=2):
    for number in numbers:
        trial.add(f"in-{number:03d}", records)


def delete(trial, piece):
    trial.harness.client.delete_object(Bucket=trial.harness.bucket, Key=piece)
    del trial.pieces[piece]


@pytest.fixture
def rolled_up(trial):
    """A connector with twelve finished objects, all rolled up."""
    feed(trial, range(12))
    trial.run(**SMALL)
    assert trial.entries() == {}
    return trial


def test_what_is_rolled_up_is_read_once(rolled_up):
    """Finished entries give way to a roll-up, and no run after it reads their objects again."""
    assert len(view_of(rolled_up).rollup) == 12
    assert rolled_up.run(**SMALL).records == 0
    assert sorted(rolled_up.values()) == sorted(rolled_up.everything())


def test_below_the_number_of_entries_nothing_is_rolled_up(trial):
    """A connector with few entries stays in Kafka Connect's form; so does every one that never rolls up."""
    feed(trial, range(12))
    trial.run(**SMALL | {"offsets__rollup__min__entries": "13"})
    trial.run(**SMALL | {"offsets__rollup__min__entries": "0"})
    assert len(trial.entries()) == 12
    assert len(view_of(trial).rollup) == 0


@pytest.mark.parametrize("number", [0, 5, 50], ids=["below all", "between", "above all"])
def test_what_comes_late_is_found_beside_a_roll_up(rolled_up, number):
    """An object that was never seen is read, wherever its key sorts."""
    late = {0: "a-first", 5: "in-005a", 50: "in-050"}[number]
    rolled_up.add(late, 3)
    assert rolled_up.run(**SMALL).records == 3
    assert sorted(rolled_up.values()) == sorted(rolled_up.everything())


def test_an_overwritten_object_is_found_after_its_roll_up(rolled_up):
    """Another version of a rolled-up object is read from its first record, as it is without a roll-up."""
    rolled_up.put("in-003", records_of("in-003", 4, start=100))
    assert rolled_up.run(**SMALL).records == 4
    assert rolled_up.run(**SMALL).records == 0


def test_an_overwritten_object_is_rolled_up_again(rolled_up):
    """Its newer version takes the older one's place, and an older one that comes back is another version again."""
    for start, records in ((100, 4), (200, 5), (100, 4)):
        rolled_up.put("in-003", records_of("in-003", records, start=start))
        assert rolled_up.run(**SMALL | {"offsets__rollup__min__entries": "1"}).records == records
        assert (len(rolled_up.entries()), len(view_of(rolled_up).rollup)) == (0, 12)
    assert rolled_up.run(**SMALL).records == 0


def test_an_entry_that_was_left_beside_an_older_roll_up_is_rolled_up_later(rolled_up):
    """A run that ends before it rolls up leaves an entry that counts, until a run with a whole listing rolls it up."""
    rolled_up.put("in-003", records_of("in-003", 4, start=100))
    assert rolled_up.run(**SMALL | {"offsets__rollup__min__entries": "0"}).records == 4
    assert len(rolled_up.entries()) == 1
    assert rolled_up.run(**SMALL | {"offsets__rollup__min__entries": "1"}).records == 0
    assert (len(rolled_up.entries()), len(view_of(rolled_up).rollup)) == (0, 12)


def test_of_two_objects_with_one_mark_none_is_read_again(trial, monkeypatch):
    """Marks may collide: the object that comes second keeps its entry, and neither is ever read twice."""
    alike = mark_that_takes_for_one("in-002", "in-005", "in-007")
    monkeypatch.setattr(rollup, "name_mark", alike)
    monkeypatch.setattr(sweep, "name_mark", alike)
    monkeypatch.setattr(enumerator, "name_mark", alike)
    feed(trial, range(12))
    at_once = SMALL | {"offsets__rollup__min__entries": "1"}
    trial.run(**at_once)
    assert (len(trial.entries()), len(view_of(trial).rollup)) == (2, 10)
    assert [trial.run(**at_once).records for _ in range(2)] == [0, 0]
    had_an_entry = trial.offset("in-005") is not None  # otherwise it was the first of the three
    trial.put("in-005", records_of("in-005", 3, start=100))
    assert [trial.run(**at_once).records for _ in range(2)] == [3, 0]
    assert (len(trial.entries()), len(view_of(trial).rollup)) == (2 if had_an_entry else 3, 10)


def mark_that_takes_for_one(*names):
    true_mark = rollup.name_mark
    first = names[0]

    def alike(key):
        names_of = dict(key.mapping)
        return true_mark(
            OffsetManagerKey({**names_of, "objectKey": first} if names_of["objectKey"] in names else names_of)
        )

    return alike


def test_a_full_roll_up_is_named(rolled_up, monkeypatch):
    """What finds no room in it keeps its entries, which count as before; the summary says so."""
    monkeypatch.setattr(rollup, "MOST_IN_SHARD", 1)
    feed(rolled_up, range(12, 200), records=1)
    told = rolled_up.run(**SMALL)
    assert len(rolled_up.entries()) + len(view_of(rolled_up).rollup) == 200
    assert "has no room in" in "".join(told.warnings)
    assert rolled_up.run(**SMALL).records == 0


def test_an_overwritten_object_may_be_left_out_after_its_roll_up(rolled_up):
    """`ignore` leaves it out with a word, `fail` fails the run: the roll-up tells another version from a new object."""
    rolled_up.harness.add("in-003", records_of("in-003", 4, start=100))
    left_out = rolled_up.run(**SMALL, s3__overwrite__policy="ignore")
    assert left_out.records == 0
    assert "in-003 is left out: it was overwritten" in "".join(left_out.warnings)
    failed = rolled_up.attempt(**SMALL, s3__overwrite__policy="fail")
    assert (failed.state, "in-003" in failed.error, "overwritten" in failed.error) == ("FAILED", True, True)


def test_a_deleted_object_leaves_the_roll_up(rolled_up):
    """What no whole listing shows any more is forgotten; if it comes back, it is read again."""
    delete(rolled_up, "in-003")
    delete(rolled_up, "in-011")
    rolled_up.run(**SMALL)
    assert len(view_of(rolled_up).rollup) == 10
    rolled_up.add("in-003", 2)
    assert rolled_up.run(**SMALL).records == 2


def test_a_run_that_lists_less_forgets_nothing(rolled_up):
    """With a narrower prefix, or a start behind a key, the rest is not taken for deleted."""
    rolled_up.run(**SMALL, aws__s3__prefix="in-00")
    rolled_up.run(**SMALL, native__start__key="in-005")
    assert len(view_of(rolled_up).rollup) == 12
    assert rolled_up.run(**SMALL).records == 0


def test_a_start_key_that_is_moved_forgets_nothing(rolled_up):
    """Runs that begin behind different keys do not take for deleted what only the one with the lower key lists."""
    reset(settings_of(rolled_up))
    rolled_up.run(**SMALL, native__start__key="in-001")
    rolled_up.run(**SMALL, native__start__key="in-005")
    assert len(view_of(rolled_up).rollup) == 10
    assert rolled_up.run(**SMALL, native__start__key="in-001").records == 0
    assert remembered(rolled_up)["startKey"] == "in-001"


def test_what_is_deleted_behind_the_same_start_key_is_forgotten(trial):
    """Where all runs begin behind the same key, what is no longer listed leaves the roll-up."""
    feed(trial, range(14))
    trial.run(**SMALL, native__start__key="in-001")
    delete(trial, "in-007")
    trial.run(**SMALL, native__start__key="in-001")
    assert len(view_of(trial).rollup) == 11


def test_reset_forgets_the_roll_up_too(rolled_up):
    """After a reset everything is read again."""
    assert reset(KafkaSettings.of(SourceCommonConfig.from_props(rolled_up.props()))) == 12
    assert rolled_up.run(**SMALL).records == 24


def test_a_continuous_run_finds_what_comes_below_its_watermark(trial):
    """In a bucket of many pages, late keys are found at the next whole listing, new ones at once."""
    feed(trial, range(20))
    with trial.running(**SMALL, reconcile__interval__ms="1500", discovery__interval__ms="50"):
        trial.await_values(40)
        trial.add("in-020", 2)
        trial.await_values(42)
        trial.add("a-first", 2)
        trial.await_values(44)
    assert sorted(trial.values()) == sorted(trial.everything())


def test_a_large_bucket_is_not_walked_through_every_time(trial):
    """Between whole listings a request or two ask for what is behind the last key."""
    feed(trial, range(20))
    with trial.running(**SMALL, discovery__interval__ms="20"):
        trial.await_values(40)
        deadline = time.monotonic() + 60
        while [("start-after" in one.query) for one in trial.harness.faulty.lists][-12:] != [True] * 12:
            assert time.monotonic() < deadline, "the whole bucket is listed again and again"
            time.sleep(0.05)


def test_a_restart_reads_what_is_new_before_it_lists_what_is_old(trial):
    """The last key that was seen is stored, so a start begins behind it, and the whole listing follows."""
    feed(trial, range(20))
    trial.run(**SMALL)
    seen = len(trial.harness.faulty.lists)
    trial.add("in-020", 2)
    trial.run(**SMALL)
    first, *rest = trial.harness.faulty.lists[seen:]
    assert first.query["start-after"] == "in-019"
    assert len(rest) >= 5


def test_a_walk_that_was_cut_short_is_remembered_too(trial, monkeypatch):
    """A run that ends in the middle of its first listing leaves behind how far it was: the next one begins there."""
    monkeypatch.setattr(sweep, "AT_A_TIME", 4)
    monkeypatch.setattr(enumerator, "ENOUGH", 1)
    feed(trial, range(20))
    trial.harness.faulty.script(*[Pass(on=listings)] * 2, *[Answer(503, "SlowDown", on=listings)] * 500)
    with trial.running(**SMALL):
        deadline = time.monotonic() + 60
        while (watermark := remembered(trial).get("watermark")) is None:
            assert time.monotonic() < deadline, "nothing is remembered"
            time.sleep(0.05)
    trial.harness.faulty.forget()
    seen = len(trial.harness.faulty.lists)
    trial.run(**SMALL)
    assert trial.harness.faulty.lists[seen].query["start-after"] == watermark < "in-019"
    assert sorted(trial.values()) == sorted(trial.everything())


def test_a_start_reads_before_it_rolls_up(trial):
    """What an earlier run has left to be rolled up does not keep the first record of the next one waiting."""
    feed(trial, range(12))
    trial.run(**SMALL | {"offsets__rollup__min__entries": "0"})
    trial.add("in-012", 2)
    single = []

    def drive(coordinator):
        class Counting(LocalEngine):
            def _run_batch(self, batch):
                single.append(len(coordinator.claim.view.entries))
                super()._run_batch(batch)

        Counting(coordinator, [TaskThreads()]).run()
        KEPT.close()

    summary = Run(props=trial.props(**SMALL), bounded=True, engine=lambda _: nullcontext(drive)).go()
    assert (summary.state, summary.records, single[0]) == ("COMPLETED", 2, 12)
    assert len(view_of(trial).rollup) >= 12


def test_what_a_task_has_in_hand_is_not_rolled_up(trial):
    """The entry of a finished object that a task holds again, for it was overwritten, stays until it is let go."""
    feed(trial, range(12))
    trial.run(**SMALL | {"offsets__rollup__min__entries": "0"})
    source, settings = S3Source(), settings_of(trial)
    source.configure(trial.props())
    claim = Claim.take(settings, partitions=count_partitions(settings), tasks=1)
    host = EnumeratorHost(trial.name, 1, claim.view, bounded=True)
    held = S3Object(bucket=trial.harness.bucket, key="in-003", etag="newer", size=1, last_modified=0)
    host.assign_split(S3Split(held), 0)
    RollUp(source, claim, min_entries=1).look(host, is_end=True)
    claim.close()
    assert trial.offset("in-003")["complete"] is True
    assert (len(trial.entries()), len(view_of(trial).rollup)) == (1, 11)


def test_a_reader_beside_a_roll_up_misses_nothing(trial):
    """The partitions' ends are not of one instant: what was rolled up between them is found all the same."""
    feed(trial, range(12))
    trial.run(**SMALL | {"offsets__rollup__min__entries": "0"})
    settings = settings_of(trial)
    known = dict(view_of(trial).items())
    versions = {key: version_name(offset["etag"], offset["size"]) for key, offset in known.items()}
    claim = Claim.take(settings, partitions=count_partitions(settings), tasks=1)

    places = Counter(partition_for(raw, len(claim.log.positions)) for raw in claim.view.entries)
    looked_at_later = places.most_common(1)[0][0]
    on_the_way = []

    class Between(OffsetsLog):
        """One partition is read after a roll-up, the others, for once, as they were before it."""

        rolled_up = released = False

        def _high_watermarks(self, wait):
            before = super()._high_watermarks(wait)
            if self.rolled_up:
                self.released = True
                return before
            claim.roll_up(versions)
            self.rolled_up = True
            return {**before, looked_at_later: super()._high_watermarks(wait)[looked_at_later]}

        def _next(self, wait_s):
            come = [*on_the_way, *super()._next(wait_s)]
            held = [] if self.released else [one for one in come if one.partition() != looked_at_later]
            on_the_way[:] = held
            return [one for one in come if one not in held]

    view = KafkaOffsetView(trial.name)
    OffsetsLog(settings, view.take, dict.fromkeys(claim.log.positions, 0)).read_to_high_watermark()
    reader = Between(settings, view.take, dict(claim.log.positions))
    reader.read_to_high_watermark()
    reader.close()
    claim.close()
    neither = [key for key, version in versions.items() if not (view.get([key]) or view.rolled_up(key, version))]
    assert (neither, claim.view.entries) == ([], {})


def test_an_entry_that_cannot_be_read_is_named(trial):
    """What counts as never read, because nobody knows what was stored of it, is read again, and the run says so."""
    feed(trial, range(2))
    trial.run()
    mine = [raw for raw in trial.entries() if b"in-001" in raw]
    producer = Producer({"bootstrap.servers": trial.bootstrap_servers, "partitioner": "murmur2_random"})
    for key, value in (
        (mine[0], b'{"recordCount":{"of":2}}'),
        (b"session-key", b"{}"),
        (f'["{trial.name}",7]'.encode(), b"{}"),
        (mine[0].replace(trial.name.encode(), b"another"), b"not JSON"),
    ):
        producer.produce(f"{trial.name}-offsets", key=key, value=value)
    producer.flush(30)
    again = trial.run()
    assert again.records == 2
    words = "\n".join(again.warnings)
    assert "in-001" in words
    assert "counts as never read" in words
    assert "session-key" in words
    assert "another" not in words


@pytest.mark.parametrize("value", [b'{"recordCount":-1}', b'{"recordCount":"x"}', b'{"recordCount":1,"complete":"no"}'])
def test_an_entry_that_cannot_be_ends_the_run(trial, value):
    """What nobody can read on from is named with stage, connector, object and remedy, and nothing is sent."""
    feed(trial, range(2))
    trial.run()
    mine = next(raw for raw in trial.entries() if b"in-001" in raw)
    producer = Producer({"bootstrap.servers": trial.bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce(f"{trial.name}-offsets", key=mine, value=value)
    producer.flush(30)
    again = trial.attempt()
    assert (again.state, again.records, len(trial.values())) == ("FAILED", 0, 4)
    assert again.error.startswith(f"discover, {trial.name}, s3://{trial.harness.bucket}/in-001: its stored offset")
    assert "headrace offsets set" in again.error


def test_a_key_with_spaces_counts(trial):
    """Somebody has written an object's key with spaces: the object is not read again."""
    feed(trial, range(2))
    trial.run()
    ((usual, value),) = [(raw, value) for raw, value in trial.entries().items() if b"in-001" in raw]
    producer = Producer({"bootstrap.servers": trial.bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce(f"{trial.name}-offsets", key=usual.replace(b",", b", "), value=value)
    producer.produce(f"{trial.name}-offsets", key=usual, value=None)
    producer.flush(30)
    again = trial.run()
    assert (again.records, again.warnings) == (0, ())


def test_nothing_is_ever_written_into_the_bucket(rolled_up):
    """Late arrivals are found without marks in the user's bucket: all that is sent there are questions."""
    rolled_up.add("a-first", 2)
    asked = len(rolled_up.harness.faulty.requests)
    rolled_up.run(**SMALL)
    assert {request.method for request in rolled_up.harness.faulty.requests[asked:]} <= {"GET", "HEAD"}


def test_a_late_attempt_passes_over_what_was_rolled_up_since_its_plan(trial):
    """A copy of a task that comes late, with a plan in which an object was still to be read, does not read it again."""
    feed(trial, range(12))
    plans = []

    def drive(coordinator):
        class Recording(LocalEngine):
            def _run_batch(self, batch):
                plans.extend(batch)
                super()._run_batch(batch)

        Recording(coordinator, [TaskThreads()]).run()

    summary = Run(props=trial.props(**SMALL), bounded=True, engine=lambda _: nullcontext(drive)).go()
    assert (summary.state, trial.entries()) == ("COMPLETED", {})
    for plan in plans:
        assert len(plan.splits) > 0
        report = execute(plan, TaskSignals())
        KEPT.close()
        assert (report.error, report.records, len(report.finished_splits)) == (None, 0, len(plan.splits))
    assert sorted(trial.values()) == sorted(trial.everything())
