"""Repetition levels as a page has them: runs of one level, and of levels that are packed into bits."""

from collections.abc import Generator, Iterator
from functools import cache
from itertools import repeat

import attrs

__all__ = ["Packed", "Repeated", "glance", "hybrid"]

_GROUPS_AT_ONCE = 8 * 1024
_NUMBER_BYTES, _NUMBER_BITS = 5, 32
_ONE_BYTE = 128
_TOO_FEW = "a page has fewer levels than values"
_BEGINS, _GOES_ON = b"0", b"1"


@attrs.frozen
class Repeated:
    """So many entries, of which each begins a row, or none does."""

    begins: bool
    count: int

    def rows(self, row: int) -> Generator[int, None, int]:
        """The entries of each row that ends, where the first has had so many before; returns those of the last."""
        if not self.begins:
            return row + self.count
        if row:
            yield row
        yield from repeat(1, self.count - 1)
        return 1


@attrs.frozen
class Packed:
    """So many levels of so many bits each, the first of them the lowest. A row begins at each that is 0."""

    data: bytes
    bits: int
    count: int

    def rows(self, row: int) -> Generator[int, None, int]:
        """As above."""
        for digits in self._digits():
            first, *others = digits.split("0")
            row += len(first)
            for other in others:
                if row:
                    yield row
                row = 1 + len(other)
        return row

    def _digits(self) -> Iterator[str]:
        """For each level one digit, which is 0 where it is."""
        if 8 * len(self.data) < self.count * self.bits:
            raise ValueError(_TOO_FEW)
        size = _GROUPS_AT_ONCE * self.bits
        for at in range(0, (self.count * self.bits + 7) // 8, size):
            piece = self.data[at : at + size]
            levels = found = int.from_bytes(piece, "little")
            for bit in range(1, self.bits):
                found |= levels >> bit
            digits = f"{found:0{8 * len(piece)}b}"[:: -self.bits]
            yield digits[: self.count - 8 * at // self.bits]


def hybrid(data: bytes, bits: int, left: int) -> Iterator[Repeated | Packed]:
    """The runs of so many levels, as Parquet has them one after the other. They may be of more levels than these."""
    at, size = 0, (bits + 7) // 8
    while left:
        head, begin = _number(data, at)
        run: Repeated | Packed
        if head & 1:
            levels, at = _packed(data, at, begin, (head >> 1) * bits)
            run = Packed(levels, bits, min(left, 8 * len(levels) // bits))
        else:
            at = begin + size
            run = Repeated(not any(data[begin:at]), min(left, head >> 1) if at <= len(data) else 0)
        if not run.count:
            raise ValueError(_TOO_FEW)
        yield run
        left -= run.count


def glance(data: bytes, bits: int, left: int, row: int, most: int) -> int | None:
    """What the last row of so many levels has at the most, where the first has had `row` of them before.

    None where any row may have more than `most`. Levels that lie across two bytes are not looked at.
    """
    if 8 % bits:
        return None
    each, marks, at = 8 // bits, _marks(bits), 0
    while left > 0:
        head, begin = (data[at], at + 1) if data[at] < _ONE_BYTE else _number(data, at)
        count = head >> 1
        if not head & 1:
            row, at = (row + count if data[begin] else 1), begin + 1
        elif row + 8 * count <= most and 8 * count <= left:
            at, count = begin + count * bits, 8 * count
            row = count if _BEGINS in data[begin:at].translate(marks) else row + count
        else:
            levels, at = _packed(data, at, begin, count * bits)
            count = min(left, len(levels) * each)
            row = _glance(levels[: count // each].translate(marks), each, row, most) + count % each
        if row > most or not count:
            return None
        left -= count
    return row


def _glance(marks: bytes, each: int, row: int, most: int) -> int:
    """As above, where each byte says whether a row begins in it, and has so many levels."""
    first = len(marks) - len(marks.lstrip(_GOES_ON))
    if first == len(marks):
        return row + first * each
    last = len(marks) - len(marks.rstrip(_GOES_ON))
    is_short = _GOES_ON * max(1, most // each - 2) not in marks and row + (first + 1) * each <= most
    return (last + 1) * each if is_short else most + 1


def _packed(data: bytes, at: int, begin: int, size: int) -> tuple[bytes, int]:
    """The levels of so many bytes behind a head, with those of all like runs behind them, and where they end."""
    end = begin + size
    if begin - at != 1 or data[end : end + 1] != data[at:begin]:
        return data[begin:end], min(end, len(data))
    whole = (len(data) - at) // (end - at)
    heads = data[at : at + whole * (end - at) : end - at]
    like = len(heads) - len(heads.lstrip(data[at:begin]))
    found = bytearray(data[at : at + like * (end - at)])
    del found[:: end - at]
    return (bytes(found), at + like * (end - at)) if like else (data[begin:end], end)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of any length, and where it ends."""
    found = 0
    for index, byte in enumerate(data[at : at + _NUMBER_BYTES]):
        found |= (byte & 127) << 7 * index
        if byte < _ONE_BYTE and not found >> _NUMBER_BITS:
            return found, at + index + 1
    raise ValueError(_TOO_FEW)


@cache
def _marks(bits: int) -> bytes:
    """For each byte whether a row begins in it."""
    level = 2**bits - 1
    begins = (any(not byte >> at & level for at in range(0, 8, bits)) for byte in range(256))
    return b"".join(_BEGINS if one else _GOES_ON for one in begins)
