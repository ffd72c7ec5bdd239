"""What holds of the offsets topic's bytes, whatever is stored."""

import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.offsets.codec import decode_key, decode_value, encode_key, encode_value, key_prefix, key_spellings
from headrace.offsets.hashing import java_hash_code, partition_for
from headrace.offsets.key import OffsetManagerKey

# File names that are no UTF-8 reach Python as lone low surrogates.
texts = st.text() | st.binary().map(lambda raw: raw.decode(errors="surrogateescape"))
floats = st.floats(allow_nan=False, allow_infinity=False)
primitives = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | floats | texts
maps = st.dictionaries(texts, primitives, max_size=4)


def typed(mapping):
    return [(name, type(value), repr(value)) for name, value in mapping.items()]


@given(maps)
def test_values_come_back_as_they_were(properties):
    """Every flat map of primitives is read back with the same names, in the same order, of the same types."""
    assert typed(decode_value(encode_value(properties))) == typed(properties)


@given(texts, maps)
def test_keys_come_back_as_they_were(connector, partition):
    """Every connector's name and source partition are read back from their key."""
    name, key = decode_key(encode_key(connector, partition))

    assert name == connector
    assert typed(key.mapping) == typed(partition)


@given(texts, maps)
def test_every_spelling_is_the_same_key(connector, partition):
    """In whatever order the names were written, the key that is read is one, and it is among its own spellings."""
    key = OffsetManagerKey(partition)

    for raw in key_spellings(connector, key):
        assert decode_key(raw) == (connector, key)
        assert raw in set(key_spellings(connector, decode_key(raw)[1]))


@given(texts, texts, maps)
def test_a_prefix_belongs_to_one_connector(connector, other, partition):
    """A key begins with a connector's prefix exactly if it is that connector's."""
    assert encode_key(connector, partition).startswith(key_prefix(other)) == (connector == other)


@given(maps)
def test_any_json_reader_agrees(properties):
    """What is written is JSON that another reader understands in the same way."""
    assert typed(json.loads(encode_value(properties))) == typed(properties)


@given(st.binary(), st.integers(1, 1000))
def test_every_key_has_a_partition(key, partitions):
    """The partition of a key is one that the topic has."""
    assert 0 <= partition_for(key, partitions) < partitions


@given(texts, texts)
def test_java_hash_code_is_a_polynomial(first, second):
    """The hash of two texts in a row follows from the hashes of both, as Java defines it, in 32 signed bits."""
    units = len(second.encode("utf-16-be", "surrogatepass")) // 2

    whole = java_hash_code(first + second)

    assert -(2**31) <= whole < 2**31
    assert (java_hash_code(first) * 31**units + java_hash_code(second) - whole) % 2**32 == 0
