"""Objects of the same fields, held column by column, and columns of texts."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import attrs

from headrace.framework.compat import override

__all__ = ["ESCAPED_IN_JSON", "Table", "Texts"]

ESCAPED_IN_JSON = bytes(range(0x20)) + b'"\\' + bytes(range(0xF0, 0xF5))
"""The bytes of UTF-8 that are, or begin, what Java's JSON has an escape for."""


@attrs.frozen(eq=False)
class Table(Sequence[dict[str, Any]]):
    """Objects that have the same fields in the same order: `columns` has the values of each field.

    A sequence of the objects, each of which is made when somebody asks for it. Who can do with the columns spares
    that, which is most of the price of a record. Nobody changes them.
    """

    names: tuple[str, ...]
    columns: Sequence[Sequence[Any]]
    size: int

    @override
    def __len__(self) -> int:
        return self.size

    @override
    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.names:
            return iter([{} for _ in range(self.size)])
        return (dict(zip(self.names, row, strict=False)) for row in zip(*self.columns, strict=True))

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> "Table": ...

    @override
    def __getitem__(self, index: int | slice) -> "dict[str, Any] | Table":
        if isinstance(index, slice):
            return Table(self.names, [column[index] for column in self.columns], len(range(self.size)[index]))
        return {name: column[index] for name, column in zip(self.names, self.columns, strict=True)}

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list's: its values may be of any kind


@attrs.frozen(eq=False)
class Texts(Sequence[str]):
    """Texts of which the UTF-8 is at hand, with none of `ESCAPED_IN_JSON` in it: between quotes it is their JSON.

    Each is made a `str` when somebody asks for it.
    """

    raw: Sequence[bytes]

    @override
    def __len__(self) -> int:
        return len(self.raw)

    @override
    def __iter__(self) -> Iterator[str]:
        return map(bytes.decode, self.raw)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> "Texts": ...

    @override
    def __getitem__(self, index: int | slice) -> "str | Texts":
        return Texts(self.raw[index]) if isinstance(index, slice) else self.raw[index].decode()
