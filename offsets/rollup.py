"""Finished work in a few bytes a piece: what takes the place of entries that would otherwise stay for ever.

One entry per object for ever makes the offsets topic grow without end. What is finished needs no position, only the
answer to one question about a piece that a listing shows: was it read to its end in this version, in another one, or
never seen? So a roll-up keeps, of each finished source partition, two marks: 48 bits that stand for its name and 28
that stand for the version that was read. It is kept in 1024 shards by the first bits of the name's mark; a shard is
one record of the topic, its names sorted and Rice-coded. A million pieces take 7.2 MB. A shard takes so many pieces
that its record stays below 512 KB, half of what a broker takes by default: 80 million in all. Those beyond that keep
their entries.

What was rolled up is always found again. The mark of a name stands for one source partition: another one that has the
same mark keeps its entry. Of a piece that was never seen, one in 2**48 / n is taken for one of the n that were rolled
up, and then almost certainly for another version of it; of a piece that has changed, one in 2**28 is taken for
unchanged. A low watermark in place of this could not tell "finished" from "never seen".
"""

import hashlib
import json
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import attrs

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.key import OffsetManagerKey

__all__ = ["SHARDS", "Finished", "RolledUp", "decode_shard", "encode_shard", "name_mark", "version_mark"]

NAME_BITS = 48
VERSION_BITS = 28
SHARDS = 1024
WITHIN_BITS = NAME_BITS - 10

MOST_IN_SHARD = 80_000
"""However so many lie, their record has at most 516,397 bytes: 50 bits each, and 2**17 for the distances."""

FORMAT = 1
HEAD = struct.Struct(">BBI")

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

Finished = tuple[int, int]
"""The marks of a finished source partition: of its name, and of the version that was read."""


def name_mark(key: OffsetManagerKey) -> int:
    """What stands for a source partition, whatever the order of its names."""
    text = _ENCODER.encode(key.mapping)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest())


def version_mark(version: str) -> int:
    """What stands for a version, as the source names versions."""
    digest = hashlib.blake2b(version.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest) >> (32 - VERSION_BITS)


@attrs.define
class RolledUp:
    """The roll-up of one connector, as it was last read; shards are decoded when they are first asked."""

    shards: dict[int, bytes] = attrs.field(factory=dict)
    _decoded: dict[int, tuple["array[int]", "array[int]"]] = attrs.field(factory=dict, init=False)

    def take(self, shard: int, value: bytes | None) -> None:
        """Take in a shard's record; None empties it."""
        self._decoded.pop(shard, None)
        if value is None:
            self.shards.pop(shard, None)
        else:
            self.shards[shard] = value

    def __len__(self) -> int:
        """How many source partitions are rolled up."""
        return sum(map(self._count, self.shards))

    def knows(self, key: OffsetManagerKey, version: str) -> bool | None:
        """Whether `key` was read to its end in this version; False if in another one, None if it is not rolled up.

        Raises `MalformedOffsetError` for a shard that cannot be read: what it held could be anything.
        """
        if not self.shards:
            return None
        known = self._version(name_mark(key))
        return None if known is None else known == version_mark(version)

    def fitting(
        self, finished: Mapping[OffsetManagerKey, str], *, renewed: Collection[OffsetManagerKey] = ()
    ) -> dict[OffsetManagerKey, Finished]:
        """Those of `finished` that can be rolled up, with their marks.

        A name's mark is either free, in a shard that has room, or stands for this very version, or for an older one of
        a source partition that is among `renewed`. Any other may be taken by somebody else, whom nothing would tell
        from an older version.
        """
        taken: dict[int, int] = {}
        room: dict[int, int] = {}
        fits = {}
        for key, text in finished.items():
            name, version = name_mark(key), version_mark(text)
            known = self._version(name)
            holder = taken.get(name, None if key in renewed else known)
            is_new = known is None and name not in taken
            if holder not in {None, version} or (is_new and not self._admit(name, room)):
                continue
            taken[name] = version
            fits[key] = (name, version)
        return fits

    @property
    def full(self) -> int:
        """How many shards take no more."""
        return sum(self._count(shard) >= MOST_IN_SHARD for shard in self.shards)

    def __iter__(self) -> Iterator[Finished]:
        """Everything that is rolled up, in the order of the marks."""
        for shard in sorted(self.shards):
            yield from zip(*self._shard(shard), strict=True)

    def changed(
        self, add: Iterable[Finished] = (), *, keep: Callable[[int], bool] | None = None
    ) -> Mapping[int, bytes | None]:
        """The shards as they would be with `add`, and without the names that `keep` says no to: only those that differ.

        A name that is added again has the version that is added.
        """
        wanted: dict[int, dict[int, int]] = {}
        for name, version in add:
            wanted.setdefault(name >> WITHIN_BITS, {})[name] = version
        touched = set(wanted) if keep is None else {*wanted, *self.shards}
        changed = {}
        for shard in sorted(touched):
            before = dict(zip(*self._shard(shard), strict=True))
            kept = {name: version for name, version in before.items() if keep is None or keep(name)}
            after = {**kept, **wanted.get(shard, {})}
            if after != before:
                changed[shard] = encode_shard(sorted(after.items())) if after else None
        return changed

    def _admit(self, name: int, room: dict[int, int]) -> bool:
        """Take one place of what `room` says is left in the name's shard, if there is one."""
        shard = name >> WITHIN_BITS
        left = room.setdefault(shard, MOST_IN_SHARD - self._count(shard))
        room[shard] = left - 1
        return left > 0

    def _count(self, shard: int) -> int:
        value = self.shards.get(shard, b"")
        return int(HEAD.unpack_from(value)[2]) if len(value) >= HEAD.size else 0

    def _version(self, name: int) -> int | None:
        names, versions = self._shard(name >> WITHIN_BITS)
        place = bisect_left(names, name)
        return versions[place] if place < len(names) and names[place] == name else None

    def _shard(self, shard: int) -> tuple["array[int]", "array[int]"]:
        if shard not in self._decoded:
            self._decoded[shard] = decode_shard(shard, self.shards.get(shard))
        return self._decoded[shard]


