"""The two hashes that other programs compute, too: Kafka's murmur2 and Java's `String.hashCode`.

Which partition of the offsets topic a key lies in, and which task an object belongs to, must come out as in Kafka
Connect, or an old entry and its successor would live side by side.
"""

import struct

__all__ = ["java_hash_code", "murmur2", "partition_for"]

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 of `data`, as an unsigned number of 32 bits."""
    size = len(data)
    words = size >> 2
    state = _SEED ^ size
    for word in struct.unpack_from(f"<{words}I", data):
        mixed = word * _MULTIPLIER & _MASK
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _MASK
        state = (state * _MULTIPLIER & _MASK) ^ mixed
    rest = data[words << 2 :]
    if rest:
        state = (state ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    return state ^ state >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that a Java producer puts `key` in, of a topic that has `partitions` of them."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def java_hash_code(text: str) -> int:
    """Java's `String.hashCode`, over UTF-16 units, as a signed number of 32 bits."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    state = 0
    for unit in struct.unpack(f"<{len(encoded) >> 1}H", encoded):
        state = (31 * state + unit) & _MASK
    return state - (1 << 32) if state >> 31 else state
