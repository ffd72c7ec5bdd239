"""What is stored of an object, and what that means for the object that is there."""

import attrs
import pytest

from headrace.framework.errors import OffsetValueError
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.s3.entry import Action, Decision, OverwritePolicy, S3OffsetEntry, object_key, part_key, what_to_do
from headrace.sources.s3.objects import S3Object
from headrace.transformers.base import Position

FOUND = S3Object(bucket="b", key="k", etag="e1", size=100, last_modified=1_700_000_000_000)
THERE = Position(records=5, byte=70, line=6)

MINE = {"etag": "e1", "size": 100, "lastModified": 1_700_000_000_000}
OTHER = {"etag": "e0", "size": 90, "lastModified": 1_600_000_000_000}
PLACE = {"recordCount": 5, "byteOffset": 70, "line": 6}
READ_ON = Decision(Action.READ, THERE)
AFRESH = Decision(Action.READ)
FINISHED = Decision(Action.FINISHED)


def entry(**properties):
    """An entry of the object with such properties."""
    return S3OffsetEntry(object_key("b", "k"), properties)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(None, AFRESH, id="nothing is stored"),
        pytest.param({"recordCount": 7}, Decision(Action.READ, Position(records=7)), id="from Kafka Connect"),
        pytest.param({"recordCount": 7, "complete": True}, FINISHED, id="no version, but complete"),
        pytest.param({"recordCount": 0}, AFRESH, id="from Kafka Connect, nothing read"),
        pytest.param({}, AFRESH, id="an empty map"),
        pytest.param({**MINE, **PLACE}, READ_ON, id="the same version, half-way"),
        pytest.param({**MINE, **PLACE, "complete": True}, FINISHED, id="the same version, complete"),
        pytest.param({**MINE, **PLACE, "complete": "true"}, FINISHED, id="complete as a text"),
        pytest.param({**MINE, **PLACE, "complete": False}, READ_ON, id="said not to be complete"),
        pytest.param({**MINE, "recordCount": 0, "complete": True}, FINISHED, id="complete without a record"),
        pytest.param({**MINE, **PLACE, "lastModified": 1, "size": 100}, READ_ON, id="touched, the same content"),
        pytest.param({**OTHER, "recordCount": 0}, AFRESH, id="overwritten before its first record"),
        pytest.param({**PLACE, "etag": '"e1"'}, READ_ON, id="an etag with its quotation marks"),
        pytest.param({**PLACE, "size": 100}, READ_ON, id="no etag, the same size"),
    ],
)
def test_what_to_do_when_no_policy_is_asked(stored, expected):
    """Where nothing that was read has been overwritten, the stored entry alone decides, under every policy."""
    stored_entry = None if stored is None else entry(**stored)
    assert [what_to_do(stored_entry, FOUND, policy) for policy in OverwritePolicy] == [expected] * 3


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param({**OTHER, **PLACE, "complete": True}, id="finished"),
        pytest.param({**OTHER, **PLACE}, id="unfinished"),
        pytest.param({**OTHER, "recordCount": 1}, id="one record"),
        pytest.param({**OTHER, "recordCount": 0, "complete": True}, id="finished without a record"),
        pytest.param({**PLACE, "size": 90}, id="no etag, another size"),
    ],
)
def test_the_policy_decides_about_an_overwritten_object(
    stored,
):
    """Another version than the one that was read, finished or not, is read again, left out, or fails."""
    decided = {policy: what_to_do(entry(**stored), FOUND, policy) for policy in OverwritePolicy}
    assert decided == {
        OverwritePolicy.REREAD: Decision(Action.REREAD),
        OverwritePolicy.IGNORE: Decision(Action.IGNORE),
        OverwritePolicy.FAIL: Decision(Action.FAIL),
    }


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"recordCount": -1}, "recordCount=-1 is less than 0"),
        ({"recordCount": "-1"}, "recordCount='-1' is less than 0"),
        ({"recordCount": "x"}, "recordCount='x' is not an integer"),
        ({"recordCount": True}, "recordCount=True is not an integer"),
        ({"recordCount": 3.5}, "recordCount=3.5 is not an integer"),
        ({**MINE, **PLACE, "byteOffset": -5}, "byteOffset=-5 is less than 0"),
        ({"recordCount": 3, "line": "no"}, "line='no' is not an integer"),
        ({"recordCount": 3, "complete": "yes"}, "complete='yes' is not a boolean"),
        ({**MINE, "size": "big"}, "size='big' is not an integer"),
    ],
)
def test_what_cannot_be_is_named(stored, reason):
    """A count below 0, no number, or no boolean: the object is named with it, and what to do about it."""
    with pytest.raises(OffsetValueError, match=rf"^s3://b/k: .*{reason}; mend it with headrace offsets set"):
        S3OffsetEntry.stored(object_key("b", "k"), stored)
    with pytest.raises(OffsetValueError, match=r"^s3://b/k: "):
        S3OffsetEntry.stored(part_key("b", "k", 1), {**stored, "parts": 2})


