"""How Kafka Connect writes text and numbers: Jackson's JSON strings and Java's doubles, byte for byte."""

import math
import re
from decimal import Decimal

__all__ = ["java_double", "quoted"]

_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LAST_OF_ONE_UNIT = 0xFFFF
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def quoted(text: str) -> str:
    r"""A text as a JSON string.

    Only `"`, the backslash and what is below U+0020 are escaped (`\b \f \n \r \t`, the others as `\u001F`, with
    upper-case digits); what is above U+FFFF, and lone surrogates, become `\uD83D`; all else stays as it is.
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{_ESCAPED.sub(_escape, text)}"'


def java_double(value: float) -> str:
    """A double as `Double.toString` writes it: the shortest digits that give it back, and one after the point at least.

    Plain from 0.001 to below ten million, `d.dddE-7` outside. Where one digit would do, Java takes the nearest number
    of two: the smallest double is 4.9E-324. (Before Java 19 some came out with more digits than needed.)
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(float(value))
    text = f"{value:.1e}"
    if float(text) != value:
        text = f"{Decimal(repr(float(value))).normalize():e}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}E{int(exponent)}"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if code <= _LAST_OF_ONE_UNIT:
        return _SHORT.get(character) or f"\\u{code:04X}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"
