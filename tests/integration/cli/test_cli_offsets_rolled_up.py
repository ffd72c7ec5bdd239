"""`headrace offsets` over a connector whose finished objects are rolled up."""

import json

import pytest

from headrace.offsets.codec import encode_key
from headrace.testing import create_topic
from headrace.testing.faulty_s3 import FaultyS3

LOCAL = ("--engine", "local", "--available-now")
LINE = b'{"a":1}\n'
NAMES = ("a", "b", "c")


@pytest.fixture
def rolled_up(connector, as_json):
    """Three objects, read and rolled up; and what a run says and does."""
    for name in NAMES:
        connector.put(name, LINE)
    run_again(connector, as_json, records=3)
    return connector


def run_again(connector, as_json, *others, records):
    code, summary = as_json("run", connector.file, *LOCAL, "--set", "offsets.rollup.min.entries=1", *others)
    assert (code, summary["state"], summary["records"]) == (0, "COMPLETED", records)


def key(connector, name):
    return {"bucket": connector.props["aws.s3.bucket.name"], "objectKey": name}


def test_list_says_how_many_there_are(rolled_up, headrace):
    """The list has entries only, and a word about those that have none any more."""
    done = headrace("offsets", "list", rolled_up.file, "--output", "json")
    assert json.loads(done.stdout) == {"offsets": []}
    assert "3 more are finished and rolled up" in done.stderr


def test_explain_knows_each(rolled_up, as_json):
    """A finished object, one that was overwritten, one that is gone, and one that was never seen."""
    rolled_up.put("b", LINE * 2)
    rolled_up.s3.delete_object(Bucket=rolled_up.props["aws.s3.bucket.name"], Key="c")
    rolled_up.put("d", LINE)
    told = {name: as_json("offsets", "explain", rolled_up.file, name)[1] for name in "abcd"}
    assert {name: (one["state"], one["rolled_up"]) for name, one in told.items()} == {
        "a": ("complete", True),
        "b": ("changed", True),
        "c": ("offsets_only", True),
        "d": ("unseen", False),
    }


def test_what_is_forgotten_is_read_again(rolled_up, as_json, tmp_path):
    """`set` with null takes an object out of the roll-up, and leaves the others in."""
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"offsets": [{"partition": key(rolled_up, "b"), "offset": None}]}))
    assert as_json("offsets", "set", rolled_up.file, "--body", str(body))[0] == 0
    run_again(rolled_up, as_json, records=1)


def test_an_export_has_the_roll_up_with_it(rolled_up, as_json, headrace, tmp_path):
    """What was exported and is imported after a reset is the progress that there was."""
    file = tmp_path / "exported.json"
    assert headrace("offsets", "export", rolled_up.file, "--to", str(file)).returncode == 0
    assert as_json("offsets", "reset", rolled_up.file)[0] == 0
    assert as_json("offsets", "import", rolled_up.file, "--from", str(file))[0] == 0
    assert headrace("offsets", "export", rolled_up.file).stdout == file.read_text()
    run_again(rolled_up, as_json, records=0)


def test_set_takes_no_roll_up(rolled_up, headrace, tmp_path):
    """It changes single entries; a body that replaces everything is for `import`."""
    file = tmp_path / "exported.json"
    headrace("offsets", "export", rolled_up.file, "--to", str(file))
    done = headrace("offsets", "set", rolled_up.file, "--body", str(file))
    assert done.returncode == 2
    assert "rolledUp" in done.stderr


@pytest.mark.parametrize("shards", ["[]", '{"x": ""}', '{"1": "%%"}', '{"1": "AgAAAAAA"}'])
def test_a_roll_up_that_cannot_be_read_is_refused(connector, headrace, tmp_path, shards):
    """Nothing is stored of a body whose roll-up is not what export writes."""
    file = tmp_path / "body.json"
    file.write_text(f'{{"offsets": [], "rolledUp": {shards}}}')
    done = headrace("offsets", "import", connector.file, "--from", str(file), "--force")
    assert done.returncode == 2
    assert "rolledUp is not what export has written" in done.stderr.replace(":", "")


def test_the_way_back_to_kafka_connect_names_each(rolled_up, as_json):
    """`migrate --to-connect` writes an entry for every object of the bucket that is rolled up, in both orders."""
    code, told = as_json("offsets", "migrate", rolled_up.file, "--to-connect", "--apply")
    assert (code, told["keys"], told["totals"]["complete"]) == (0, 6, 3)
    code, listed = as_json("offsets", "list", rolled_up.file)
    offsets = {one["partition"]["objectKey"]: one["offset"]["recordCount"] for one in listed["offsets"]}
    assert offsets == dict.fromkeys(NAMES, 2**31 - 1)
    run_again(rolled_up, as_json, records=0)


def test_on_the_way_back_versions_are_kept(rolled_up, as_json):
    """What is overwritten after `migrate --to-connect` is read, and what is not costs no request for it."""
    assert as_json("offsets", "migrate", rolled_up.file, "--to-connect", "--apply")[0] == 0
    for order in (1, -1):
        names = [dict([*key(rolled_up, name).items()][::order]) for name in NAMES]
        stored = [json.loads(rolled_up.view().entries[encode_key(rolled_up.name, one)]) for one in names]
        assert [(one["recordCount"], one["complete"], one["size"]) for one in stored] == [(2**31 - 1, True, 8)] * 3
        assert not any({"byteOffset", "line"} & one.keys() for one in stored)
    bucket = rolled_up.props["aws.s3.bucket.name"]
    etags = [rolled_up.s3.head_object(Bucket=bucket, Key=name)["ETag"].strip('"') for name in NAMES]
    assert [one["etag"] for one in stored] == etags
    rolled_up.put("b", LINE * 2)
    with FaultyS3(rolled_up.props["aws.s3.endpoint"]) as proxy:
        run_again(rolled_up, as_json, "--set", f"aws.s3.endpoint={proxy.endpoint}", records=2)
        assert [get.path.rpartition("/")[2] for get in proxy.gets] == ["b"]
    assert len(rolled_up.values()) == 5


def test_on_the_way_back_without_a_roll_up_nothing_is_lost(rolled_up, as_json, headrace):
    """A topic of Kafka Connect's own has versions enough for a connector that knows nothing else."""
    theirs = f"connect-{rolled_up.name}"
    create_topic(rolled_up.settings.bootstrap_servers, theirs, partitions=3, config={"cleanup.policy": "compact"})
    assert (
        headrace("offsets", "migrate", rolled_up.file, "--to-connect", "--apply", "--to-topic", theirs).returncode == 0
    )
    rolled_up.put("b", LINE * 2)
    run_again(rolled_up, as_json, "--set", f"offset.storage.topic={theirs}", records=2)
