"""`headrace dlq` as a person uses it: bad records found, the object repaired, and just those records sent."""

import json
from pathlib import Path

import pytest

GOOD = [b'{"n":%d}' % number for number in range(40)]


@pytest.fixture
def tolerant(connector):
    """The connector of the test, which passes over bad records, and leaves repaired objects to the replay."""
    connector.props.update(
        {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"dead-{connector.name}",
            "s3.overwrite.policy": "ignore",
        }
    )
    Path(connector.file).write_text(json.dumps({"name": connector.name, "config": connector.props}))
    return connector


def lines(records):
    return b"".join(record + b"\n" for record in records)


def drain(as_json, connector):
    code, summary = as_json("run", connector.file, "--available-now", "--engine", "local")
    assert code == 0, summary
    return summary


def test_letters_are_listed_with_their_places(tolerant, as_json, headrace):
    """A letter says which object, record and bytes it is of, as a table and as JSON; other objects can be left out."""
    tolerant.put("a.jsonl", lines([*GOOD[:2], b"bad", *GOOD[2:4]]))
    tolerant.put("b.jsonl", lines([b"worse"]))
    summary = drain(as_json, tolerant)
    assert (summary["records"], summary["dead_lettered"]) == (4, 2)
    assert any("dlq list" in warning for warning in summary["warnings"])

    code, found = as_json("dlq", "list", tolerant.file, "--object", "a.*")

    [letter] = found["letters"]
    assert (code, letter["record"], letter["byte_start"], letter["byte_end"]) == (0, 3, 16, 20)
    assert letter["source_partition"]["objectKey"] == "a.jsonl"
    assert letter["object"].endswith("/a.jsonl")
    assert letter["etag"]
    assert "line 3" in letter["error"]
    table = headrace("dlq", "list", tolerant.file).stdout
    assert "16-20" in table
    assert "b.jsonl" in table


def test_without_a_topic_there_is_nothing(tolerant, as_json):
    """Before the first run there are no letters, and a configuration that names no topic for them is at fault."""
    assert as_json("dlq", "list", tolerant.file)[1]["letters"] == []
    code, said = as_json("dlq", "list", tolerant.file, "--set", "errors.deadletterqueue.topic.name=")
    assert (code, said["errors"][0]["key"]) == (2, "errors.deadletterqueue.topic.name")


@pytest.mark.parametrize(
    ("repaired", "expected"),
    [
        pytest.param(b'{"x":1}', b'{"x":1}', id="same-length"),
        pytest.param(b' {"x":1,"much":"longer"} ', b'{"x":1,"much":"longer"}', id="longer"),
        pytest.param(b"3", b"3", id="shorter"),
    ],
)
def test_a_repaired_object_gives_just_its_bad_records(tolerant, as_json, repaired, expected):
    """After a repair a replay sends the record that was bad and no other, once; a second one has nothing to send."""
    bad = b"{'x':1}"
    tolerant.put("a.jsonl", lines([*GOOD[:20], bad, *GOOD[20:], bad]))
    drain(as_json, tolerant)
    assert sorted(tolerant.values()) == sorted(GOOD)
    code, still = as_json("dlq", "replay", tolerant.file)
    assert (code, still["replayed"], still["left"]) == (1, 0, 2)
    assert all("line" in letter["error"] for letter in still["letters"])

    tolerant.put("a.jsonl", lines([*GOOD[:20], repaired, *GOOD[20:], repaired]))
    code, done = as_json("dlq", "replay", tolerant.file)
    again_code, again = as_json("dlq", "replay", tolerant.file)

    assert (code, done["replayed"], done["records"], done["left"]) == (0, 2, 2, 0)
    assert (again_code, again["replayed"]) == (0, 0)
    assert sorted(tolerant.values()) == sorted([*GOOD, expected, expected])
    assert drain(as_json, tolerant)["records"] == 0
    assert as_json("dlq", "list", tolerant.file)[1]["letters"] == []


def test_a_line_that_was_two_records_gives_both(tolerant, as_json):
    """A line in which an end was missing is mended at the cost of a space, and both of its records are sent."""
    tolerant.put("a.jsonl", lines([GOOD[0], GOOD[1] + b" " + GOOD[2], GOOD[3]]))
    assert drain(as_json, tolerant)["dead_lettered"] == 1
    tolerant.put("a.jsonl", lines(GOOD[:4]))

    code, done = as_json("dlq", "replay", tolerant.file)

    assert (code, done["replayed"], done["records"]) == (0, 1, 2)
    assert sorted(tolerant.values()) == sorted(GOOD[:4])


def test_a_repaired_configuration_is_enough(tolerant, as_json):
    """What was bad by the configuration is sent once that takes it, from the same bytes of the same object."""
    long = b'{"text":"%s"}' % (b"x" * 3000)
    tolerant.put("a.jsonl", lines([GOOD[0], long, GOOD[1]]))
    code, summary = as_json(
        "run", tolerant.file, "--available-now", "--engine", "local", "--set", "max.record.bytes=100"
    )
    assert (code, summary["dead_lettered"]) == (0, 1)

    code, done = as_json("dlq", "replay", tolerant.file)

    assert (code, done["records"]) == (0, 1)
    assert sorted(tolerant.values()) == sorted([GOOD[0], long, GOOD[1]])


def test_what_is_gone_stays_a_letter(tolerant, as_json, headrace):
    """A letter of an object that is gone is named with that reason, stays, and does not hold up others."""
    tolerant.put("a.jsonl", lines([b"bad", GOOD[0]]))
    tolerant.put("b.jsonl", lines([b"bad", GOOD[1]]))
    drain(as_json, tolerant)
    tolerant.s3.delete_object(Bucket=tolerant.props["aws.s3.bucket.name"], Key="a.jsonl")
    tolerant.put("b.jsonl", lines([GOOD[2], GOOD[1]]))

    said = headrace("dlq", "replay", tolerant.file)

    assert said.returncode == 1
    assert said.stdout == "1 dead letters replayed as 1 records, 1 left\n"
    assert "a.jsonl" in said.stderr
    assert "gone" in said.stderr
    assert sorted(tolerant.values()) == sorted(GOOD[:3])
