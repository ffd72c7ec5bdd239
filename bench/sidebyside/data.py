"""The data: JSON lines of a given size, the same in every run on every machine."""

import json
import random
import string
from collections.abc import Iterator

import attrs

__all__ = ["Dataset", "line"]

SEED = 20_260_101
FIRST_ID = 1_000_000_000
LETTERS = 1 << 17
PIECE = 5000


def _letters() -> str:
    return "".join(random.Random(SEED).choices(string.ascii_letters + string.digits, k=LETTERS))  # noqa: S311 - data


TEXT = _letters()


def line(number: int, size: int) -> bytes:
    """The record of this number: a JSON object of exactly `size` bytes, from 40 up, without its line's end."""
    start = f'{{"id":{FIRST_ID + number},"n":{number % 10}'
    if size >= 120:  # noqa: PLR2004 - where there is room for them
        start += f',"amount":{number % 9973 * 0.25},"ok":{json.dumps(number % 3 == 0)},"name":"customer {number % 977}"'
    start += ',"pad":"'
    room = size - len(start) - 2
    at = number * 31 % (LETTERS // 4)
    pad = TEXT[at : at + room] if at + room <= LETTERS else (TEXT * (room // LETTERS + 2))[at : at + room]
    return f'{start}{pad}"}}'.encode()


@attrs.frozen(kw_only=True)
class Dataset:
    """A number of objects with the same number of records each; `name` is its prefix and folder, `form` its format.

    A dataset that is `made` lies nowhere: `programs/object_server.py` makes each object when it is asked for.
    """

    name: str
    objects: int
    lines: int
    size: int
    form: str = "jsonl"
    made: bool = False

    @property
    def records(self) -> int:
        """How many records there are in all."""
        return self.objects * self.lines

    def key(self, number: int) -> str:
        """The name of an object, below the prefix."""
        return f"part-{number:06d}.{self.form}"

    def values(self, number: int) -> Iterator[bytes]:
        """The records of an object."""
        first = number * self.lines
        return (line(first + at, self.size) for at in range(self.lines))

    def pieces(self, number: int) -> tuple[Iterator[bytes], int]:
        """An object piece by piece, where it may be large, and its size."""
        if self.form != "jsonl":
            body = self.body(number)
            return iter((body,)), len(body)
        first, end = number * self.lines, (number + 1) * self.lines
        parts = (range(at, min(at + PIECE, end)) for at in range(first, end, PIECE))
        ready = (b"".join(line(one, self.size) + b"\n" for one in part) for part in parts)
        return ready, self.lines * (self.size + 1)

    def body(self, number: int) -> bytes:
        """An object as bytes."""
        from sidebyside import forms  # noqa: PLC0415 - pyarrow and fastavro, for those who want them

        return forms.ENCODERS[self.form](self.values(number))
