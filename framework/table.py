"""Objects of the same fields, held column by column."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import attrs

from headrace.framework.compat import override

__all__ = ["Table"]


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
