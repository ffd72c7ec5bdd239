"""A body of offsets is taken as a whole or refused with every fault, each at its entry."""

import json

import pytest

from headrace.framework.errors import OffsetsBodyError
from headrace.offsets.body import read_body, write_body
from headrace.sources.s3 import S3Source

GOOD = {"partition": {"bucket": "b", "objectKey": "k"}, "offset": {"recordCount": 1}}


def faults(*entries):
    with pytest.raises(OffsetsBodyError) as caught:
        read_body(json.dumps({"offsets": list(entries)}))
    return {fault.key: fault.message for fault in caught.value.faults}


def test_entries_come_in_their_order():
    """Each entry is its partition and its offset, null included, with the values that JSON gave."""
    entries = [GOOD, {"partition": {"filename": "f"}, "offset": None}]
    assert read_body(json.dumps({"offsets": entries})) == [
        ({"bucket": "b", "objectKey": "k"}, {"recordCount": 1}),
        ({"filename": "f"}, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="broken"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="no offsets"),
        pytest.param('{"offsets": {}}', id="a map for a list"),
        pytest.param('{"offset": []}', id="a slip"),
        pytest.param('{"offsets": [], "more": 1}', id="something beside it"),
        pytest.param('{"offsets": [{"partition": {"a": NaN}, "offset": null}]}', id="no number of JSON's"),
        pytest.param('{"offsets": [{"partition": {"a": 1, "a": 2}, "offset": null}]}', id="a name twice"),
        pytest.param("[" * 100_000, id="deeply nested"),
    ],
)
def test_what_is_no_body_is_refused(text):
    """Text that is not of the form is one fault, in one line."""
    with pytest.raises(OffsetsBodyError) as caught:
        read_body(text)
    assert len(caught.value.faults) == 1
    assert "\n" not in str(caught.value)


def test_every_fault_names_its_entry():
    """All faults come at once, each with the place that it is at; good entries have none."""
    found = faults(
        GOOD,
        {"partition": {"a": {"nested": 1}}, "offset": {"b": [1]}},
        {"partition": {}, "offset": {}},
        {"partition": "p", "offset": 3},
        {"partition": {"a": 2**63}, "ofset": None},
        "entry",
    )
    assert list(found) == [
        "offsets[1].partition.a",
        "offsets[1].offset.b",
        "offsets[2].partition",
        "offsets[2].offset",
        "offsets[3].partition",
        "offsets[3].offset",
        "offsets[4].ofset",
        "offsets[4].partition.a",
        "offsets[4].offset",
        "offsets[5]",
    ]
    assert "spread a nested value over several names" in found["offsets[1].partition.a"]
    assert "64 bits" in found["offsets[4].partition.a"]


def test_a_partition_is_named_once():
    """Two entries of one partition, in whatever order of its names, would leave it to chance which one counts."""
    turned = {"partition": {"objectKey": "k", "bucket": "b"}, "offset": None}
    assert faults(GOOD, turned) == {"offsets[1].partition": "is that of offsets[0], too: say it once"}


def test_what_was_written_is_read():
    """A body that was written is read as the same entries, the forgetting ones included."""
    entries = [({"a": "ü\u2028\U0001d11e"}, {"n": 2**63 - 1, "f": 0.1, "b": True, "z": None}), ({"a": "x"}, None)]
    assert read_body(write_body(entries)) == entries


class TestOfS3:
    """What S3 makes of entries."""

    @pytest.fixture
    def offsets(self):
        source = S3Source()
        source.configure(
            {
                "name": "c",
                "connector.class": "s3",
                "bootstrap.servers": "127.0.0.1:1",
                "topic": "t",
                "aws.s3.bucket.name": "bucket",
            }
        )
        return source.source_offsets()

    @pytest.mark.parametrize(
        "offset",
        [
            {},
            {"recordCount": 0},
            {"recordCount": 2**63 - 1, "etag": "e", "size": 1, "complete": False, "byteOffset": 3, "line": 4},
            {"recordCount": 1, "somebody": "else's"},
        ],
    )
    def test_what_is_possible_passes(self, offsets, offset):
        """Counts, flags and texts of the right kind pass, and so does what others have added."""
        assert list(offsets.faults({"objectKey": "k", "bucket": "bucket"}, offset)) == []

    @pytest.mark.parametrize(
        ("partition", "offset", "key", "suggestion"),
        [
            ({"bucket": "b", "objectkey": "k"}, {}, "partition.objectkey", "objectKey"),
            ({"bucket": "b", "objectkey": "k"}, {}, "partition.objectKey", None),
            ({"bucket": "b", "objectKey": "k", "filename": "f"}, {}, "partition.filename", None),
            ({"bucket": "", "objectKey": "k"}, {}, "partition.bucket", None),
            ({"bucket": 1, "objectKey": "k"}, {}, "partition.bucket", None),
            (GOOD["partition"], {"recordCount": "1"}, "offset.recordCount", None),
            (GOOD["partition"], {"recordCount": -1}, "offset.recordCount", None),
            (GOOD["partition"], {"recordCount": 1.0}, "offset.recordCount", None),
            (GOOD["partition"], {"recordCount": True}, "offset.recordCount", None),
            (GOOD["partition"], {"record_count": 1}, "offset.record_count", "recordCount"),
            (GOOD["partition"], {"complete": "yes"}, "offset.complete", None),
            (GOOD["partition"], {"etag": 5}, "offset.etag", None),
        ],
    )
    def test_what_is_impossible_is_refused(self, offsets, partition, offset, key, suggestion):
        """A wrong name or a wrong kind of value is a fault at its place, with the name that was meant."""
        assert (key, suggestion) in [(fault.key, fault.suggestion) for fault in offsets.faults(partition, offset)]

    def test_anything_may_be_forgotten(self, offsets):
        """An entry that could never have been stored can be cleaned up."""
        assert list(offsets.faults({"filename": "f"}, None)) == []
