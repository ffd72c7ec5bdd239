"""Whether bytes are one JSON value, by RFC 8259, whatever is installed.

The verdict is that of the standard library's parser, held to the letter: UTF-8 without exceptions, no NaN, no
Infinity, nothing behind the value; names may repeat and numbers may be of any size. msgspec, if it is there, says yes
more quickly, because it makes nothing of what it reads; its no counts for nothing. Nesting is bounded, so that the
verdict does not depend on the stack.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from operator import length_hint
from typing import NoReturn

__all__ = ["MAX_DEPTH", "check", "first_bad", "quick_check", "scan"]

MAX_DEPTH = 500
"""How deep arrays and objects may lie in each other. Python's parser gives up near 1000, orjson at 1024."""

_SHORTEST_TOO_DEEP = 2 * MAX_DEPTH + 2
_LONG = 1 << 16
_STRING = re.compile(rb'"[^"]*+"')
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b'"[]{}'))


def first_bad(values: Sequence[bytes], within: bytes | None = None) -> tuple[int, ValueError] | None:
    """The first of `values` that is not one JSON value, with the reason; None when all are.

    White space around a value has been taken off. `within`, if there is such, holds them all and ASCII between them.
    """
    accept = _accept(values, within)
    rest = iter(values)
    while True:
        try:
            deque(map(accept, rest), maxlen=0)
        except Exception:  # noqa: BLE001 - whatever the quick one says no with: `check` decides
            index = len(values) - length_hint(rest) - 1
            try:
                check(values[index])
            except ValueError as error:
                return index, error
        else:
            return None


def check(value: bytes) -> None:
    """Raise ValueError unless `value` is one JSON value; the message says what is wrong, and where in it."""
    try:
        text = value.decode()
        if _is_too_deep(value):
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        _, end = _DECODER.raw_decode(text)
        if end != len(text):
            raise ValueError(f"not one JSON value (something follows it at character {end + 1})")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason} at byte {error.start + 1})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not one JSON value ({error.msg} at character {error.pos + 1})") from error
    except RecursionError as error:
        raise ValueError("nested too deep for what is left of the stack") from error


def scan(text: str, at: int) -> int:
    """Where the JSON value ends that begins at this character; ValueError if there is none, or not a whole one.

    Bytes that were decoded as Latin-1 may be scanned as well: a character is a byte then. Whether they are UTF-8, and
    how deep the value is, is not looked at.
    """
    try:
        return _DECODER.raw_decode(text, at)[1]
    except RecursionError as error:
        raise ValueError("nested too deep for what is left of the stack") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not one JSON value (there is no {name} in JSON)")


# Numbers stay texts: they are not asked for, and Python's limit on the digits of an integer is none of JSON's.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def _accept(values: Sequence[bytes], within: bytes | None) -> Callable[[bytes], object]:
    quick = quick_check()
    if quick is None:
        return check
    # A line's end is no part of a character.
    is_utf8 = _is_utf8(b"\n".join(values) if within is None else within)
    # A set first: there are fewer lengths than values.
    if is_utf8 and max(set(map(len, values)), default=0) < _SHORTEST_TOO_DEEP:
        return quick

    def accept(value: bytes) -> None:
        if not is_utf8:
            value.decode()
        (check if _is_too_deep(value) else quick)(value)

    return accept


def _is_utf8(whole: bytes) -> bool:
    try:
        return whole.isascii() or bool(whole.decode())
    except UnicodeDecodeError:
        return False


@cache
def quick_check() -> Callable[[bytes], object] | None:
    """What accepts one JSON value, of bytes that are UTF-8 and not too deep; None where there is no msgspec."""
    try:
        from msgspec import Raw, json  # noqa: PLC0415 - optional: it makes the check quicker, nothing else
    except ImportError:
        return None
    return json.Decoder(Raw).decode


def _is_too_deep(value: bytes) -> bool:
    return _has_many_brackets(value) and _depth(value) > MAX_DEPTH


def _has_many_brackets(value: bytes) -> bool:
    """Whether more arrays and objects begin in it, or seem to within its strings, than may lie in each other."""
    if len(value) < _LONG:
        return len(value) >= _SHORTEST_TOO_DEEP and value.count(b"[") + value.count(b"{") > MAX_DEPTH
    # Counting looks at every byte; finding skips what lies between, and needs no more than this many.
    found = 0
    for bracket in (b"[", b"{"):
        at = value.find(bracket)
        while at >= 0:
            found += 1
            if found > MAX_DEPTH:
                return True
            at = value.find(bracket, at + 1)
    return False


def _depth(value: bytes) -> int:
    """How deep arrays and objects lie in each other, if it is JSON; beyond `MAX_DEPTH` no more than that it is so."""
    if b"\\" in value:
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Where nothing is left between two quotes, the state behind them is the one before them.
    marks = _STRING.sub(b"", value.translate(_BRACKETS, _OTHERS).replace(b'""', b""))
    layers = 0
    while layers < MAX_DEPTH and b"[]" in marks:
        marks = marks.replace(b"[]", b"")
        layers += 1
    return layers + marks.count(b"[")
