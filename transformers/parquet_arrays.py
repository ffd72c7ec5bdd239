"""What is in a column of Arrow's that may have structs, lists and maps around it."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

__all__ = ["by_row", "leaves"]


def leaves(column: Any) -> Iterator[Any]:
    """The columns in a column, in the order of the file, of its rows and no others."""
    inner = _inner(column)
    if not inner:
        yield column
    for one in inner:
        yield from leaves(one)


def by_row(column: Any, of_leaf: Callable[[Any], Any]) -> Any:
    """The sum for each row of what `of_leaf` has for each value of a leaf; it is asked for them in their order."""
    import pyarrow as pa  # noqa: PLC0415 - an extra brings it
    from pyarrow import compute  # noqa: PLC0415

    inner = _inner(column)
    if not inner:
        return of_leaf(column)
    sums = reduce(compute.add, [by_row(one, of_leaf) for one in inner])
    if isinstance(column, pa.ExtensionArray):
        return sums
    return sums if isinstance(column, pa.StructArray) else _in_lists(sums, *_bounds(column))


def _inner(column: Any) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(column, pa.ExtensionArray):
        return [column.storage]
    if isinstance(column, pa.StructArray):
        return [column.field(index) for index in range(column.type.num_fields)]
    if isinstance(column, pa.MapArray):
        return [_of_rows(column, column.keys), _of_rows(column, column.items)]
    return [_of_rows(column, column.values)] if _is_list(column) else []


def _of_rows(column: Any, values: Any) -> Any:
    """Those values of lists that the rows of a column have, which may be a slice of one."""
    if not len(column):
        return values.slice(0, 0)
    begins, ends = _bounds(column)
    first = begins[0].as_py()
    return values.slice(first, ends[-1].as_py() - first)


def _in_lists(sizes: Any, begins: Any, ends: Any) -> Any:
    """The sums of sizes in each list."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    if not len(begins):
        return sizes.slice(0, 0)
    first = begins[0]
    sums = pa.concat_arrays([pa.array([0], pa.int64()), compute.cumulative_sum(sizes)])
    return compute.subtract(sums.take(compute.subtract(ends, first)), sums.take(compute.subtract(begins, first)))


def _bounds(column: Any) -> tuple[Any, Any]:
    """Where each list of a column begins and ends in its values."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import compute  # noqa: PLC0415

    if isinstance(column, pa.FixedSizeListArray):
        size, first = column.type.list_size, column.offset
        offsets = pa.array([size * row for row in range(first, first + len(column) + 1)], pa.int64())
    elif isinstance(column, (pa.ListViewArray, pa.LargeListViewArray)):
        return column.offsets, compute.add(column.offsets, column.sizes)
    else:
        offsets = column.offsets
    return offsets.slice(0, len(column)), offsets.slice(1)


def _is_list(column: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray, pa.ListViewArray, pa.LargeListViewArray)
    return isinstance(column, kinds)
