"""`split.size.bytes`: where it is refused, where it is in vain, and how an object is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.framework.errors import ConfigError
from headrace.framework.parts import Part, cut
from headrace.sources.files.config import FilesConfig
from headrace.sources.s3 import S3Source
from headrace.sources.s3.config import S3Config

PROPS = {
    "name": "orders",
    "connector.class": "s3",
    "bootstrap.servers": "127.0.0.1:9",
    "aws.s3.bucket.name": "bucket",
    "topic": "t",
    "input.format": "jsonl",
    "split.size.bytes": "1000",
}


def warnings(**changes):
    props = {**PROPS, **{key.replace("__", "."): value for key, value in changes.items()}}
    return [word for word in S3Config.from_props(props).warnings() if "split.size.bytes" in word]


@pytest.mark.parametrize("changes", [{"transaction.boundary": "object"}, {"distribution.type": "partition"}])
def test_what_cannot_be_had_with_parts(changes):
    """An object that becomes visible at once, and a partition in its order, are one task's: both are refused."""
    template = {"file.name.template": "{{topic}}-{{partition}}"}
    with pytest.raises(ConfigError) as refused:
        S3Config.from_props({**PROPS, **template, **changes})
    assert [fault.key for fault in refused.value.faults] == ["split.size.bytes"]
    assert S3Config.from_props({**PROPS, **template, **changes, "split.size.bytes": "0"}).split_size_bytes == 0


def test_where_it_has_no_effect():
    """A format that cannot begin in the middle is named, and for `csv` what would help."""
    assert warnings() == warnings(input__format="avro") == []
    assert warnings(input__format="csv", csv__quoted__newlines="false") == []
    assert warnings(input__format="bytes", split__size__bytes="0") == []
    (word,) = warnings(input__format="json")
    assert "objects of input.format=json are read as a whole" in word
    (word,) = warnings(input__format="csv")
    assert "csv.quoted.newlines=false" in word


def test_files_that_are_followed_are_not_split():
    """A file that grows is one task's: to ask for both is refused."""
    files = {"name": "n", "connector.class": "files", "bootstrap.servers": "h:1", "files.paths": "in", "topic": "t"}
    lines = {"input.format": "jsonl", "split.size.bytes": "10"}
    assert FilesConfig.from_props({**files, **lines}).split_size_bytes == 10
    with pytest.raises(ConfigError, match=r"split\.size\.bytes"):
        FilesConfig.from_props({**files, **lines, "files.follow": "true"})


@given(size=st.integers(0, 10**13), split_size=st.integers(1, 10**12))
def test_parts_lie_side_by_side(size, split_size):
    """They have each byte of the object once, and none is larger than was asked for, unless they were too many."""
    parts = cut(size, split_size)
    extents = [Part(number, parts).extent(size) for number in range(parts)]
    assert (extents[0].start, extents[-1].end) == (0, size)
    assert all(one.end == other.start for one, other in pairwise(extents))
    assert parts == 10_000 or max(one.end - one.start for one in extents) <= split_size
    assert cut(size, 0) == 1


def faults(partition, offset):
    source = S3Source()
    source.configure(PROPS)
    partition = {"bucket": "bucket", "objectKey": "k", **partition}
    return [fault.key for fault in source.source_offsets().faults(partition, offset)]


def test_what_may_be_stored_of_a_part():
    """A part has a number and says how many there are; what is no number, or lies beyond, is named."""
    assert faults({"part": 2}, {"recordCount": 3, "parts": 3, "ended": True}) == []
    assert faults({}, {"recordCount": 0, "parts": 3}) == []
    assert faults({"part": "2"}, {"recordCount": 3, "parts": 3}) == ["partition.part"]
    assert faults({"part": 3}, {"recordCount": 3, "parts": 3}) == ["offset.parts"]
    assert faults({"part": 0}, {"recordCount": 3}) == ["offset.parts"]
    assert faults({"part": 0}, {"recordCount": 3, "parts": 1, "ended": 1}) == ["offset.ended"]
