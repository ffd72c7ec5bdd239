"""Offsets of streams and of files: what can be none is refused before it is stored, and named where it is stored."""

import pytest

from headrace.framework.errors import OffsetValueError
from headrace.framework.worker.execute import make_source
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.files.entry import FileOffsetEntry
from headrace.sources.redis.entry import RedisOffsetEntry, stream_key
from headrace.testing.split_harness import SplitHarness

STREAM = {"stream": "orders-0"}
FILE = {"filename": "/var/log/a.log"}
REDIS = {"connector.class": "redis", "redis.streams": "orders"}
FILES = {"connector.class": "files", "files.paths": "/var/log/*.log"}


def offsets_of(props):
    source, _ = make_source({"name": "n", "bootstrap.servers": "h:1", "topic": "t", **props})
    return source.source_offsets()


@pytest.mark.parametrize(
    ("partition", "offset", "keys"),
    [
        (STREAM, {"id": "5-1", "recordCount": 7, "entriesPassed": 9, "within": 1, "complete": True}, []),
        (STREAM, {"id": "5-1", "recordCount": 7, "delivery": "a:1", "others": "stay"}, []),
        (STREAM, {"id": "5-1", "within": 1, "withinId": "6-0"}, []),
        (STREAM, {"id": "5-1", "within": 1, "withinId": "next"}, ["offset.withinId"]),
        (STREAM, {"id": "abc"}, ["offset.id"]),
        (STREAM, {"id": 5}, ["offset.id"]),
        (
            STREAM,
            {"id": "5-1", "recordCount": -1, "entriesPassed": "9"},
            ["offset.recordCount", "offset.entriesPassed"],
        ),
        (STREAM, {"ID": "5-1"}, ["offset.ID"]),
        (STREAM, {"id": "5-1", "complete": "yes", "delivery": 1}, ["offset.complete", "offset.delivery"]),
        ({"stream": ""}, {"id": "5-1"}, ["partition.stream"]),
        ({"key": "orders"}, {"id": "5-1"}, ["partition.key", "partition.stream"]),
        ({"key": "orders"}, None, []),
    ],
)
def test_offsets_of_streams(partition, offset, keys):
    """An offset of a stream has an id and counts; anything may be forgotten."""
    assert [fault.key for fault in offsets_of(REDIS).faults(partition, offset)] == keys


@pytest.mark.parametrize(
    ("partition", "offset", "keys"),
    [
        (FILE, {"position": 100}, []),
        (FILE, {"position": 100, "recordCount": 7, "size": 200, "head": "ab", "complete": True}, []),
        ({**FILE, "part": 1}, {"position": 100, "recordCount": 7, "parts": 3, "cut": "ab"}, []),
        (FILE, {"position": "abc"}, ["offset.position"]),
        (FILE, {"position": -1}, ["offset.position"]),
        (FILE, {"postion": 1}, ["offset.postion"]),
        ({**FILE, "part": 3}, {"position": 100, "parts": 3}, ["offset.parts"]),
        ({"stream": "orders"}, {"position": 1}, ["partition.stream", "partition.filename"]),
        ({"stream": "orders"}, None, []),
    ],
)
def test_offsets_of_files(partition, offset, keys):
    """An offset of a file has a place that is not negative; anything may be forgotten."""
    assert [fault.key for fault in offsets_of(FILES).faults(partition, offset)] == keys


def test_a_stream_that_is_not_read():
    """An entry of a stream that the configuration does not name is stored, and said to be odd."""
    offsets = offsets_of(REDIS)
    assert [*offsets.notes(STREAM)] == []
    assert [*offsets.notes({"stream": "other"})] == ["its stream is other, and the connector reads orders"]


@pytest.mark.parametrize(
    "stored",
    [
        {"id": "abc"},
        {"id": "5-1", "recordCount": "x"},
        {"id": "5-1", "entriesPassed": True},
        {"id": "5-1", "within": -1},
        {"id": "5-1", "recordCount": -1},
    ],
)
def test_a_stored_offset_that_is_no_place_in_a_stream(stored):
    """What is stored of a stream and says no place is named, with what it is and what to do."""
    with pytest.raises(OffsetValueError, match=r"^orders: .*\{.*\} is no place in a stream: .*headrace offsets set"):
        RedisOffsetEntry(stream_key("orders"), stored).place()


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"position": "x"}, "position='x' is not an integer"),
        ({"position": -1}, "position=-1 is less than 0"),
        ({"position": 5, "recordCount": -1}, "recordCount=-1 is less than 0"),
        ({"position": 5, "recordCount": True}, "recordCount=True is not an integer"),
        ({"position": 5, "complete": "yes"}, "complete='yes' is not a boolean"),
    ],
)
def test_a_stored_offset_that_is_no_place_in_a_file(stored, reason):
    """What is stored of a file and says no place is named, with what to do."""
    entry = FileOffsetEntry.stored("/a.log", stored)
    with pytest.raises(OffsetValueError, match=rf"^/a\.log: .*{reason}; .*headrace offsets set"):
        assert entry.is_complete or entry.position()


def test_a_file_of_long_ago():
    """A time before 1970 is a time that a file may have."""
    assert FileOffsetEntry.stored("/a.log", {"lastModified": -1}).get_int("lastModified") == -1


def test_a_foreign_key_among_the_offsets_of_files(tmp_path):
    """Files are followed although the topic has an offset of something else, which is named and left alone."""
    (tmp_path / "a.log").write_text("1\n2\n")
    harness = SplitHarness(
        {
            "connector.class": "files",
            "files.paths": str(tmp_path / "*.log"),
            "files.follow": "true",
            "input.format": "text",
            "value.converter": "string",
        }
    )
    harness.kafka.offsets.committed({OffsetManagerKey({"stream": "orders"}): {"id": "5-1"}})
    harness.run()
    assert harness.values() == [b"1", b"2"]
    assert [word for word in harness.warnings if '{"stream": "orders"}' in word] == harness.warnings
    assert len(harness.warnings) == 1
