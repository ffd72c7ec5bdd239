"""The pages of a column, by their headers."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

__all__ = ["DAMAGE", "Page", "pages"]

DAMAGE = (IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What is raised for a page that cannot be."""

_HEADER_BYTES = 1024
_MOST_HEADER_BYTES = 16 * 1024 * 1024

_KIND, _UNPACKED, _PACKED = 1, 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_FIELDS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_VALUES = 1
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_LEVELS_ENCODING, _LEVELS_SIZE, _OTHER_LEVELS_SIZE = 4, 6, 5
_LEVELS_ENCODINGS = (3, 4)

_DICTIONARY_ENCODINGS = frozenset({2, 8})
_BIT_PACKED = 4
_DELTA = 7


@attrs.frozen(kw_only=True)
class Page:
    """A page whose `packed` bytes, `unpacked` without their compression, begin at the byte `at`."""

    kind: int
    at: int
    packed: int
    unpacked: int
    more: Mapping[int, Any]

    @property
    def is_dictionary(self) -> bool:
        """Whether it has the values that others have as numbers."""
        return self.kind == _DICTIONARY

    @property
    def values(self) -> int:
        """How many entries of the column it has, those counted that are null or an empty list."""
        return _not_negative(self.more[_VALUES]) if self.kind in {_DATA, _DATA_V2} else 0

    @property
    def is_coded(self) -> bool:
        """Whether its values are numbers into a dictionary."""
        return self.more[_ENCODING[self.kind]] in _DICTIONARY_ENCODINGS

    @property
    def is_delta(self) -> bool:
        """Whether each of its texts is what differs from the one before."""
        return self.kind in {_DATA, _DATA_V2} and self.more[_ENCODING[self.kind]] == _DELTA

    @property
    def levels_size(self) -> int | None:
        """The bytes of the repetition levels, which then are not compressed; None where they are with all the rest."""
        return _not_negative(self.more[_LEVELS_SIZE]) if self.kind == _DATA_V2 else None

    @property
    def has_only_runs(self) -> bool:
        """Whether no levels stand one after the other."""
        return self.kind != _DATA or _BIT_PACKED not in {self.more[field] for field in _LEVELS_ENCODINGS}

    @property
    def all_levels_size(self) -> int:
        """The bytes of all levels that are not compressed."""
        sizes = (_LEVELS_SIZE, _OTHER_LEVELS_SIZE) if self.kind == _DATA_V2 else ()
        return sum(_not_negative(self.more[size]) for size in sizes)

    @property
    def has_packed_levels(self) -> bool:
        """Whether the repetition levels stand one after the other, as in old files."""
        return self.kind == _DATA and self.more[_LEVELS_ENCODING] == _BIT_PACKED


def pages(source: Any, extent: tuple[int, int], values: int) -> Iterator[Page]:
    """The pages with these bytes of the file `source`, up to the one that completes so many values; `DAMAGE`."""
    at, end = extent
    before = 0
    while before < values and at < end:
        header, size = _header(source, at, end)
        kind = header[_KIND]
        page = Page(
            kind=kind,
            at=at + size,
            packed=_not_negative(header[_PACKED]),
            unpacked=_not_negative(header[_UNPACKED]),
            more=header[_FIELDS[kind]] if kind in _FIELDS else {},
        )
        yield page
        before += page.values
        at = page.at + page.packed


def _not_negative(number: int) -> int:
    if number < 0:
        raise ValueError(f"a page has {number} bytes or values")
    return number


def _header(source: Any, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of the page that begins at a byte, by the numbers of its fields, and its size."""
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
    """Thrift's compact protocol, as far as a header needs it. An IndexError where there are not bytes enough.

    Of numbers only those of 32 bits are taken, which all are that matter: a field with anything else in it is passed
    over, as pyarrow does.
    """

    data: bytes
    at: int = attrs.field(default=0, init=False)

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15)
            if value is not None:
                found[field] = value
        return found

    def _value(self, kind: int) -> Any:
        simple = {1: lambda: None, 2: lambda: None, 3: lambda: self._skip(1), 4: self._number_skipped}
        numbers = {5: self._integer, 6: self._number_skipped, 7: lambda: self._skip(8)}
        others = {8: lambda: self._skip(self._number()), 9: self._list, 12: self.struct}
        return {**simple, **numbers, **others}[kind]()

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

    def _number_skipped(self) -> None:
        self._number()

    def _integer(self) -> int:
        found = self._number()
        if found >> 32:
            raise ValueError(f"a page's header has the number {found}, which is beyond 32 bits")
        return found >> 1 ^ -(found & 1)
