"""Streams whose faults are elements of a list: what a transformer is given in a test."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import attrs

from headrace.transformers.base import ValueBatch

__all__ = ["ScriptedStream", "SeekableBytes", "drained"]


def _as_list(script: Iterable[bytes | Exception]) -> list[bytes | Exception]:
    return list(script)


@attrs.define
class ScriptedStream:
    """A stream that reads as its script says: bytes are given out, an exception is raised, the end is a clean end.

    One read never gives more than one piece, so the pieces are the reads; an empty piece is left out, for it would
    be an end. `closed_cleanly` tells whether the end was reached.
    """

    _script: list[bytes | Exception] = attrs.field(converter=_as_list)
    _at: int = attrs.field(default=0, init=False)
    closed_cleanly: bool = attrs.field(default=False, init=False)

    def read(self, size: int, /) -> bytes:
        """What comes next, at most `size` bytes of it."""
        while self._script and self._script[0] == b"":
            self._script.pop(0)
        if not self._script:
            self.closed_cleanly = True
            return b""
        piece = self._script[0]
        if isinstance(piece, Exception):
            self._script.pop(0)
            raise piece
        part = piece[self._at : self._at + size]
        self._at += len(part)
        if self._at == len(piece):
            self._script.pop(0)
            self._at = 0
        return part

    @classmethod
    def cut(cls, data: bytes, *places: int) -> "ScriptedStream":
        """A stream of `data`, cut at these places."""
        ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
        return cls([data[start:end] for start, end in pairwise(ends)])


@attrs.define
class SeekableBytes:
    """An object in memory in which a transformer can go about; `fetched` counts the bytes that it has been given.

    No read gives more than `largest` bytes.
    """

    data: bytes
    largest: int = 1024 * 1024
    fetched: int = attrs.field(default=0, init=False)
    _at: int = attrs.field(default=0, init=False)
    _end: int | None = attrs.field(default=None, init=False)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def read(self, size: int, /) -> bytes:
        """What comes next, no more than what was wanted, if that was said."""
        if self._end is not None and self._at >= self._end:
            self._end = None
        end = self._at + min(size, self.largest)
        part = self.data[self._at : end if self._end is None else min(end, self._end)]
        self._at += len(part)
        self.fetched += len(part)
        return part

    def go_to(self, byte: int, /, *, wanted: int | None = None) -> None:
        """Have the next read begin with that byte."""
        self._at = byte
        self._end = None if wanted is None else byte + max(wanted, 1)


def drained(batches: Iterable[ValueBatch]) -> tuple[list[Any], Exception | None]:
    """All the values that a transformer gives out, and the error that ended them, or None for a clean end."""
    values: list[Any] = []
    try:
        for batch in batches:
            values.extend(batch.values)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test that asked for it judges it
        return values, error
    return values, None
