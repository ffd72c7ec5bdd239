"""Whatever form a key of the topic has, a run sees what stands under it, or says that it cannot."""

import pytest

from headrace.offsets.kafka.records import (
    control_key,
    counter_key,
    enumerator_key,
    generation_key,
    rollup_key,
    turn_key,
)
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey

KEY = OffsetManagerKey({"bucket": "b", "objectKey": "k"})
USUAL = b'["c",{"bucket":"b","objectKey":"k"}]'
TWIN = b'["c",{"objectKey":"k","bucket":"b"}]'
ODD = [
    b'["c", {"bucket": "b", "objectKey": "\\u006b"}]',
    b'["c",{"bucket":"b","objectKey":"\\u006b"}]',
    b'["c" ,{"bucket":"b","objectKey":"k"}]',
    b' [ "c",{"bucket":"b","objectKey":"k"} ]',
    b'["\\u0063",{"objectKey":"k","bucket":"b"}]',
]
MANY = OffsetManagerKey({f"n{number}": number for number in range(7)})
MANY_BACKWARDS = b'["c",{%s}]' % b",".join(b'"n%d":%d' % (number, number) for number in reversed(range(7)))


@pytest.fixture
def view():
    return KafkaOffsetView("c")


@pytest.mark.parametrize("raw", ODD)
def test_a_key_in_another_form_is_the_same_key(view, raw):
    """Spaces and needless escapes make no difference; what is written next takes the place of all forms."""
    view.take_raw(raw, b'{"recordCount":3}')
    view.take_raw(TWIN, b'{"recordCount":2}')
    assert view.get([KEY]) == dict(view.items()) == {KEY: {"recordCount": 3}}
    assert dict(view.records_for({KEY: {"recordCount": 4}})) == {USUAL: b'{"recordCount":4}', TWIN: None, raw: None}
    view.committed({KEY: {"recordCount": 4}})
    assert (view.get([KEY]), list(view.entries), view.malformed) == ({KEY: {"recordCount": 4}}, [USUAL], 0)


def test_what_was_encoded_to_be_committed_is_not_encoded_again(view, monkeypatch):
    """The view takes in the very records that were written for a map of offsets; any other map is encoded."""
    offsets = {KEY: {"recordCount": 4}}
    assert view.records_to_commit(offsets) == [(USUAL, b'{"recordCount":4}')]
    with monkeypatch.context() as patched:
        patched.setattr(KafkaOffsetView, "records_for", None)
        view.committed(offsets)
    assert view.get([KEY]) == offsets
    view.committed({KEY: {"recordCount": 5}})
    assert view.get([KEY]) == {KEY: {"recordCount": 5}}


def test_a_key_of_many_names_is_found_in_any_order(view):
    """Too many names to try all orders make no difference either."""
    view.take_raw(MANY_BACKWARDS, b'{"recordCount":3}')
    assert view.get([MANY]) == {MANY: {"recordCount": 3}}


@pytest.mark.parametrize("text", ["a b", "\u00e4", "\U0001f600", '"\\', "\n", ""])
def test_what_is_written_as_usual_has_no_alias(view, text):
    """Our own keys, whatever they have in them, stand once."""
    key = OffsetManagerKey({"bucket": text, "objectKey": 5})
    view.committed({key: {"recordCount": 1}})
    assert view.get([key]) == {key: {"recordCount": 1}}
    assert len(set(view.raw_keys(key))) == len(view.raw_keys(key)) == 2


@pytest.mark.parametrize(
    "raw",
    [
        b'["c",{"of":{"a":1}}]',
        b'["c",7]',
        b'["c",{"bucket":"b"},1]',
        b'["c",{"a":"\xff"}]',
        b'["c",{"a":12345678901234567890}]',
        b'["c" ,7]',
        b' [ "c"]',
        b'["\\u0063",{"a":{}}]',
    ],
)
def test_a_key_that_names_nothing_is_named(view, raw):
    """It is told as soon as it is read, once, and no longer when it is removed."""
    view.take_raw(raw, b'{"recordCount":3}')
    (word,) = view.passed_over
    assert word.endswith("it is passed over")
    assert (list(view.items()), list(view.passed_over)) == ([], [word])
    view.take_raw(raw, None)
    assert (view.passed_over, view.entries) == ({}, {})


@pytest.mark.parametrize(
    "raw",
    [
        b'["other" ,{"a":1}]',
        b'["o\\"c",{"a":1}]',
        b'["other",{"a":{}}]',
        b'["cc",{"a":1}]',
        b'["other" ,7]',
        b'["\\ud800",7]',
    ],
)
def test_what_is_anothers_is_left_alone(view, raw):
    """Other connectors' keys are none of ours, in whatever form, and nothing is said of them."""
    view.take_raw(raw, b'{"recordCount":3}')
    assert (view.entries, view.passed_over) == ({}, {})


@pytest.mark.parametrize("number", [b'"x"', b"-1", b"007", b"1.0", b""])
def test_a_shard_without_a_number_is_passed_over(view, number):
    """What looks like a shard of the roll-up and is none is named, and breaks nothing."""
    view.take_raw(b'["headrace",{"connector":"c"},"rollup",%s]' % number, b"x")
    assert len(view.rollup) == 0
    assert "is no shard of a roll-up; it is passed over" in "".join(view.passed_over)


@pytest.mark.parametrize(
    "raw",
    [
        generation_key("other"),
        control_key("other"),
        enumerator_key("other"),
        counter_key("other", 3),
        rollup_key("other", 7),
        turn_key("other", 0),
        b'["headrace", {"connector": "other"}, "generation"]',
    ],
)
def test_a_connector_of_our_name_leaves_what_is_anothers_alone(raw):
    """What stands beside other connectors' entries is not taken for entries of one that is called headrace."""
    view = KafkaOffsetView("headrace")
    view.take_raw(raw, b"{}")
    view.take_raw(raw, b"{}")
    assert (view.entries, view.beside, view.passed_over, view.malformed) == ({}, {}, {}, 0)


def test_a_connector_of_our_name_has_all_that_is_its_own():
    """Its entries, the records beside them, and the words on what nobody can read are what any connector has."""
    view = KafkaOffsetView("headrace")
    key = OffsetManagerKey({"connector": "other"})
    view.take_raw(b'["headrace",{"connector":"other"}]', b'{"recordCount":3}')
    view.take_raw(generation_key("headrace"), b'{"generation":4}')
    view.take_raw(b'["headrace",{"connector":"other"},7]', b"{}")
    assert (dict(view.items()), view.generation.generation) == ({key: {"recordCount": 3}}, 4)
    (word,) = view.passed_over
    assert "has 3 elements, not 2" in word
