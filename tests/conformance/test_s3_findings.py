"""What a well-known S3 source does, and this one does not: from a whole run's point of view.

Findings 7 and 11 are held by the tests of the configuration and of the listing.
"""

import gzip
import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from headrace.framework.driver.planning import make_plan
from headrace.testing import S3Harness, create_topic, read_topic
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import Answer, CutBody
from headrace.testing.trial import Trial, fresh_name, records_of


@pytest.fixture
def trial(s3_endpoint, kafka_bootstrap_servers, request):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
        )


def gets(trial):
    return len(trial.harness.faulty.gets)


def test_progress_is_found_under_either_order_of_the_keys_names(trial):
    """Finding 1: progress that was written under the other order of the key's names is found and gone on from."""
    trial.add("one", 10)
    trial.run()
    (key,) = trial.entries()
    connector, partition = json.loads(key)
    other = json.dumps([connector, dict(reversed(partition.items()))], separators=(",", ":")).encode()
    producer = Producer({"bootstrap.servers": trial.bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce(f"{trial.name}-offsets", None, key)
    producer.produce(f"{trial.name}-offsets", b'{"recordCount":4}', other)
    assert producer.flush(30) == 0

    trial.run()

    ten = trial.everything()
    assert trial.values() == [*ten, *ten[4:]]
    assert list(trial.entries()) == [key]
    assert trial.records_done("one") == 10


def test_a_bad_record_does_not_pass_for_the_end(trial):
    """Finding 2: a bad line in the middle fails the run, names its place, and the object is not taken for finished."""
    good = records_of("one", 7)
    trial.harness.add("one", [*good, b"{", *records_of("rest", 3)])

    summary = trial.attempt()

    assert summary.state == "FAILED"
    assert all(word in summary.error for word in (trial.name, "task 0", "/one", "8"))
    assert trial.values() == good
    assert trial.offset("one").get("complete") is not True


def test_an_object_whose_get_is_refused_again_and_again_is_read_in_the_end(trial):
    """Finding 3: a GET that fails more often than the source tries is tried on; the object is not passed over."""
    for piece in ("one", "three", "two"):
        trial.add(piece, 5)
    trial.harness.faulty.script(*[Answer(503, "SlowDown")] * 5)

    trial.run(aws__s3__backoff__max__retries="1")

    assert sorted(trial.values()) == sorted(trial.everything())


def test_a_finished_object_is_never_fetched_again(trial):
    """Finding 4: a restart fetches no finished object, and of an unfinished one what is left."""
    trial.add("a-done", 5)
    good = records_of("b-half", 2000)
    trial.harness.add("b-half", [*good, b"{"])
    trial.attempt(file__compression__type="none")
    before = gets(trial)

    trial.attempt(file__compression__type="none")

    again = trial.harness.faulty.gets[before:]
    assert {get.path.rpartition("/")[2] for get in again} == {"b-half"}
    assert all(get.headers["range"].startswith("bytes=") for get in again)
    assert sum(get.sent for get in again) < 100
    assert trial.values() == [*trial.everything(), *good]


def test_a_bucket_is_listed_once_for_all_tasks(trial):
    """Finding 5: with three tasks and 30 objects a run costs one listing of one page, and one GET an object."""
    for number in range(30):
        trial.add(f"piece-{number:02}", 2)

    trial.run(tasks__max="3")

    assert len(trial.harness.faulty.lists) == 1
    assert gets(trial) == 30
    assert sorted(trial.values()) == sorted(trial.everything())


def test_a_sinks_name_template_with_parameters_is_read_back(trial):
    """Finding 6: topic and partition come back from names that a sink's template with parameters has made."""
    topic = f"{trial.name}-restored"
    create_topic(trial.bootstrap_servers, topic, partitions=4)
    trial.harness.add(f"{topic}-0003-00000000000000000042.jsonl", records_of("restored", 5))
    props = trial.props(file__name__template="{{topic}}-{{partition:padding=true}}-{{start_offset:padding=true}}.jsonl")
    del props["topic"]

    summary = trial.engine.run(props)

    assert summary.error is None
    messages = read_topic(trial.bootstrap_servers, topic)
    assert [message.value() for message in messages] == records_of("restored", 5)
    assert {message.partition() for message in messages} == {3}


def test_an_object_without_records_is_finished_all_the_same(trial):
    """Finding 12: an object that yields no record is marked as finished, and not fetched again after a restart."""
    trial.harness.add("blank", [b"", b"   ", b""])
    trial.run()
    before = gets(trial)

    trial.run()

    assert (before, gets(trial)) == (1, 1)
    assert trial.offset("blank")["complete"] is True
    assert trial.values() == []


@pytest.mark.parametrize("boundary", ["interval", "poll", "object"])
def test_work_that_makes_no_record_advances_too(trial, boundary):
    """Objects of blank lines, or of a compressed nothing, are finished beside others, whatever ends a transaction."""
    trial.harness.add("a-blank", [b""] * 3000)
    trial.add("b-some", 5)
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key="c-nothing.gz", Body=gzip.compress(b""))
    trial.harness.client.put_object(
        Bucket=trial.harness.bucket, Key="d-ends-blank", Body=b'{"last":1}\n' + b"\n" * 3000
    )

    summary = trial.run(transaction__boundary=boundary)
    before = gets(trial)
    again = trial.run(transaction__boundary=boundary)

    assert (summary.records, summary.objects, again.records, again.transactions) == (6, 4, 0, 0)
    assert gets(trial) == before
    counts = {key: trial.offset(key)["recordCount"] for key in ("a-blank", "b-some", "c-nothing.gz", "d-ends-blank")}
    assert counts == {"a-blank": 0, "b-some": 5, "c-nothing.gz": 0, "d-ends-blank": 1}
    assert all(trial.offset(key)["complete"] for key in counts)


FILTER = '''
from headrace.transformers.base import ValueBatch
from headrace.transformers.text import TextTransformer


class Filter(TextTransformer):
    """Passes over every line that begins with a hash sign."""

    def batches(self, stream, start):
        for batch in super().batches(stream, start):
            kept = [n for n, value in enumerate(batch.values) if not value.startswith("#")]
            ends = [kept[0] if kept else len(batch.values), *kept[1:], len(batch.values)]

            def place(count, batch=batch, ends=ends):
                return batch.position_at(ends[count])

            yield ValueBatch(schema=None, values=[batch.values[n] for n in kept], position_at=place)
'''


def test_objects_of_which_nothing_is_kept_are_finished(trial, tmp_path, monkeypatch):
    """A transformer may pass over all records of an object: it is finished, and not fetched again."""
    info = tmp_path / "filtering-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: filtering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headrace.transformers]\nfiltered = filtering:Filter\n")
    (tmp_path / "filtering.py").write_text(FILTER)
    monkeypatch.syspath_prepend(tmp_path)
    trial.harness.add("a-all", [b"#"] * 3000)
    trial.harness.add("b-some", [b"#", b"one", b"#", b"#", b"two", b"#"])
    compressed = gzip.compress(b"#\n" * 5)
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key="c-all-compressed.gz", Body=compressed)

    summary = trial.run(input__format="filtered")
    before = gets(trial)
    again = trial.run(input__format="filtered")

    assert (summary.records, summary.objects, again.records, again.transactions) == (2, 3, 0, 0)
    assert gets(trial) == before == 3
    assert trial.values() == [b'"one"', b'"two"']
    assert all(trial.offset(key)["complete"] for key in ("a-all", "b-some", "c-all-compressed.gz"))
    assert [trial.offset(key)["recordCount"] for key in ("a-all", "b-some")] == [3000, 6]


