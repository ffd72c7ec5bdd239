"""`headrace plan`: the work list, and nothing else happens."""

import json
from pathlib import Path

from confluent_kafka.admin import AdminClient

from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey

LINES = b'{"n":1}\n{"n":2}\n{"n":3}\n'


def store(connector, offsets):
    """Have progress stored as a run would, and the run stopped."""
    partitions = ensure_offsets_topic(connector.settings)
    claim = Claim.take(connector.settings, partitions=partitions, tasks=1)
    bucket = connector.props["aws.s3.bucket.name"]
    keyed = {OffsetManagerKey({"bucket": bucket, "objectKey": name}): offset for name, offset in offsets.items()}
    claim._commit(claim.view.records_for(keyed))
    claim.stopped()
    claim.close()


def topics(connector):
    return set(AdminClient({"bootstrap.servers": connector.props["bootstrap.servers"]}).list_topics(timeout=30).topics)


def test_a_connector_that_has_not_run(as_json, connector):
    """Without an offsets topic everything is unread, and the topic is not made; the next records are shown."""
    connector.put("a.jsonl", LINES)
    connector.put("b.jsonl", LINES * 100)

    code, document = as_json("plan", connector.file)

    assert code == 0
    objects = {one["key"]: one for one in document["objects"]}
    assert {one["task"] for one in objects.values()} == {0, 1}
    assert objects["a.jsonl"] | {"task": 0} == {
        "key": "a.jsonl",
        "task": 0,
        "bytes": len(LINES),
        "records_done": 0,
        "byte": 0,
        "complete": False,
        "topic": connector.props["topic"],
        "get_calls": 1,
        "first_record": '{"n":1}',
        "error": None,
    }
    totals = {"objects": 2, "complete": 0, "to_read": 2, "bytes": 101 * len(LINES), "list_calls": 1, "get_calls": 2}
    assert totals.items() <= document["totals"].items()
    assert connector.props["offset.storage.topic"] not in topics(connector)
    assert connector.values() == []


def test_progress_is_taken_into_account(as_json, connector):
    """A finished object is complete and not opened; in a started one the record that comes next is shown."""
    for name in ("done.jsonl", "fresh.jsonl", "started.jsonl"):
        connector.put(name, LINES)
    store(
        connector,
        {
            "done.jsonl": {"recordCount": 3, "byteOffset": 24, "line": 3, "complete": True},
            "started.jsonl": {"recordCount": 1, "byteOffset": 8, "line": 1},
        },
    )
    before = connector.view()

    code, document = as_json("plan", connector.file)

    assert code == 0
    shown = ("key", "records_done", "byte", "complete", "first_record")
    assert [tuple(one[name] for name in shown) for one in document["objects"]] == [
        ("done.jsonl", 3, 24, True, None),
        ("fresh.jsonl", 0, 0, False, '{"n":1}'),
        ("started.jsonl", 1, 8, False, '{"n":2}'),
    ]
    totals = document["totals"]
    # A started object is opened twice: its first bytes say how it is compressed.
    assert (totals["complete"], totals["to_read"], totals["bytes_to_read"], totals["get_calls"]) == (1, 2, 40, 3)
    after = connector.view()
    assert (after.entries, after.beside) == (before.entries, before.beside)


def test_only_a_few_objects_are_opened(as_json, headrace, connector):
    """With --first N no more than N objects are opened, and the output says so."""
    for number in range(5):
        connector.put(f"{number}.jsonl", LINES)

    _, document = as_json("plan", connector.file, "--first", "2")
    assert [one["first_record"] is not None for one in document["objects"]] == [True, True, False, False, False]
    assert document["totals"]["get_calls"] == 2

    done = headrace("plan", connector.file, "--first", "2")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "the next record is shown of 2 of them; --first shows more"
    assert "5 objects, 0 complete, 5 to read with 120 bytes\n" in done.stdout
    assert "makes about 1 LIST and 5 GET requests; this look made 1 and 2\n" in done.stdout


