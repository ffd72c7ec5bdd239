"""All keys of one source partition are found together, and two topics are one store."""

import pytest

from headrace.framework.errors import OffsetsError
from headrace.offsets.kafka.parsed import ParsedStore
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.kafka.unreadable import unreadable_keys, unreadable_values
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey

KEY = OffsetManagerKey({"bucket": "b", "objectKey": "k"})
OTHER = OffsetManagerKey({"bucket": "b", "objectKey": "other"})
FORWARDS = b'["c",{"bucket":"b","objectKey":"k"}]'
BACKWARDS = b'["c",{"objectKey":"k","bucket":"b"}]'
SPACED = b'["c", {"bucket": "b", "objectKey": "\\u006b"}]'


def view_of(entries):
    view = KafkaOffsetView("c")
    for raw, value in entries.items():
        view.take_raw(raw, value)
    return view


def test_however_a_key_is_written():
    """Order, spaces and escapes make no difference, types do; the first key gives the order of the names."""
    number = b'["c",{"bucket":"b","objectKey":1}]'
    found = Spellings.of("c", [BACKWARDS, number, SPACED, FORWARDS])
    assert found.of_key(KEY) == (BACKWARDS, SPACED, FORWARDS)
    assert found.of_key(OffsetManagerKey({"bucket": "b", "objectKey": 1})) == (number,)
    assert found.of_key(OTHER) == ()
    assert [list(key.mapping) for key, _ in found] == [["objectKey", "bucket"], ["bucket", "objectKey"]]
    assert found.twins == 2


def test_a_key_of_many_names():
    """Names are too many to try all their orders, and their keys are found all the same."""
    names = {f"n{number}": number for number in range(7)}
    raw = b'["c",{%s}]' % b",".join(b'"n%d":%d' % (number, number) for number in reversed(range(7)))
    assert Spellings.of("c", [raw]).of_key(OffsetManagerKey(names)) == (raw,)


def test_keys_that_name_nothing_are_handed_out():
    """Malformed keys are told, one by one, and are not among the answers."""
    told = []
    found = Spellings.of("c", [b'["c",1]', FORWARDS, b'["c"'], told.append)
    assert len(told) == 2
    assert [keys for _, keys in found] == [(FORWARDS,)]


def test_two_topics_are_one_store():
    """What either topic knows is known, under whatever key; where both do, the one to believe is."""
    ours = view_of({FORWARDS: b'{"recordCount":1,"etag":"e"}'})
    theirs = view_of(
        {
            SPACED: b'{"recordCount":9}',
            b'["c",{"objectKey":"other","bucket":"b"}]': b'{"recordCount":2}',
            b'["c",{"bucket":"b","objectKey":"bad"}]': b"[]",
        }
    )
    store = ParsedStore([ours, theirs])
    expected = {KEY: {"recordCount": 1, "etag": "e"}, OTHER: {"recordCount": 2}}
    assert store.get([KEY, OTHER, OffsetManagerKey({"bucket": "b", "objectKey": "bad"})]) == expected
    assert list(store.items()) == list(expected.items())
    with pytest.raises(OffsetsError, match="only read"):
        store.committed({KEY: {"recordCount": 3}})


def test_what_cannot_be_read_is_named():
    """A word on each key that names nothing, and on each value that is no offset, with the place that it is at."""
    view = view_of({b'["c",["no map"]]': b"{}", BACKWARDS: b'{"recordCount":{}}', FORWARDS: b'{"recordCount":1}'})
    (key,), (value,) = unreadable_keys(view), unreadable_values(view, lambda _key, _offset: None)
    assert "second element, not an object" in key
    assert "'objectKey': 'k'" in value
