"""The hashes are Kafka's and Java's, so that keys and objects fall where Kafka Connect puts them."""

import json
from pathlib import Path

import pytest

from headrace.offsets.hashing import java_hash_code, murmur2, partition_for

VECTORS = json.loads((Path(__file__).parents[1] / "data/offset-vectors.json").read_text())["vectors"]
EACH_VECTOR = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: ascii(vector["objectKey"]))


@EACH_VECTOR
def test_keys_fall_into_connects_partitions(vector):
    """A key lies in the partition of 25 that Kafka's own producer chooses, in both orders of its names."""
    for order in ("bucket_first", "objectKey_first"):
        key = bytes.fromhex(vector[f"key_{order}_hex"])
        assert partition_for(key, 25) == vector[f"partition25_{order}"]


@EACH_VECTOR
def test_java_hash_code(vector):
    """The hash of a text is Java's, and so is its remainder by seven, negative hashes included."""
    hashed = java_hash_code(vector["objectKey"])

    assert hashed == vector["java_hashCode"]
    assert hashed % 7 == vector["floorMod7"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("polygenelubricants", -(2**31)), ("😀", 0xD83D * 31 + 0xDE00), ("\udc80", 0xDC80)],
)
def test_java_hash_code_counts_utf16_units(text, expected):
    """Text is hashed by UTF-16 units, so what is above U+FFFF counts as two, and wraps at 32 bits."""
    assert java_hash_code(text) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 275646681), (1, 3075661035), (2, 554105589), (3, 1760712379), (4, 1325647367)]
)
def test_murmur2_takes_the_rest_of_a_word(size, expected):
    """Keys whose length is no multiple of four bytes are hashed to their last byte."""
    assert murmur2(b"\xf0abc"[:size]) == expected
