"""Streams by name or pattern, and their partitions: `orders` means `orders` itself and `orders-0`, `orders-1`, ..."""

import re
from typing import Self

import attrs

__all__ = ["StreamChoice", "partition_of", "stream_of"]

PARTITION = re.compile(r"(.+)-([0-9]{1,9})", re.DOTALL)
SPECIAL = re.compile(r"[*?\[\]\\]")
SET_SPECIAL = re.compile(r"[\[^&~|]")
PIECE = re.compile(r"\\(.)|\[(\^?)((?:\\.|[^\]\\])+)\]|(\*)|(\?)|(.)", re.DOTALL)


def stream_of(key: str) -> str:
    """The stream that a key is a partition of; itself where it is none."""
    found = PARTITION.fullmatch(key)
    return found[1] if found else key


def partition_of(key: str) -> int | None:
    """The number of the partition that a key is, or None."""
    found = PARTITION.fullmatch(key)
    return int(found[2]) if found else None


@attrs.frozen
class StreamChoice:
    """One name or pattern of `redis.streams`; patterns are those of Redis' own SCAN."""

    text: str
    _form: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """The choice that a text is; `ValueError` for a pattern that is none."""
        try:
            return cls(text, re.compile("".join(map(_expression, PIECE.finditer(text))), re.DOTALL))
        except re.error as error:
            raise ValueError(f"has a pattern that is none: {error}") from error

    @property
    def is_pattern(self) -> bool:
        """Whether it has to be looked for among all keys."""
        return SPECIAL.search(self.text) is not None

    @property
    def partitions_pattern(self) -> str:
        """The pattern of the partitions of a stream that is named."""
        return f"{SPECIAL.sub(lambda found: chr(92) + found[0], self.text)}-[0-9]*"

    def takes(self, key: str) -> bool:
        """Whether a key is one of the streams that were asked for, or a partition of one."""
        return any(self._form.fullmatch(name) for name in (key, stream_of(key)))


def _expression(found: re.Match[str]) -> str:
    escaped, negated, chosen, many, one, plain = found.groups()
    if many:
        return ".*"
    if one:
        return "."
    if chosen is not None:
        return f"[{negated}{SET_SPECIAL.sub(lambda sign: chr(92) + sign[0], chosen)}]"
    return re.escape(escaped or plain)