def encode_shard(finished: Iterable[Finished]) -> bytes:
    """A shard's record: `finished` are its marks, sorted by name, no name twice."""
    marks = list(finished)
    low_bits = max(0, ((1 << WITHIN_BITS) // max(1, len(marks))).bit_length() - 1)
    return HEAD.pack(FORMAT, low_bits, len(marks)) + _packed("".join(_codes(marks, low_bits)))


def _codes(marks: Iterable[Finished], low_bits: int) -> Iterator[str]:
    """Of each mark the distance from the one before it, its upper part in unary, and the version."""
    last = -1
    for name, version in marks:
        within = name & ((1 << WITHIN_BITS) - 1)
        high, low = divmod(within - last - 1, 1 << low_bits)
        yield f"{'0' * high}1{(low << VERSION_BITS) | version:0{low_bits + VERSION_BITS}b}"
        last = within


def decode_shard(shard: int, value: bytes | None) -> tuple["array[int]", "array[int]"]:
    """The names and the versions of a shard, in the order of the names."""
    if value is None:
        return array("Q"), array("L")
    try:
        return _decoded(shard, value)
    except (ValueError, struct.error, OverflowError) as error:
        raise MalformedOffsetError(
            f"shard {shard} of the roll-up cannot be read: {error}; reset the connector's offsets, or run the headrace "
            "that wrote it"
        ) from error


def _decoded(shard: int, value: bytes) -> tuple["array[int]", "array[int]"]:
    names, versions = array("Q"), array("L")
    form, low_bits, count = HEAD.unpack_from(value)
    if form != FORMAT:
        raise ValueError(f"it has form {form}, and this headrace knows {FORMAT}")
    bits = _unpacked(value[HEAD.size :])
    width, base, place, last = low_bits + VERSION_BITS, shard << WITHIN_BITS, 0, -1
    for _ in range(count):
        one = bits.index("1", place)
        rest = int(bits[one + 1 : one + 1 + width], 2)
        last += ((one - place) << low_bits) + (rest >> VERSION_BITS) + 1
        place = one + 1 + width
        names.append(base + last)
        versions.append(rest & ((1 << VERSION_BITS) - 1))
    if place > len(bits):
        raise ValueError("it ends too early")
    return names, versions


def _packed(bits: str) -> bytes:
    padded = bits + "0" * (-len(bits) % 8)
    return int(padded, 2).to_bytes(len(padded) // 8) if padded else b""


def _unpacked(data: bytes) -> str:
    return f"{int.from_bytes(data):0{len(data) * 8}b}" if data else ""
