"""`headrace offsets set`, `export` and `import`, on a real broker."""

import json

import pytest
from confluent_kafka import Producer

from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.errors import OffsetsError, SinkError, TakenOverError
from headrace.offsets.codec import encode_key
from headrace.offsets.kafka.altering import claimed
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.testing import create_topic, read_topic


def object_key(connector, name):
    return {"bucket": connector.props["aws.s3.bucket.name"], "objectKey": name}


def body(connector, **offsets):
    """A body of one entry for each object."""
    entries = [{"partition": object_key(connector, name), "offset": offset} for name, offset in offsets.items()]
    return json.dumps({"offsets": entries})


def put_raw(connector, *records):
    """Write raw keys and values, as whoever wrote the topic before us."""
    ensure_offsets_topic(connector.settings)
    producer = Producer(connector.settings.producer_config())
    for key, value in records:
        producer.produce(connector.settings.offsets_topic, value, key)
    producer.flush()


def stopped(connector, **offsets):
    """A connector that has run, stored these offsets, and was stopped."""
    with claimed(connector.settings, force=True) as claim:
        for name, offset in offsets.items():
            claim.put([(encode_key(connector.name, object_key(connector, name)), json.dumps(offset).encode())])


@pytest.fixture
def given(tmp_path):
    """A file with a body in it."""

    def write(text):
        path = tmp_path / "body.json"
        path.write_text(text)
        return str(path)

    return write