@pytest.mark.parametrize("stored", [{}, {**MINE, **PLACE}, {"recordCount": "7", "complete": "true"}, {"line": None}])
def test_what_can_be_is_taken(stored):
    """Texts of numbers and booleans are as good as these, and what is not there is nothing."""
    assert S3OffsetEntry.stored(object_key("b", "k"), stored).get_properties() == stored


def test_a_server_without_etags_is_compared_by_size_and_time():
    """Where the server names no etag, the size and the time of the last change tell versions apart."""
    bare = attrs.evolve(FOUND, etag="")
    begun = S3OffsetEntry.for_object(bare).advanced(THERE)
    assert "etag" not in begun.get_properties()
    assert what_to_do(begun, bare, OverwritePolicy.FAIL) == READ_ON
    assert what_to_do(begun, attrs.evolve(bare, size=101), OverwritePolicy.FAIL).action is Action.FAIL
    assert what_to_do(begun, attrs.evolve(bare, last_modified=5), OverwritePolicy.FAIL).action is Action.FAIL


def test_the_key_is_written_bucket_first():
    """Finding 1: the source partition has one order, bucket first, and is found whatever the order it was stored in."""
    key = S3OffsetEntry.for_object(FOUND).get_manager_key()
    assert list(key.mapping) == ["bucket", "objectKey"]
    assert key == OffsetManagerKey({"objectKey": "k", "bucket": "b"})


def test_finding_4_a_finished_object_is_known_by_its_entry():
    """Finding 4: what is stored at an object's end is enough to leave it alone after a restart."""
    done = S3OffsetEntry.for_object(FOUND).advanced(THERE).finished()
    restarted = S3OffsetEntry(object_key("b", "k"), done.get_properties())
    assert done.get_properties() == {**MINE, **PLACE, "complete": True}
    assert what_to_do(restarted, FOUND, OverwritePolicy.REREAD) == FINISHED


def test_finding_12_an_object_without_records_is_finished_all_the_same():
    """Finding 12: an object that yields no record has an entry that says that it is done."""
    done = S3OffsetEntry.for_object(FOUND).finished()
    assert done.record_count == 0
    assert what_to_do(done, FOUND, OverwritePolicy.FAIL) == FINISHED


def test_only_what_is_known_is_stored():
    """A format that knows neither bytes nor lines leaves them out, and what was stored of them goes."""
    counted = entry(**MINE, **PLACE).advanced(Position(records=6))
    assert counted.get_properties() == {"recordCount": 6, **MINE}
    assert counted.position() == Position(records=6)


def test_advancing_takes_the_mark_back_and_keeps_the_rest():
    """An entry that moves is not complete, and properties that others added survive."""
    moved = entry(recordCount=1, complete=True, owner="somebody").advanced(THERE)
    assert moved.get_properties() == {**PLACE, "owner": "somebody"}


def test_an_entry_is_not_changed_by_those_that_follow_from_it():
    """`advanced` and `finished` make new entries."""
    first = S3OffsetEntry.for_object(FOUND)
    first.advanced(THERE).finished()
    assert first.get_properties() == {"recordCount": 0, **MINE}
