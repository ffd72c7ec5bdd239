"""What an entry keeps, and in which types it gives it back."""

import pytest

from headrace.framework.errors import OffsetValueError
from headrace.offsets.entry import RECORD_COUNT, OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey

KEY = OffsetManagerKey({"bucket": "b", "objectKey": "k"})


class ObjectEntry(OffsetManagerEntry):
    """An entry of a source's own kind."""


def test_unknown_properties_survive():
    """What a newer version or another program has stored stays in an entry that this one changes."""
    entry = ObjectEntry(KEY).from_properties({RECORD_COUNT: 3, "unknown": "x"})

    entry.increment_record_count(2)

    assert type(entry) is ObjectEntry
    assert entry.get_manager_key() == KEY
    assert entry.get_properties() == {RECORD_COUNT: 5, "unknown": "x"}


def test_maps_in_and_out_are_copies():
    """A change to the map that went in, or to the one that came out, does not reach the entry."""
    properties = {"etag": "1"}
    entry = OffsetManagerEntry({"k": "v"}, properties)

    properties["etag"] = "2"
    entry.get_properties()["etag"] = "3"

    assert entry.get_property("etag") == "1"


def test_the_record_count_is_counted_not_set():
    """`recordCount` moves by counting records, and starts at 0."""
    entry = OffsetManagerEntry(KEY)

    with pytest.raises(OffsetValueError, match="increment_record_count"):
        entry.set_property(RECORD_COUNT, 7)
    assert entry.record_count == 0
    entry.increment_record_count()
    assert entry.record_count == 1


@pytest.mark.parametrize("value", [2**63, float("nan"), ["nested"], {"nested": 1}, b"bytes"])
def test_what_cannot_be_stored_is_refused_when_it_is_set(value):
    """A property that would not survive the offsets topic is refused at once, and the entry stays as it was."""
    entry = OffsetManagerEntry(KEY)

    with pytest.raises(OffsetValueError, match="a source offset has p="):
        entry.set_property("p", value)
    with pytest.raises(OffsetValueError, match="a source offset has p="):
        OffsetManagerEntry(KEY, {"p": value})
    assert entry.get_properties() == {}


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("get_string", "s", "s"),
        ("get_string", True, "true"),
        ("get_string", 3, "3"),
        ("get_int", 2**63 - 1, 2**63 - 1),
        ("get_int", "42", 42),
        ("get_int", 3.0, 3),
        ("get_long", 3, 3),
        ("get_float", 3, 3.0),
        ("get_float", "1.5", 1.5),
        ("get_bool", False, False),
        ("get_bool", "TRUE", True),
    ],
)
def test_typed_access(method, value, expected):
    """A property is given in the type that is asked for, also where another program stored it as text."""
    got = getattr(OffsetManagerEntry(KEY, {"p": value}), method)("p")

    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize("method", ["get_string", "get_int", "get_long", "get_float", "get_bool", "get_property"])
def test_what_is_not_there_is_none(method):
    """A property that was never set is None in every type."""
    assert getattr(OffsetManagerEntry(KEY), method)("p") is None


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("get_int", "three"),
        ("get_int", 3.5),
        ("get_int", True),
        ("get_float", "x"),
        ("get_float", False),
        ("get_bool", 1),
        ("get_bool", "yes"),
    ],
)
def test_a_property_of_another_type_is_refused(method, value):
    """What is not of the type that is asked for is an error that names the property, never a guess."""
    with pytest.raises(OffsetValueError, match=r"^p="):
        getattr(OffsetManagerEntry(KEY, {"p": value}), method)("p")
