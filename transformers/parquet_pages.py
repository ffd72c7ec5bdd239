"""What the headers of a column's pages say of how its values are written down."""

import sys
from typing import Any

import attrs

__all__ = ["Coded", "coded"]

_DICTIONARY_ENCODINGS = frozenset({2, 8})
_HEADER_BYTES = 1024
_MOST_HEADER_BYTES = 16 * 1024 * 1024
_MOST_PAGES = 10_000

_UNPACKED, _SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 2, 3, 5, 7, 8
_VALUES = 1
_ENCODING = {_DATA_PAGE: 2, _DATA_PAGE_V2: 4}


@attrs.frozen
class Coded:
    """How many values of a column there are up to the last that is a number into its dictionary, and the bytes of that.

    Of both it is the most that may be.
    """

    values: int
    dictionary: int


def coded(source: Any, extent: tuple[int, int], values: int) -> Coded:
    """What holds for the column with these bytes of the file `source`, which has so many `values` by the footer."""
    try:
        return _coded(source, *extent, values)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return Coded(sys.maxsize, sys.maxsize)


def _coded(source: Any, at: int, end: int, values: int) -> Coded:
    before = found = dictionary = 0
    for _ in range(_MOST_PAGES):
        if before >= values:
            return Coded(found, dictionary)
        header, size = _header(source, at, end)
        if _DICTIONARY_PAGE in header:
            dictionary += _not_negative(header[_UNPACKED])
        for kind, encoding in _ENCODING.items():
            if kind in header:
                before += _not_negative(header[kind][_VALUES])
                found = before if header[kind][encoding] in _DICTIONARY_ENCODINGS else found
        at += size + _not_negative(header[_SIZE])
    raise ValueError(f"there are more than {_MOST_PAGES} pages")


def _not_negative(number: int) -> int:
    if number < 0:
        raise ValueError(f"a page has {number} bytes or values")
    return number


def _header(source: Any, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of the page that begins at a byte, by the numbers of its fields, and its size."""
    if at >= end:
        raise ValueError("there are fewer pages than the footer says")
    size = _HEADER_BYTES
    while True:
        source.seek(at)
        found = _Compact(bytes(source.read(min(size, end - at))))
        try:
            return found.struct(), found.at
        except IndexError:
            if size >= min(_MOST_HEADER_BYTES, end - at):
                raise
        size *= 16


@attrs.define
class _Compact:
    """Thrift's compact protocol, as far as a header needs it. An IndexError where there are not bytes enough."""

    data: bytes
    at: int = attrs.field(default=0, init=False)

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            found[field] = self._value(head & 15)
        return found

    def _value(self, kind: int) -> Any:
        simple = {1: lambda: True, 2: lambda: False, 3: self._byte, 4: self._integer, 5: self._integer}
        others = {6: self._integer, 7: lambda: self._skip(8), 8: lambda: self._skip(self._number()), 9: self._list}
        return {**simple, **others, 12: self.struct}[kind]()

    def _list(self) -> None:
        head = self._byte()
        for _ in range(head >> 4 if head >> 4 != 15 else self._number()):  # noqa: PLR2004 - as the protocol has it
            self._value(max(3, head & 15))

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _skip(self, size: int) -> None:
        self.at += size

    def _number(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift

    def _integer(self) -> int:
        found = self._number()
        return found >> 1 ^ -(found & 1)
