"""Whether a block's bytes leave room for what the decoder would take for something else."""

import re

__all__ = ["has_long_booleans", "is_doubtful"]

_MORE = 0x80
_NINE = 9
_WINDOW = 64 * 1024
_FRONT = 512
"""Texts that are not Latin are seen in so many bytes."""

_OFTEN = 8
"""Where one byte in so many has its highest bit, the bytes around each are not looked at."""

_HIGH = bytes([0] * _MORE + [1] * _MORE)
_KINDS = bytes([0, 0] + [2] * (_MORE - 2) + [1] * _MORE)

# Both are found three times as fast as by `in`.
_FALSE = re.compile(rb"\x80\0")
_TRUE = re.compile(rb"\x81\0")


def has_long_booleans(data: bytes) -> bool:
    """Whether an integer of several bytes that is 0 or -1 might stand in these; if not, there is none.

    A boolean is read as an integer, and would be true or false by such a one, of which only one byte is its own.
    """
    return _FALSE.search(data) is not None or _TRUE.search(data) is not None


def is_doubtful(data: bytes) -> bool:
    """Whether an integer beyond 64 bits might stand in these bytes; if not, there is none.

    Such a one has nine bytes that say that there is more, and then one of more than 1. Whether there are such bytes is
    asked of every ninth, then of every third, and only then of all of them.
    """
    if len(data) <= _WINDOW:
        return _is_doubtful(data)
    return any(_is_doubtful(data[at : at + _WINDOW + _NINE]) for at in range(0, len(data), _WINDOW))


def _is_doubtful(data: bytes) -> bool:
    if not _is_doubtful_by_ninths(data):
        return False
    if _is_doubtful_by_all(data[:_FRONT]):
        return True
    return b"\1\1\1" in data[::3].translate(_HIGH) and _is_doubtful_by_all(data)


def _is_doubtful_by_ninths(data: bytes) -> bool:
    """One of the nine is among every ninth byte, and has another of them beside it."""
    ninths = data[_NINE - 1 : -1 : _NINE]
    if ninths.isascii():
        return False
    most = len(ninths) // _OFTEN
    low = ninths.translate(_HIGH).split(b"\1", most)
    if len(low) > most:
        return True
    at = -1
    for before in low[:-1]:
        at += _NINE * (len(before) + 1)
        if data[at - 1] >= _MORE or data[at + 1] >= _MORE:
            return True
    return False


def _is_doubtful_by_all(data: bytes) -> bool:
    kinds = data.translate(_KINDS)
    return b"\1" * _NINE + b"\2" in kinds or b"\1" * (_NINE + 1) in kinds
