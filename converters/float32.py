"""Floats of 32 bits with the shortest digits that make them: what Java writes of one."""

import math
import struct
from array import array
from collections.abc import Sequence
from itertools import compress
from operator import eq

from headrace.framework.connect_text import java_double

__all__ = ["float32", "floats32"]

_FLOAT = struct.Struct(">f")
_SMALLEST_NORMAL = 1.2e-38
_SMALLEST_QUICK, _QUICK_BELOW = 1e-3, 1e7
"""In between, every number of nine digits is the nearest double to a whole number over a power of ten."""


def float32(value: float) -> float:
    """The number with the shortest digits that is the same float of 32 bits: what Java writes of one."""
    if not math.isfinite(value):
        return float(value)
    packed = _pack(value)
    for digits in range(5 if abs(value) > _SMALLEST_NORMAL else 1, 8):
        found = float(f"{_FLOAT.unpack(packed)[0]:.{digits}e}")
        if _pack(found) == packed:
            return found
    return float(f"{_FLOAT.unpack(packed)[0]:.8e}")


def _pack(value: float) -> bytes:
    try:
        return _FLOAT.pack(value)
    except OverflowError as error:
        raise ValueError(f"{java_double(value)} is beyond a float of 32 bits") from error


def floats32(column: Sequence[float]) -> list[float]:
    """`float32` of each, a column at a time."""
    sizes = list(map(abs, filter(None, column)))
    if not sizes or not math.isfinite(sum(sizes)) or min(sizes) < _SMALLEST_QUICK or max(sizes) >= _QUICK_BELOW:
        return list(map(float32, column))
    exact = array("f", column)
    found = exact.tolist()
    left = [index for index, value in enumerate(found) if value]
    # With fewer than six digits there is none shorter that six would not make, too.
    scale = 10.0 ** max(0, 5 - int(math.log10(max(sizes))))
    while left:
        rounded = [round(found[index] * scale) / scale for index in left]
        same = list(map(eq, array("f", rounded), [exact[index] for index in left]))
        for index, value in compress(zip(left, rounded, strict=True), same):
            found[index] = value
        left = [index for index, is_same in zip(left, same, strict=True) if not is_same]
        scale *= 10
    return found
