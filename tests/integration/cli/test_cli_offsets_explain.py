"""`headrace offsets explain`: why an object was, is or is not read."""

import pytest
from confluent_kafka import Producer

from headrace.framework.driver.altering import OpenedConnector, explain
from headrace.framework.errors import SourceError
from headrace.framework.run import Run, on_threads
from headrace.framework.source_offsets import State
from headrace.offsets.codec import encode_key
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.topic import ensure_offsets_topic

LINES = b'{"n":1}\n{"n":2}\n{"n":3}\n'


def run(connector):
    assert Run(props=connector.props, bounded=True, engine=on_threads).go().error is None


def store(connector, **offsets):
    bucket = connector.props["aws.s3.bucket.name"]
    entries = [({"bucket": bucket, "objectKey": name}, offset) for name, offset in offsets.items()]
    OpenedConnector.of(connector.props).alter(entries, force=True)


def explained(connector, name, **others):
    props = {**connector.props, **{key.replace("__", "."): value for key, value in others.items()}}
    return explain(props, name)[0]


def failed(found):
    """The names of what an object does not pass."""
    return [check.name for check in found.checks if check.passed is False]


def test_an_object_that_was_read(connector):
    """Complete, with its position, the version that was read, and the task that a run would give it to."""
    connector.put("a", LINES)
    run(connector)

    found = explained(connector, "a", distribution__type="object_hash")

    assert (found.state, found.records_done, found.byte) == (State.COMPLETE, 3, len(LINES))
    assert found.task == ord("a") % 2
    assert failed(found) == []
    assert {check.name: check.passed for check in found.checks}["version"] is True
    assert found.offset["complete"] is True
    assert found.found["size"] == len(LINES)


def test_the_same_by_its_uri(connector):
    """An object may be named as S3 tools name it; one of another bucket is not the connector's."""
    connector.put("dir/a", LINES)
    bucket = connector.props["aws.s3.bucket.name"]
    assert explained(connector, f"s3://{bucket}/dir/a") == explained(connector, "dir/a")
    connector.s3.create_bucket(Bucket=f"{bucket}-2")
    connector.s3.put_object(Bucket=f"{bucket}-2", Key="a", Body=LINES)
    other = explained(connector, f"s3://{bucket}-2/a")
    assert (other.state, failed(other)) == (State.LEFT_OUT, ["bucket"])
    with pytest.raises(SourceError, match="names no object"):
        explained(connector, "s3://only-a-bucket")


def test_an_object_that_was_not_read_yet(connector):
    """Unseen, also where there is no offsets topic; which task has it, `balanced` says only with a whole listing."""
    connector.put("a", LINES)
    found, topic_exists = explain(connector.props, "a")
    assert (found.state, found.task, failed(found), topic_exists) == (State.UNSEEN, None, [], False)
    assert "headrace plan" in found.checks[-1].says


def test_an_object_that_was_begun(connector):
    """Partial, with the record that comes next."""
    connector.put("a", LINES)
    store(connector, a={"recordCount": 2})
    found = explained(connector, "a")
    assert (found.state, found.records_done) == (State.PARTIAL, 2)
    assert "goes on with record 3" in found.reason


@pytest.mark.parametrize(
    ("key", "body", "config", "check"),
    [
        ("a.csv", LINES, {"file__name__template": r"\.jsonl$"}, "name"),
        ("old/a", LINES, {"aws__s3__prefix": "new/"}, "prefix"),
        ("2023", LINES, {"native__start__key": "2023"}, "start key"),
        ("empty", b"", {}, "size"),
        ("folder/", b"", {}, "size"),
    ],
)
def test_an_object_that_is_left_out(connector, key, body, config, check):
    """Left out, and the one thing that keeps it out is named."""
    connector.put(key, body)
    found = explained(connector, key, **config)
    assert (found.state, failed(found)) == (State.LEFT_OUT, [check])
    assert check in found.reason


def test_a_directory_is_called_one(connector):
    """An empty object that stands for a directory is not just empty."""
    connector.put("folder/", b"")
    assert "only stands for a directory" in explained(connector, "folder/").reason


def test_an_object_in_an_archive(connector):
    """Left out by its storage class, with what to do about it."""
    connector.s3.put_object(
        Bucket=connector.props["aws.s3.bucket.name"], Key="cold", Body=LINES, StorageClass="GLACIER"
    )
    found = explained(connector, "cold")
    assert (found.state, failed(found)) == (State.LEFT_OUT, ["storage class"])
    assert "have it restored" in found.reason


@pytest.mark.parametrize(
    ("policy", "state", "word"),
    [
        ("reread", State.CHANGED, "reads it again"),
        ("ignore", State.CHANGED, "leaves it out"),
        ("fail", State.FAILS, "fails the run"),
    ],
)
def test_an_object_that_was_overwritten(connector, policy, state, word):
    """Both versions are named, and what the policy makes of it."""
    connector.put("a", LINES)
    store(connector, a={"recordCount": 3, "etag": "of-before", "complete": True})
    found = explained(connector, "a", s3__overwrite__policy=policy)
    assert (found.state, failed(found)) == (state, ["version"])
    assert word in found.reason
    assert "of-before was read" in next(check.says for check in found.checks if check.name == "version")


