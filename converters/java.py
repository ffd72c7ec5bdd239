"""How Java writes values as text, which is what Kafka Connect puts on topics."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.framework.connect_text import java_double

__all__ = ["java_text"]


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