class TestSet:
    def test_entries_are_stored_and_forgotten(self, as_json, connector, given):
        """What the body names is stored, null forgets, whatever it does not name stays; the connector is stopped."""
        stopped(connector, a={"recordCount": 1}, b={"recordCount": 2}, c={"recordCount": 3})
        change = given(body(connector, a={"recordCount": 9, "note": "by hand"}, b=None, d={"recordCount": 4}))

        code, document = as_json("offsets", "set", connector.file, "--body", change)

        assert (code, document["stored"], document["forgotten"]) == (0, 2, 1)
        assert document["message"] == "The offsets for this connector have been altered successfully"
        assert connector.offsets() == {
            "a": {"recordCount": 9, "note": "by hand"},
            "c": {"recordCount": 3},
            "d": {"recordCount": 4},
        }
        assert connector.view().generation.stopped

    def test_every_spelling_of_a_key_is_replaced(self, connector):
        """An entry that stands under other orders and spellings of its key has one key afterwards, or none."""
        stopped(connector)
        bucket = connector.props["aws.s3.bucket.name"]
        for name in ("x", "y"):
            put_raw(
                connector,
                (f'["{connector.name}",{{"objectKey":"{name}","bucket":"{bucket}"}}]'.encode(), b'{"recordCount":8}'),
                (
                    f'["{connector.name}", {{"bucket": "{bucket}", "objectKey": "{name}"}}]'.encode(),
                    b'{"recordCount":9}',
                ),
            )
        opened = OpenedConnector.of(connector.props)
        backwards = dict(reversed(object_key(connector, "x").items()))

        opened.alter([(backwards, {"recordCount": 1}), (object_key(connector, "y"), None)], force=False)

        assert connector.view().entries == {
            encode_key(connector.name, object_key(connector, "x")): b'{"recordCount":1}'
        }

    def test_the_body_may_come_from_standard_input(self, connector, program):
        """Without a path the body is read from standard input."""
        import subprocess

        stopped(connector)
        done = subprocess.run(
            [*program["argv"], "offsets", "set", connector.file],
            input=body(connector, a={"recordCount": 5}),
            cwd=program["cwd"],
            env=program["env"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert connector.offsets() == {"a": {"recordCount": 5}}

    def test_a_faulty_body_changes_nothing(self, as_json, connector, given):
        """Every fault is said with its entry and the name that was meant, exit code 2, and nothing is stored."""
        stopped(connector)
        faulty = {
            "offsets": [
                {"partition": object_key(connector, "fine"), "offset": {"recordCount": 1}},
                {"partition": {"bucket": "b", "objectkey": "k"}, "offset": {"recordcount": 2}},
            ]
        }

        code, document = as_json("offsets", "set", connector.file, "--body", given(json.dumps(faulty)))

        assert (code, document["state"]) == (2, "INVALID")
        told = {error["key"]: error["suggestion"] for error in document["errors"]}
        assert told["offsets[1].partition.objectkey"] == "objectKey"
        assert told["offsets[1].offset.recordcount"] == "recordCount"
        assert connector.offsets() == {}

    def test_people_are_told_what_is_wrong(self, headrace, connector, given):
        """As text the faults stand on standard error, and it is the body that has them."""
        done = headrace("offsets", "set", connector.file, "--body", given('{"offsets": [{"partition": {"a": {}}}]}'))
        assert done.returncode == 2
        assert done.stderr.splitlines()[0] == "headrace: the body of offsets has 2 faults"
        assert "offsets[0].offset: is missing; null forgets the entry" in done.stderr

    def test_a_bucket_of_others_is_remarked_on(self, headrace, connector, given):
        """An entry of another bucket is stored, as the connector may have changed its own, and a warning says so."""
        stopped(connector)
        text = json.dumps(
            {"offsets": [{"partition": {"bucket": "else", "objectKey": "k"}, "offset": {"recordCount": 1}}]}
        )
        done = headrace("offsets", "set", connector.file, "--body", given(text))
        assert done.returncode == 0
        assert "warning: offsets[0]: its bucket is else" in done.stderr

    def test_a_running_connector_is_left_alone(self, as_json, connector, given):
        """Kafka Connect's rule, in its words; with --force the run is ended first."""
        partitions = ensure_offsets_topic(connector.settings)
        claim = Claim.take(connector.settings, partitions=partitions, tasks=1)
        change = given(body(connector, a={"recordCount": 1}))

        code, document = as_json("offsets", "set", connector.file, "--body", change)
        assert (code, document["state"]) == (1, "FAILED")
        assert "must be in the STOPPED state before their offsets can be modified" in document["error"]
        assert connector.offsets() == {}
        claim.follow()

        code, document = as_json("offsets", "set", connector.file, "--body", change, "--force")
        assert (code, document["stored"]) == (0, 1)
        assert connector.offsets() == {"a": {"recordCount": 1}}
        with pytest.raises(TakenOverError):
            claim.stopped()
        claim.close()

    def test_all_or_nothing(self, connector):
        """Where one record cannot be written none is, and the connector is stopped all the same."""
        stopped(connector, before={"recordCount": 1})
        good = encode_key(connector.name, object_key(connector, "good"))
        with pytest.raises(SinkError), claimed(connector.settings) as claim:
            claim.put([(good, b"{}"), (b"large", b"x" * 2_000_000)])

        assert connector.offsets() == {"before": {"recordCount": 1}}
        assert connector.view().generation.stopped

    def test_a_topic_that_would_forget(self, connector):
        """An offsets topic that is not compacted is refused with what to do about it."""
        create_topic(connector.settings.bootstrap_servers, connector.settings.offsets_topic, partitions=3)
        opened = OpenedConnector.of(connector.props)
        with pytest.raises(OffsetsError, match=r"cleanup\.policy=delete and would forget progress: alter it"):
            opened.alter([(object_key(connector, "a"), {"recordCount": 1})], force=True)


class TestExportAndImport:
    def test_import_brings_back_what_export_wrote(self, headrace, as_json, connector, tmp_path):
        """Entries that have changed since are as they were, those that have come are forgotten, those gone are back."""
        before = {"a": {"recordCount": 1, "etag": "e", "complete": True}, "ü\n": {"recordCount": 2}}
        stopped(connector, **before)
        file = str(tmp_path / "kept.json")
        assert headrace("offsets", "export", connector.file, "--to", file).returncode == 0
        stopped(connector, a={"recordCount": 7}, later={"recordCount": 3})
        OpenedConnector.of(connector.props).alter([(object_key(connector, "ü\n"), None)], force=False)

        code, document = as_json("offsets", "import", connector.file, "--from", file)

        assert (code, document["stored"], document["forgotten"]) == (0, 2, 1)
        assert connector.offsets() == before

    def test_export_is_what_list_shows(self, headrace, connector):
        """On standard output it is the body of Kafka Connect's REST API; nothing is written to the topic."""
        stopped(connector, a={"recordCount": 1})
        before = len(read_topic(connector.settings.bootstrap_servers, connector.settings.offsets_topic))
        exported = headrace("offsets", "export", connector.file)
        listed = headrace("offsets", "list", connector.file, "--output", "json")
        assert exported.stdout == listed.stdout
        assert json.loads(exported.stdout) == json.loads(body(connector, a={"recordCount": 1}))
        assert len(read_topic(connector.settings.bootstrap_servers, connector.settings.offsets_topic)) == before

    def test_an_export_of_nothing_leaves_nothing(self, headrace, as_json, connector, tmp_path):
        """A connector without entries is exported, too, and importing that forgets everything."""
        file = tmp_path / "empty.json"
        assert headrace("offsets", "export", connector.file, "--to", str(file)).returncode == 0
        assert json.loads(file.read_text()) == {"offsets": []}
        stopped(connector, a={"recordCount": 1})
        code, document = as_json("offsets", "import", connector.file, "--from", str(file))
        assert (code, document["forgotten"], connector.offsets()) == (0, 1, {})

    def test_a_running_connector_is_left_alone(self, as_json, connector, given):
        """Nothing is imported under a run; with --force the run is ended first."""
        stopped(connector, a={"recordCount": 1})
        partitions = ensure_offsets_topic(connector.settings)
        claim = Claim.take(connector.settings, partitions=partitions, tasks=1)
        file = given(body(connector, b={"recordCount": 2}))

        code, document = as_json("offsets", "import", connector.file, "--from", file)
        assert (code, document["state"]) == (1, "FAILED")
        assert "must be in the STOPPED state before their offsets can be modified" in document["error"]
        assert connector.offsets() == {"a": {"recordCount": 1}}
        claim.follow()

        code, document = as_json("offsets", "import", connector.file, "--from", file, "--force")
        assert (code, document["stored"], document["forgotten"]) == (0, 1, 1)
        assert connector.offsets() == {"b": {"recordCount": 2}}
        with pytest.raises(TakenOverError):
            claim.stopped()
        claim.close()

    def test_a_failed_export_leaves_the_file_alone(self, headrace, connector, tmp_path):
        """Where nothing could be exported, what was exported before is still there."""
        file = tmp_path / "kept.json"
        file.write_text("precious")
        done = headrace("offsets", "export", connector.file, "--to", str(file), "--set", "task.max=3")
        assert (done.returncode, file.read_text()) == (2, "precious")
