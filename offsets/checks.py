"""What sources ask of a partition or an offset before it is stored: names and kinds of values."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from headrace.framework.errors import Fault
from headrace.framework.nearest import near_miss, nearest
from headrace.framework.parts import PART, PARTS

__all__ = ["count_faults", "flag_faults", "part_faults", "partition_faults", "slip_faults", "text_faults"]


def partition_faults(partition: Mapping[str, Any], names: Collection[str]) -> Iterator[Fault]:
    """The partition must have exactly these names, each with a text that is not empty."""
    for name, value in partition.items():
        if name not in names:
            known = ", ".join(names)
            yield Fault(
                f"partition.{name}", str(value), f"is no name of this source; known are {known}", nearest(name, names)
            )
    for name in names:
        value = partition.get(name)
        if name not in partition:
            yield Fault(f"partition.{name}", None, "is missing")
        elif not isinstance(value, str) or not value:
            yield Fault(f"partition.{name}", str(value), "must be a text that is not empty")


def part_faults(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> Iterator[Fault]:
    """The partition of a part has its number, and the offset says how many there are."""
    number, parts = partition.get(PART), offset.get(PARTS)
    if PART not in partition:
        return
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        yield Fault(f"partition.{PART}", str(number), "must be a whole number, not less than 0")
    elif isinstance(parts, bool) or not isinstance(parts, int) or parts <= number:
        yield Fault(f"offset.{PARTS}", str(parts), f"must be how many parts there are, more than {number}")


def count_faults(offset: Mapping[str, Any], names: Collection[str]) -> Iterator[Fault]:
    """What stands under these names must be a whole number, not less than 0."""
    for name in names:
        value = offset.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield Fault(f"offset.{name}", str(value), "must be a whole number, not less than 0")


def flag_faults(offset: Mapping[str, Any], names: Collection[str]) -> Iterator[Fault]:
    """What stands under these names must be true or false."""
    for name in names:
        if not isinstance(offset.get(name, False), bool):
            yield Fault(f"offset.{name}", str(offset[name]), "must be true or false")


def text_faults(offset: Mapping[str, Any], names: Collection[str]) -> Iterator[Fault]:
    """What stands under these names must be a text."""
    for name in names:
        if not isinstance(offset.get(name, ""), str):
            yield Fault(f"offset.{name}", str(offset[name]), "must be a text")


def slip_faults(offset: Mapping[str, Any], names: Collection[str]) -> Iterator[Fault]:
    """A name that is nearly one of these; other names are kept as they are, as what others have added."""
    for name, value in offset.items():
        near = None if name in names else near_miss(name, names)
        if near is not None:
            yield Fault(f"offset.{name}", str(value), "is unknown, and looks like a slip", near)
