"""How Java writes values as text, which is what Kafka Connect puts on topics."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

__all__ = ["java_double", "java_text"]

_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def java_double(value: float) -> str:
    """A double as `Double.toString` writes it: the shortest digits that give it back, and one after the point at least.

    Plain from 0.001 to below ten million, `d.dddE-7` outside. Where one digit would do, Java takes the nearest number
    of two: the smallest double is 4.9E-324.
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


def java_text(value: Any) -> str:  # noqa: PLR0911 - one for each kind of value
    """A value as `toString` writes it, inside of lists and maps too; TypeError for what has no form in Java.

    Bytes are taken for UTF-8: what Java says of them is of no use to anybody.
    """
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return java_double(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode()
        case Mapping():
            return "{" + ", ".join(f"{java_text(name)}={java_text(item)}" for name, item in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(map(java_text, value)) + "]"
        case _:
            raise TypeError(type(value).__name__)
