"""What was once written and must be read for ever: literals of every version, which nobody changes."""

import pytest

from headrace.framework.errors import OffsetsError, OffsetValueError
from headrace.offsets.kafka.records import EnumeratorState, enumerator_key
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.splits import S3Split, S3SplitSerializer

S3_SPLIT_1 = (
    b'{"bucket":"orders","key":"2024/01/\\u00e4.jsonl","etag":"9b2cf535f27731c974343645a3985328","size":5368709120,'
    b'"lastModified":1704067200000,"storageClass":"STANDARD"}'
)
ENUMERATOR_STATE_1 = b'{"version":1,"state":{"orders-0":"1704067200000-0","orders-1":57,"late":true,"none":null}}'


def test_splits_of_s3():
    """An S3 split of version 1 is read as what it was, and still written like that."""
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
    assert S3SplitSerializer().serialize(split) == S3_SPLIT_1


def test_what_an_enumerator_remembers():
    """A state of version 1 is read as what it was, under the key that it had, and still written like that."""
    state = {"orders-0": "1704067200000-0", "orders-1": 57, "late": True, "none": None}
    assert EnumeratorState.decode(ENUMERATOR_STATE_1) == EnumeratorState(state=state)
    assert EnumeratorState(state=state).encode() == ENUMERATOR_STATE_1
    assert enumerator_key("orders") == b'["headrace",{"connector":"orders"},"enumerator"]'


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
