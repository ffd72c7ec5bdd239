"""A column of lists in a row group: what its values take at the most, and what its pages say of them."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import attrs

from headrace.transformers.options import FormatOptions
from headrace.transformers.parquet_footer import Group, extent
from headrace.transformers.parquet_levels import Levels
from headrace.transformers.parquet_pages import DAMAGE, pages

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Coded", "Listed"]

_PAID = 8
"""What is unpacked to so many times its bytes in the file, or to less, is what ordinary files have."""

_MOST_PAGES = 10_000

_SIZES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8, "BYTE_ARRAY": 4}
_SIZES_OF_SHORT = {"INT_8": 1, "UINT_8": 1, "INT_16": 2, "UINT_16": 2}
_DECIMAL_SIZE, _LONG_DECIMAL_SIZE, _LONG_DECIMAL_FROM = 16, 32, 39


@attrs.frozen
class Coded:
    """How many values of a column there are up to the last that is a number into its dictionary, and the bytes of that.

    `unpaid` are the bytes of all its values beyond those that are in the file for them. Of each it is the most that may
    be.
    """

    values: int
    dictionary: int
    unpaid: int


@attrs.frozen(kw_only=True)
class Listed:
    """The column of that number, with `values` of so many bytes each when they are unpacked, nulls among them."""

    number: int
    path: str
    is_text: bool
    size: int
    bits: int
    values: int
    chunk: Any

    @classmethod
    def of(cls, file: "pq.ParquetFile", group: Group, number: int) -> Self:
        """The column as the footer has it."""
        column, chunk = file.schema.column(number), file.metadata.row_group(group.index).column(number)
        return cls(
            number=number,
            path=column.path,
            is_text=column.physical_type == "BYTE_ARRAY" and number in group.repeats,
            size=_size(column),
            bits=column.max_repetition_level.bit_length(),
            values=chunk.num_values,
            chunk=chunk,
        )

    def by_footer(self) -> Coded:
        """What holds of the column if the footer is right."""
        unpaid = self._unpaid(self.values, self.chunk.total_compressed_size)
        return Coded(self.values, self.chunk.total_uncompressed_size, unpaid)

    def by_pages(self, source: Any) -> Coded:
        """What holds of the column in the file `source`, by the headers of its pages."""
        try:
            return self._by_pages(source)
        except DAMAGE:
            return Coded(sys.maxsize, sys.maxsize, sys.maxsize)

    def bytes_by_row(self, source: Any, options: FormatOptions) -> Iterator[int]:
        """The bytes that the values of one row after the other take, or more."""
        return (self.size * entries for entries in self._levels(source, options).entries_by_row())

    def fits(self, source: Any, options: FormatOptions, most: int) -> bool:
        """Whether the values of each row take no more bytes than that, as far as it is seen at a glance."""
        return self._levels(source, options).fit(most // self.size)

    def _levels(self, source: Any, options: FormatOptions) -> Levels:
        return Levels(
            source=source,
            extent=extent(self.chunk),
            values=self.values,
            bits=self.bits,
            codec=self.chunk.compression,
            ratio=options.max_decompression_ratio,
        )

    def _by_pages(self, source: Any) -> Coded:
        before = coded = dictionary = unpaid = 0
        for number, page in enumerate(pages(source, extent(self.chunk), self.values)):
            if number == _MOST_PAGES:
                raise ValueError(f"there are more than {_MOST_PAGES} pages")
            before += page.values
            coded = before if page.values and page.is_coded else coded
            dictionary += page.unpacked if page.is_dictionary else 0
            unpaid += self._unpaid(page.values, page.packed)
        if before < self.values:
            raise ValueError("there are fewer pages than the footer says")
        return Coded(coded, dictionary, unpaid)

    def _unpaid(self, values: int, packed: int) -> int:
        return max(0, values * self.size - _PAID * packed)


def _size(column: Any) -> int:
    """The bytes of a value, or of the place that a text has in a list of them."""
    if column.converted_type == "DECIMAL":
        return _DECIMAL_SIZE if column.precision < _LONG_DECIMAL_FROM else _LONG_DECIMAL_SIZE
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return _SIZES_OF_SHORT.get(column.converted_type) or _SIZES[column.physical_type]
