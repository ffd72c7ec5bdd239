"""Finds in Avro's blocks what the decoder would take for something else without a word.

That is an integer that 64 bits do not hold, which it would cut, and a boolean that is neither 0 nor 1, which it might
read with bytes behind it. The records are walked over, value by value, without being decoded.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs

__all__ = ["Misread", "Numbers"]

_MORE = 0x80
"""The bit of an integer's bytes that says that there is one behind it, which lets nine bytes hold 63 bits."""

_NINE = 9
_BEYOND = re.compile(rb"[\x80-\xff]{9}[\x02-\xff]")
_TOGETHER = 16

_Skip = Callable[[bytes, int], int]
"""From where a value begins in a block's bytes to what is behind it; IndexError where there is no such value.

ValueError where the decoder would take it for another one.
"""

_Step = int | _Skip
"""A value of so many bytes, or of any number."""


@attrs.frozen
class Misread:
    """A record that the decoder would take for another one: what comes before it in its block, and what is wrong."""

    count: int
    size: int
    error: ValueError


@attrs.frozen
class Numbers:
    """Looks through the records of one schema."""

    _skip: _Skip

    @classmethod
    def of(cls, wire: Any) -> "Numbers":
        """For records of an `AvroSchema.wire`."""
        return cls(_as_skip(_Steps().of(wire)))

    def first_misread(self, data: bytes, count: int) -> Misread | None:
        """The first of `count` records that the decoder would take for another one.

        None where there is none, or where the bytes are no records before there is one: decoding them is an error.
        """
        skip, at = self._skip, 0
        for done in range(count):
            start = at
            try:
                at = skip(data, start)
            except ValueError as error:
                return Misread(done, start, error)
            except (IndexError, RecursionError):
                return None
            if at == start:
                return None
        return None


@attrs.define
class _Steps:
    """The walk through one schema; names are known from their first use on."""

    known: dict[str, _Step] = attrs.field(factory=lambda: dict(_PLAIN))

    def of(self, node: Any) -> _Step:
        if isinstance(node, str):
            return self.known[node] if node in self.known else self._later(node)
        if isinstance(node, list):
            return _union([_as_skip(self.of(branch)) for branch in node])
        kind = node["type"]
        if kind == "array":
            return _repeated(self.of(node["items"]))
        if kind == "map":
            return _repeated(_in_turn([_text, self.of(node["values"])]))
        return self._defined(kind, node)

    def _defined(self, kind: str, node: Any) -> _Step:
        found: _Step = int(node["size"]) if kind == "fixed" else _integer
        if kind == "record":
            found = _in_turn([self.of(field["type"]) for field in node["fields"]])
        self.known[node["name"]] = found
        return found

    def _later(self, name: str) -> _Skip:
        """A value of a type inside of itself."""

        def skip(data: bytes, at: int) -> int:
            return _as_skip(self.known[name])(data, at)

        return skip


def _integer(data: bytes, at: int) -> int:
    if data[at] < _MORE:
        return at + 1
    last = at + 1
    while data[last] >= _MORE:
        last += 1
    if last - at > _NINE or (last - at == _NINE and data[last] > 1):
        raise ValueError("an integer is beyond 64 bits")
    return last + 1


def _integers(count: int) -> _Skip:
    """So many integers."""
    find = re.compile(rb"(?:[\x80-\xff]*+[\x00-\x7f]){%d}+" % count).match

    def skip(data: bytes, at: int) -> int:
        found = find(data, at)
        if found is not None and _BEYOND.search(data, at, found.end()) is None:
            return found.end()
        for _ in range(count):
            at = _integer(data, at)
        return at

    return skip


def _booleans(count: int) -> _Skip:
    """So many booleans."""

    def skip(data: bytes, at: int) -> int:
        if data[at : at + count].strip(b"\0\1"):
            raise ValueError("a boolean is neither 0 nor 1")
        return at + count

    return skip


def _signed(data: bytes, at: int) -> tuple[int, int]:
    """An integer, and what is behind it."""
    found = data[at]
    if found < _MORE:
        return (found >> 1) ^ -(found & 1), at + 1
    end = _integer(data, at)
    found = sum((byte & ~_MORE) << 7 * index for index, byte in enumerate(data[at:end]))
    return (found >> 1) ^ -(found & 1), end


def _texts(count: int) -> _Skip:
    """So many texts. Most have a length of one byte or two."""

    def skip(data: bytes, at: int) -> int:
        for _ in range(count):
            size = data[at]
            if size < _MORE:
                at += 1
            elif (second := data[at + 1]) < _MORE:
                size += (second - 1) * _MORE
                at += 2
            else:
                size, at = _signed(data, at)
                size <<= 1
            if size & 1 or size < 0:
                raise IndexError
            at += size >> 1
        return at

    return skip


_boolean = _booleans(1)
_text = _texts(1)
_PLAIN: Mapping[str, _Step] = {
    "null": 0,
    "boolean": _boolean,
    "float": 4,
    "double": 8,
    **dict.fromkeys(("int", "long"), _integer),
    **dict.fromkeys(("bytes", "string"), _text),
}


def _union(branches: Sequence[_Skip]) -> _Skip:
    def skip(data: bytes, at: int) -> int:
        index = data[at]
        if index < _MORE and not index & 1:
            return branches[index >> 1](data, at + 1)
        index, at = _signed(data, at)
        if index < 0:
            raise IndexError
        return branches[index](data, at)

    return skip


def _repeated(item: _Step) -> _Skip:
    """The blocks of an array or a map; no item is without bytes."""
    together = _integers(_TOGETHER)

    def skip(data: bytes, at: int) -> int:
        while True:
            count = data[at]
            if count < _MORE and not count & 1:
                count >>= 1
                at += 1
            else:
                count, at = _signed(data, at)
            if not count:
                return at
            if count < 0:
                count, at = -count, _integer(data, at)
            if count > len(data) - at:
                raise IndexError
            if isinstance(item, int):
                at += count * item
                continue
            if item is _integer:
                for _ in range(count // _TOGETHER):
                    at = together(data, at)
                count %= _TOGETHER
            for _ in range(count):
                at = item(data, at)

    return skip


_JOINED: Mapping[_Step, Callable[[int], _Skip]] = {
    _boolean: _booleans,
    _integer: _integers,
    _text: _texts,
}


def _in_turn(steps: Iterable[_Step]) -> _Step:
    """The values of a record; neighbours of one kind are passed over together."""
    joined: list[_Step] = []
    for kind, group in groupby(steps, lambda step: int if isinstance(step, int) else step):
        alike = list(group)
        if kind is int:
            joined.append(sum(step for step in alike if isinstance(step, int)))
        elif len(alike) > 1 and kind in _JOINED:
            joined.append(_JOINED[kind](len(alike)))
        else:
            joined += alike
    if len(joined) <= 1:
        return joined[0] if joined else 0
    skips = [_as_skip(step) for step in joined]

    def skip(data: bytes, at: int) -> int:
        for one in skips:
            at = one(data, at)
        return at

    return skip


def _as_skip(step: _Step) -> _Skip:
    return (lambda _, at: at + step) if isinstance(step, int) else step