def test_the_requests_of_a_run_are_estimated(as_json, connector):
    """The totals say how many LIST and GET requests a bounded run makes, and it makes as many."""
    for name in ("done.jsonl", "fresh.jsonl", "other.jsonl", "started.jsonl"):
        connector.put(name, LINES)
    store(connector, {"done.jsonl": {"recordCount": 3, "byteOffset": 24, "line": 3, "complete": True}})
    pages = ("--set", "aws.s3.fetch.page.size=2")

    _, document = as_json("plan", connector.file, "--first", "0", *pages)
    totals = document["totals"]
    assert (totals["estimated_list_calls"], totals["estimated_get_calls"]) == (2, 3)

    store(connector, {"started.jsonl": {"recordCount": 1, "byteOffset": 8, "line": 1}})
    _, document = as_json("plan", connector.file, "--first", "0", *pages)
    assert document["totals"]["estimated_get_calls"] == 4
    _, document = as_json("plan", connector.file, "--first", "0", *pages, "--set", "file.compression.type=none")
    assert document["totals"]["estimated_get_calls"] == 3


def test_a_bad_record(as_json, headrace, connector):
    """What is wrong with a record is said beside its object, with its line; exit code 1."""
    connector.put("bad.jsonl", b"oops\n")
    connector.put("good.jsonl", LINES)

    code, document = as_json("plan", connector.file)
    assert code == 1
    assert [one["error"] is None for one in document["objects"]] == [False, True]
    assert f"{connector.name}, task " in document["objects"][0]["error"]
    assert "bad.jsonl, line 1:" in document["objects"][0]["error"]

    done = headrace("plan", connector.file)
    assert done.returncode == 1
    assert "bad.jsonl, line 1:" in done.stderr


def test_a_whole_object_as_one_record(as_json, connector):
    """Of an object that is one record only the beginning is read."""
    connector.put("whole.bin", b"0123456789" * 100_000)

    code, document = as_json("plan", connector.file, "--set", "input.format=bytes")

    assert code == 0
    assert document["objects"][0]["first_record"].startswith("0123456789")
    assert len(document["objects"][0]["first_record"]) < 5000


def test_the_topic_comes_from_the_name(as_json, connector):
    """The target topic of each object is the one that its name gives, where the configuration says so."""
    connector.put("orders-7.jsonl", LINES)
    props = {key: value for key, value in connector.props.items() if key != "topic"}
    Path(connector.file).write_text(json.dumps(props | {"file.name.template": "{{topic}}-{{partition}}"}))

    _, document = as_json("plan", connector.file)
    assert [one["topic"] for one in document["objects"]] == ["orders"]


def test_a_bucket_that_is_missing(as_json, connector):
    """What would fail the run fails the plan: exit code 1, one document, the bucket by name."""
    code, document = as_json("plan", connector.file, "--set", "aws.s3.bucket.name=no-such-bucket")
    assert (code, document["state"]) == (1, "FAILED")
    assert "discover" in document["error"].lower()
    assert "no-such-bucket" in document["error"]


def test_a_wrong_key(as_json, connector):
    """A fault of the configuration is exit code 2, as for every command."""
    code, document = as_json("plan", connector.file, "--set", "task.max=3")
    assert (code, document["state"], document["errors"][0]["suggestion"]) == (2, "INVALID", "tasks.max")


def test_a_plain_task(headrace, program, tmp_path):
    """A task that lists by itself has no plan, and the output says why."""
    (tmp_path / "mine.py").write_text(
        "from headrace.framework.config import SourceCommonConfig\n"
        "from headrace.framework.task import AbstractSourceTask\n"
        "class Mine(AbstractSourceTask):\n"
        "    def configure(self, props): return SourceCommonConfig.from_props(props)\n"
        "    def get_iterator(self, backoff): return iter(())\n"
        "    def close_resources(self): pass\n"
    )
    (tmp_path / "mine.json").write_text(
        json.dumps({"name": "mine", "connector.class": "mine:Mine", "bootstrap.servers": "127.0.0.1:1", "topic": "t"})
    )
    program["env"]["PYTHONPATH"] = str(tmp_path)

    done = headrace("plan", "mine.json")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mine: a plain task lists what it reads by itself")
