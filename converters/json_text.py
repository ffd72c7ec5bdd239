r"""JSON as Kafka Connect writes it, byte for byte: Jackson's escapes, Java's numbers, no spaces.

Of text only `"`, the backslash and what is below U+0020 are escaped (`\b \f \n \r \t`, others as `\u001F`), and
what is above U+FFFF becomes an escaped pair of surrogates; all else is plain UTF-8. Floats are written as
`Double.toString` writes them, bytes as Base64. A map whose keys are not all strings is a list of pairs.

orjson writes most values in the same bytes, and then does; the rest is written here.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from headrace.framework.connect_text import java_double, quoted

__all__ = ["quick_dumps", "text_of", "to_json"]

_ALIKE = {str, int, bool, type(None)}
_BEYOND_ONE_UNIT = re.compile(rb"[\xf0-\xf4]")


def to_json(value: Any) -> bytes:
    """One value as JSON. TypeError for what JSON has no form for, ValueError for a number that is none."""
    return _quickly(value) or text_of(value).encode()


def text_of(value: Any) -> str:  # noqa: PLR0911 - one for each kind of value
    """The same as text, whatever is installed."""
    match value:
        case str():
            return quoted(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"there is no {java_double(value)} in JSON")
            return java_double(value)
        case bytes() | bytearray() | memoryview():
            return f'"{base64.b64encode(value).decode()}"'
        case Mapping():
            return _mapping(value)
        case Sequence():
            return f"[{','.join(map(text_of, value))}]"
        case _:
            raise TypeError(f"JSON has no form for {type(value).__name__}")


def _mapping(value: Mapping[Any, Any]) -> str:
    if all(isinstance(name, str) for name in value):
        return "{" + ",".join([f"{text_of(name)}:{text_of(item)}" for name, item in value.items()]) + "}"
    return text_of([[name, item] for name, item in value.items()])


def _quickly(value: Any) -> bytes | None:
    dumps = quick_dumps()
    if dumps is None or not _alike(value):
        return None
    try:
        text = dumps(value)
    except TypeError:
        return None
    if b"\\" in text and b"\\u00" in text:
        return None
    return text if text.isascii() or not _BEYOND_ONE_UNIT.search(text) else None


def _alike(value: Any) -> bool:
    """Whether orjson writes it in the same bytes, but for what can be seen in the bytes."""
    kind = type(value)
    if kind is dict or kind is list:
        items = value.values() if kind is dict else value
        return _ALIKE.issuperset(map(type, items)) or all(type(item) in _ALIKE or _alike(item) for item in items)
    if kind is float:
        return bool(value == 0 or 1e-3 <= abs(value) < 1e7)  # noqa: PLR2004 - where Java writes plain digits
    return kind in _ALIKE


@cache
def quick_dumps() -> Callable[[Any], bytes] | None:
    """The writer of orjson, or None where there is no orjson."""
    try:
        import orjson  # noqa: PLC0415 - optional: it makes writing quicker, nothing else
    except ImportError:
        return None
    return orjson.dumps