def test_an_object_that_no_task_claims(connector):
    """With a strategy that goes by the name's partition, an object without one would fail the run."""
    connector.put("no-partition", LINES)
    found = explained(
        connector, "no-partition", distribution__type="partition", file__name__template="(?:{{partition}})?"
    )
    assert (found.state, failed(found)) == (State.FAILS, ["task"])


def test_an_object_that_is_gone(connector):
    """Known to the offsets only, with how far it was read; one that nobody knows is missing."""
    connector.put("near", LINES)
    store(connector, gone={"recordCount": 7, "complete": True})
    found = explained(connector, "gone")
    assert (found.state, found.records_done, found.offset["recordCount"]) == (State.OFFSETS_ONLY, 7, 7)
    assert explained(connector, "nea").state is State.MISSING


def put_raw(connector, **values):
    """Write raw values, as whoever wrote the topic before us."""
    ensure_offsets_topic(connector.settings)
    producer = Producer(connector.settings.producer_config())
    bucket = connector.props["aws.s3.bucket.name"]
    for name, value in values.items():
        key = encode_key(connector.name, {"bucket": bucket, "objectKey": name})
        producer.produce(connector.settings.offsets_topic, value, key)
    producer.flush()


def test_an_entry_that_cannot_be_read(connector):
    """That something is stored, what is wrong with it and what to do is said; a run reads the object."""
    connector.put("a", LINES)
    put_raw(connector, a=b'{"recordCount":{"of":2}}', gone=b"not JSON")
    found, gone = explained(connector, "a"), explained(connector, "gone")
    says = {check.name: check.says for check in found.checks}
    assert (found.state, failed(found)) == (State.UNSEEN, [])
    assert "cannot be read, so it counts as never read: the value" in says["offset"]
    assert "headrace offsets set" in says["offset"]
    assert (gone.state, [check.name for check in gone.checks]) == (State.OFFSETS_ONLY, ["in the bucket", "offset"])


def test_an_entry_that_cannot_be(connector):
    """What would fail a run is said to do so, with what to do, beside everything else that is known of the object."""
    connector.put("a", LINES)
    put_raw(connector, a=b'{"recordCount":-1}')
    found = explained(connector, "a")
    assert (found.state, failed(found)) == (State.FAILS, ["offset"])
    assert "recordCount=-1 is less than 0; mend it with headrace offsets set" in found.reason
    assert found.offset == {"recordCount": -1}


def test_a_listing_or_two_requests_are_all_it_takes(connector):
    """A run goes on undisturbed: nobody is fenced and nothing is written."""
    connector.put("a", LINES)
    partitions = ensure_offsets_topic(connector.settings)
    claim = Claim.take(connector.settings, partitions=partitions, tasks=1)
    before = connector.view()
    explained(connector, "a")
    assert (connector.view().entries, connector.view().beside) == (before.entries, before.beside)
    claim.follow()
    claim.stopped()
    claim.close()


def test_on_the_command_line(headrace, as_json, connector):
    """People get the answer in its first line and every question below; programs get one document."""
    connector.put("a", b"")

    done = headrace("offsets", "explain", connector.file, "a")
    assert done.returncode == 0
    first, *rest = done.stdout.splitlines()
    assert first.endswith("/a: left out: a run does not read it (size): it is empty")
    assert any(line.split()[:2] == ["size", "NO"] for line in rest)

    code, document = as_json("offsets", "explain", connector.file, "a")
    assert (code, document["state"], document["offset"]) == (0, "left_out", None)
    assert {"name": "size", "passed": False, "says": "it is empty"} in document["checks"]


def test_what_cannot_be_reached(as_json, connector):
    """A bucket that is not there is a failure that names it, exit code 1."""
    code, document = as_json("offsets", "explain", connector.file, "a", "--set", "aws.s3.bucket.name=no-such-bucket")
    assert (code, document["state"]) == (1, "FAILED")
    assert "no-such-bucket" in document["error"]


def test_a_source_that_cannot_say(headrace, program, tmp_path, kafka_bootstrap_servers):
    """A task that lists by itself has nothing to explain, and the answer says where to look."""
    (tmp_path / "mine.py").write_text(
        "from headrace.framework.config import SourceCommonConfig\n"
        "from headrace.framework.task import AbstractSourceTask\n"
        "class Mine(AbstractSourceTask):\n"
        "    def configure(self, props): return SourceCommonConfig.from_props(props)\n"
        "    def get_iterator(self, backoff): return iter(())\n"
        "    def close_resources(self): pass\n"
    )
    (tmp_path / "mine.properties").write_text(
        f"name=mine\nconnector.class=mine:Mine\nbootstrap.servers={kafka_bootstrap_servers}\ntopic=t\n"
        "offset.storage.topic=no-such-topic\n"
    )
    program["env"]["PYTHONPATH"] = str(tmp_path)
    done = headrace("offsets", "explain", "mine.properties", "it")
    assert done.returncode == 1
    assert "cannot explain single pieces; see headrace offsets list" in done.stderr
