"""JSON without the white space between its tokens, as Kafka Connect writes it; digits and escapes stay as they are."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

__all__ = ["compacted"]

_SPACES = b" \n\t\r"
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^" \t\r\n]++', re.DOTALL)
_BESIDE_A_TOKEN = re.compile(rb" (?:(?<=[{\[,:] )|(?=[}\],:]))")


def compacted(values: Sequence[bytes]) -> Sequence[bytes]:
    """JSON values that have no white space around them, without that in them."""
    whole = b"\0".join(values)
    if not _may_have_spaces(whole):
        return values
    tokens = whole.translate(None, _SPACES).split(b"\0")
    rewritten = _rewritten(values) or [b""] * len(values)
    # The same but for white space: then no digit and no escape has changed, and no member has got lost.
    alike = b"\0".join(rewritten).translate(None, _SPACES).split(b"\0")
    return [
        new if mine == theirs else b"".join(_TOKENS.findall(value))
        for new, mine, theirs, value in zip(rewritten, alike, tokens, values, strict=True)
    ]


def _may_have_spaces(whole: bytes) -> bool:
    """Whether there may be white space between tokens: it stands beside a bracket, a comma or a colon."""
    if b"\n" in whole or b"\r" in whole or b"\t" in whole:  # which no text has in it
        return True
    return b" " in whole and _BESIDE_A_TOKEN.search(whole) is not None


def _rewritten(values: Sequence[bytes]) -> Sequence[bytes] | None:
    if (quick := _quick()) is None:
        return None
    loads, dumps = quick
    try:
        return list(map(dumps, map(loads, values)))
    except (ValueError, TypeError):
        return None


@cache
def _quick() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None:
    try:
        import orjson  # noqa: PLC0415 - optional: it makes this quicker, nothing else
    except ImportError:
        return None
    return orjson.loads, orjson.dumps
