"""What two keys are compared by, and what can be none."""

import enum
import pickle
import subprocess
import sys

import pytest

from headrace.framework.errors import OffsetValueError
from headrace.offsets.key import OffsetManagerKey


class Bucket(enum.StrEnum):
    ONE = "b"


def test_the_order_of_names_does_not_matter():
    """Two keys with the same names and values are one key, whatever their order (finding 1)."""
    first = OffsetManagerKey({"bucket": "b", "objectKey": "k"})
    second = OffsetManagerKey({"objectKey": "k", "bucket": "b"})

    assert first == second
    assert {first: 1}[second] == 1
    assert list(second.mapping) == ["objectKey", "bucket"]


@pytest.mark.parametrize("other", [{"n": 1.0}, {"n": True}, {"n": "1"}, {"m": 1}, {"n": 1, "m": None}, {}])
def test_other_values_are_other_keys(other):
    """What JSON tells apart is two keys, also where Python calls the values equal."""
    assert OffsetManagerKey({"n": 1}) != OffsetManagerKey(other)
    assert OffsetManagerKey({"n": 1}) != {"n": 1}


def test_members_of_subclasses_are_what_they_are_stored_as():
    """A key made of an enumeration's member equals the key that is read back."""
    key = OffsetManagerKey({"bucket": Bucket.ONE, Bucket.ONE: 1})

    assert key == OffsetManagerKey({"bucket": "b", "b": 1})
    assert type(key.mapping["bucket"]) is str


def test_maps_in_and_out_are_copies():
    """A change to the map that went in, or to the one that came out, does not reach the key."""
    mapping = {"k": "v"}
    key = OffsetManagerKey(mapping)

    mapping["k"] = "changed"
    key.mapping["k"] = "changed"

    assert key == OffsetManagerKey({"k": "v"})


@pytest.mark.parametrize("mapping", [{"k": {}}, {"k": 2**63}, {"k": float("inf")}, {"k": b"bytes"}, {None: "v"}])
def test_what_cannot_be_stored_is_no_key(mapping):
    """A key that Kafka Connect could not store is refused when it is made."""
    with pytest.raises(OffsetValueError, match="a source partition has"):
        OffsetManagerKey(mapping)


def test_a_key_is_the_same_in_another_process():
    """A key that was pickled in a process with other hashes is found in a dictionary of this one."""
    key = OffsetManagerKey({"objectKey": "k", "bucket": "b"})
    program = (
        "import pickle, sys\n"
        "from headrace.offsets.key import OffsetManagerKey\n"
        "sys.stdout.buffer.write(pickle.dumps(OffsetManagerKey({'bucket': 'b', 'objectKey': 'k'})))\n"
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env={"PYTHONHASHSEED": "7"}, check=True, capture_output=True
    )

    assert {key: "found"}[pickle.loads(done.stdout)] == "found"  # noqa: S301 - our own bytes
