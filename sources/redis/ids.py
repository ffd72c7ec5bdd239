"""The ids of a stream's entries: a time in milliseconds and a number, in the order in which entries were added."""

import functools
import re
from typing import Self

import attrs

from headrace.framework.compat import override

__all__ = ["FIRST", "LAST_NUMBER", "StreamId"]

FORM = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")


@functools.total_ordering
@attrs.frozen(order=False)
class StreamId:
    """An entry's id; the order is the stream's."""

    milliseconds: int
    number: int = 0

    @classmethod
    def parse(cls, given: str | bytes) -> Self:
        """The id that a text says; `ValueError` if it says none. Without a number it is the first of its time."""
        text = given.decode() if isinstance(given, bytes) else given
        found = FORM.fullmatch(text)
        if found is None:
            raise ValueError("must be an entry's id, as in 1700000000000-0")
        return cls(int(found[1]), int(found[2] or 0))

    def __lt__(self, other: "StreamId") -> bool:
        return (self.milliseconds, self.number) < (other.milliseconds, other.number)

    @override
    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.number}"


LAST_NUMBER = 2**64 - 1
"""The largest number of a time."""

FIRST = StreamId(0)
"""Before every entry."""
