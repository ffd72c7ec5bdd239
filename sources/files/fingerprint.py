"""What tells one file from another when its name does not: what it begins with, and what stands before a place."""

import os
from hashlib import blake2b
from typing import Protocol

import attrs

from headrace.framework.compat import override

__all__ = ["MARK_BYTES", "Content", "HeldContent", "LocalContent", "fingerprint", "same_beginning"]

MARK_BYTES = 1024

_COMPARED_BYTES = 1024 * 1024


def fingerprint(data: bytes) -> str:
    """A short text that other data is not likely to have."""
    return blake2b(data, digest_size=8).hexdigest()


class Content(Protocol):
    """The marks of a file that can be looked into anywhere."""

    def head(self, size: int) -> str:
        """The fingerprint of its first `size` bytes."""
        ...

    def before(self, position: int) -> str:
        """The fingerprint of the last `MARK_BYTES` bytes before a position, or of as many as there are."""
        ...


@attrs.frozen
class LocalContent(Content):
    """The content of an open file. Nothing that it does moves the place where the file is read."""

    descriptor: int

    @override
    def head(self, size: int) -> str:
        return fingerprint(os.pread(self.descriptor, size, 0))

    @override
    def before(self, position: int) -> str:
        start = max(0, position - MARK_BYTES)
        return fingerprint(os.pread(self.descriptor, position - start, start))


@attrs.frozen
class HeldContent(Content):
    """The content of a file that is held as a whole."""

    data: bytes

    @override
    def head(self, size: int) -> str:
        return fingerprint(self.data[:size])

    @override
    def before(self, position: int) -> str:
        return fingerprint(self.data[max(0, position - MARK_BYTES) : position])


def same_beginning(one: int, other: int) -> bool:
    """Whether of two open files the shorter one is how the longer one begins, as far as a look at both ends tells."""
    shared = min(os.fstat(one).st_size, os.fstat(other).st_size)
    places = {(0, min(shared, _COMPARED_BYTES)), (max(0, shared - _COMPARED_BYTES), min(shared, _COMPARED_BYTES))}
    return all(os.pread(one, size, at) == os.pread(other, size, at) for at, size in places)