def test_an_object_without_bytes_is_left_out_until_it_has_some(trial):
    """A zero-byte object is not fetched and has no entry; once it is written, it is read."""
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key="late", Body=b"")

    first = trial.run()
    assert (first.records, first.skipped, gets(trial), trial.entries()) == (0, 1, 0, {})

    trial.add("late", 3)
    trial.run()
    assert trial.values() == trial.everything()


@pytest.mark.parametrize(
    ("page", "new", "asked"),
    [("1000", 1, 3), ("2", 0, 4), ("2", 1, 4), ("2", 4, 7)],
    ids=["no watermark", "nothing new", "a page behind the watermark", "two pages"],
)
def test_a_plan_estimates_what_a_run_asks_for(trial, page, new, asked):
    """The LIST and GET requests that a plan foretells are those that the run then makes."""
    for number in range(5):
        trial.add(f"piece-{number}", 3)
    trial.run(aws__s3__fetch__page__size=page)
    for number in range(5, 5 + new):
        trial.add(f"piece-{number}", 3)
    props = trial.props(aws__s3__fetch__page__size="2")
    plan = make_plan(props, first=0)
    lists, fetched = len(trial.harness.faulty.lists), gets(trial)

    trial.run(aws__s3__fetch__page__size="2")

    assert plan.totals["list_calls"] == (6 + new) // 2
    assert plan.totals["estimated_list_calls"] == len(trial.harness.faulty.lists) - lists == asked
    assert plan.totals["estimated_get_calls"] == gets(trial) - fetched == new


def test_an_offsets_topic_that_was_made_anew(trial):
    """Deleted and made anew under a run, it ends that run with what happened, before anything is read again."""
    admin = AdminClient({"bootstrap.servers": trial.bootstrap_servers})
    topic = f"{trial.name}-offsets"
    trial.add("early", 5)
    with trial.running(discovery__interval__ms="100") as running:
        trial.await_values(5)
        for future in admin.delete_topics([topic]).values():
            future.result(30)
        create_topic(trial.bootstrap_servers, topic, partitions=3, config={"cleanup.policy": "compact"})
        trial.add("late", 5)
        summary = running.ended()

    assert summary.state == "FAILED"
    assert "deleted and made anew" in summary.error
    assert trial.values_of("early") == trial.pieces["early"]
    assert trial.values_of("late") == []


def test_a_body_that_breaks_costs_what_is_missing(trial):
    """Finding 3: a body that breaks again and again is fetched once altogether, from where it broke."""
    trial.add("one", 3000)
    size = sum(len(record) + 1 for record in trial.pieces["one"])
    trial.harness.faulty.script(*[CutBody(size // 8)] * 5)

    trial.run()

    assert trial.values() == trial.everything()
    assert sum(get.sent for get in trial.harness.faulty.gets) == size
