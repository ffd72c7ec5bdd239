"""What was once written and must be read for ever: literals of every version, which nobody changes."""

import pytest

from headrace.framework.errors import MalformedOffsetError, OffsetsError, OffsetValueError
from headrace.framework.parts import Extent, Part
from headrace.offsets.kafka.records import EnumeratorState, enumerator_key, generation_key
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.splits import FilePart, FileSplit, FileSplitSerializer
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.splits import S3Split, S3SplitSerializer

S3_SPLIT_1 = (
    b'{"bucket":"orders","key":"2024/01/\\u00e4.jsonl","etag":"9b2cf535f27731c974343645a3985328","size":5368709120,'
    b'"lastModified":1704067200000,"storageClass":"STANDARD"}'
)
S3_SPLIT_2 = S3_SPLIT_1[:-1] + b',"part":null}'
S3_PART_2 = S3_SPLIT_1[:-1] + b',"part":[2,80]}'
FILE_SPLIT_1 = (
    b'{"path":"/var/log/\\u00e4.log","size":900,"lastModified":1704067200000,"inode":7,"etag":"","end":800,'
    b'"family":["/var/log/\\u00e4.log.1"]}'
)
FILE_SPLIT_2 = FILE_SPLIT_1[:-1] + b',"part":null,"cut":null}'
FILE_PART_2 = FILE_SPLIT_1[:-1] + b',"part":[1,3],"cut":[600,"6b1f0c2d9a8e7f55"]}'
ENUMERATOR_STATE_1 = b'{"version":1,"state":{"orders-0":"1704067200000-0","orders-1":57,"late":true,"none":null}}'


def test_splits_of_s3():
    """An S3 split of version 1 is read as what it was; of version 2 as well, and still written like that."""
    split = S3Split(
        S3Object(
            bucket="orders",
            key="2024/01/\u00e4.jsonl",
            etag="9b2cf535f27731c974343645a3985328",
            size=5_368_709_120,
            last_modified=1_704_067_200_000,
            storage_class="STANDARD",
        )
    )
    assert S3SplitSerializer().deserialize(1, S3_SPLIT_1) == split
    assert S3SplitSerializer().deserialize(2, S3_SPLIT_2) == split
    assert S3SplitSerializer().serialize(split) == S3_SPLIT_2
    part = S3Split(split.object, Part(2, 80))
    assert S3SplitSerializer().deserialize(2, S3_PART_2) == part
    assert S3SplitSerializer().serialize(part) == S3_PART_2
    assert (part.extent, part.size) == (Extent(134_217_728, 201_326_592), 67_108_864)


def test_splits_of_files():
    """A file split of version 1 is read as what it was; of version 2 as well, and still written like that."""
    found = FoundFile(path="/var/log/\u00e4.log", size=900, last_modified=1_704_067_200_000, inode=7)
    split = FileSplit(found, end=800, family=("/var/log/\u00e4.log.1",))
    part = FileSplit(found, end=800, family=split.family, part=FilePart(Part(1, 3), 600, "6b1f0c2d9a8e7f55"))
    assert FileSplitSerializer().deserialize(1, FILE_SPLIT_1) == split
    assert FileSplitSerializer().deserialize(2, FILE_SPLIT_2) == split
    assert FileSplitSerializer().serialize(split) == FILE_SPLIT_2
    assert FileSplitSerializer().deserialize(2, FILE_PART_2) == part
    assert FileSplitSerializer().serialize(part) == FILE_PART_2
    assert (part.part.extent, part.size) == (Extent(200, 400), 200)


@pytest.mark.parametrize("serializer", [S3SplitSerializer(), FileSplitSerializer()])
def test_a_split_from_the_future_is_refused(serializer):
    """What a newer version has written is not guessed at."""
    with pytest.raises(ValueError, match="version 3 is from a newer headrace"):
        serializer.deserialize(3, b"{}")


def test_what_an_enumerator_remembers():
    """A state of version 1 is read as what it was, under the key that it had, and still written like that."""
    state = {"orders-0": "1704067200000-0", "orders-1": 57, "late": True, "none": None}
    assert EnumeratorState.decode(ENUMERATOR_STATE_1) == EnumeratorState(state=state)
    assert EnumeratorState(state=state).encode() == ENUMERATOR_STATE_1
    assert enumerator_key("orders") == b'["headrace",{"connector":"orders"},"enumerator"]'


@pytest.mark.parametrize(
    "value", [b"not JSON", b"\xff", b"[1]", b'{"state":{}}', b'{"version":1,"state":7}', b'{"a":1}']
)
def test_what_is_no_state_is_named(value):
    """What nobody can have remembered is named with its key, and what to do about it."""
    view = KafkaOffsetView("orders")
    view.take_raw(enumerator_key("orders"), value)
    with pytest.raises(MalformedOffsetError, match=r'"orders"\},"enumerator"\] .* cannot be read: .* without a value'):
        assert view.remembered


@pytest.mark.parametrize(
    "value", [b"not JSON", b"\xff", b'"text"', b'{"generation":"5"}', b'{"generation":1,"prefixes":"a"}']
)
def test_what_is_no_generation_is_named(value):
    """A claim that nobody can have written is named with its key, and what to do about it."""
    view = KafkaOffsetView("orders")
    view.take_raw(generation_key("orders"), value)
    with pytest.raises(MalformedOffsetError, match=r'"orders"\},"generation"\] .* cannot be read: .* without a value'):
        assert view.generation
    view.take_raw(generation_key("orders"), None)
    assert view.generation.generation == 0


def test_a_state_from_the_future_is_refused():
    """What a newer version has stored is not guessed at: the error names both versions and what to do."""
    with pytest.raises(OffsetsError, match=r"version 2, by a newer headrace; this one reads version 1: run the newer"):
        EnumeratorState.decode(b'{"version":2,"state":{}}')


def test_a_state_that_is_not_flat_is_refused():
    """What could not be an offset cannot be remembered either."""
    with pytest.raises(OffsetValueError, match="what an enumerator remembers has a="):
        EnumeratorState(state={"a": [1]}).encode()


def test_a_state_is_no_progress():
    """The record of an enumerator's state is kept beside the entries, and is none of them."""
    view = KafkaOffsetView("orders")
    view.take_raw(enumerator_key("orders"), ENUMERATOR_STATE_1)
    assert (view.entries, list(view.beside), view.malformed) == ({}, [enumerator_key("orders")], 0)
