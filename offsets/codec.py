r"""The bytes of the offsets topic: what Kafka Connect's JSON converter writes without schemas, and reads back.

A key is `["connector",{"name":value,...}]`, a value `{"name":value,...}` or null, a tombstone. Two writers must make
the same bytes of the same key, or compaction and Kafka Connect take them for two. So:

- no spaces; names in the order given;
- of text only `"`, the backslash and what is below U+0020 are escaped (`\b \f \n \r \t`, the others as `\u001F`, with
  upper-case digits); what is above U+FFFF, and lone surrogates, become `\uD83D`; all else is plain UTF-8;
- a float is written as Java writes a double.

The standard library's `json.dumps` does otherwise, whatever its options, wherever it escapes anything, and with floats;
of all else it writes the same. Reading is more liberal than writing: any JSON of the right form will do.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from headrace.framework.connect_text import java_double, quoted
from headrace.framework.errors import MalformedOffsetError, OffsetValueError
from headrace.offsets.key import OffsetManagerKey, checked_map

__all__ = ["decode_key", "decode_value", "encode_key", "encode_value", "key_prefix", "key_spellings"]

_SHOWN = 120


def encode_key(connector: str, mapping: Mapping[str, Any]) -> bytes:
    """The key of a source partition, its names in the order given."""
    return f"[{quoted(connector)},{_object(checked_map(mapping, what='a source partition'))}]".encode()


def encode_value(properties: Mapping[str, Any] | None) -> bytes | None:
    """The value of a source offset; None, a tombstone, is None."""
    if properties is None:
        return None
    return _object(checked_map(properties, what="a source offset")).encode()


def key_prefix(connector: str) -> bytes:
    """What every key of a connector begins with, and no other's: enough to tell them apart without parsing."""
    return f"[{quoted(connector)},".encode()


def key_spellings(connector: str, key: OffsetManagerKey) -> Iterator[bytes]:
    """The bytes of a key in every order of its names, the order given first.

    Kafka Connect writes whatever order a connector's map happens to have, and Aiven's S3 source has another one after
    half of its restarts. There are n! orders of n names; keys have one or two.
    """
    named = quoted(connector)
    for members in itertools.permutations(_members(key.mapping)):
        yield f"[{named},{{{','.join(members)}}}]".encode()


def decode_key(raw: bytes | None) -> tuple[str, OffsetManagerKey]:
    """The connector and the source partition that a key speaks of.

    `MalformedOffsetError` says what is wrong with one that Kafka Connect, too, would skip with a warning, or whose
    source partition could not be stored.
    """
    if raw is None:
        raise MalformedOffsetError("a record of the offsets topic has no key")
    parsed = _parsed(raw, "key")
    if not isinstance(parsed, list):
        _refuse(raw, f"key is {_kind(parsed)}, not a list")
    if len(parsed) != 2:  # noqa: PLR2004 - the connector's name and the source partition
        _refuse(raw, f"key has {len(parsed)} elements, not 2")
    connector, partition = parsed
    if not isinstance(connector, str):
        _refuse(raw, f"key has {_kind(connector)} as its first element, not a connector's name")
    if not isinstance(partition, dict):
        _refuse(raw, f"key has {_kind(partition)} as its second element, not an object")
    try:
        return connector, OffsetManagerKey(partition)
    except OffsetValueError as error:
        raise MalformedOffsetError(f"the key {_shown(raw)} is refused: {error}") from error


def decode_value(raw: bytes | None) -> dict[str, Any] | None:
    """The properties that a value holds; None for a tombstone.

    Integers come back as integers. `MalformedOffsetError` for what is not a flat object, and for an integer of more
    than 64 bits: it is never rounded.
    """
    if raw is None:
        return None
    parsed = _parsed(raw, "value")
    if parsed is None:
        return None
    if not isinstance(parsed, dict):
        _refuse(raw, f"value is {_kind(parsed)}, not an object")
    try:
        return checked_map(parsed, what="a source offset")
    except OffsetValueError as error:
        raise MalformedOffsetError(f"the value {_shown(raw)} is refused: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parsed(raw: bytes, what: str) -> Any:
    try:
        return _DECODER.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedOffsetError(f"the {what} {_shown(raw)} is not JSON: {error}") from error


def _refuse(raw: bytes, reason: str) -> NoReturn:
    what, _, rest = reason.partition(" ")
    raise MalformedOffsetError(f"the {what} {_shown(raw)} {rest}")


def _shown(raw: bytes) -> str:
    return repr(raw if len(raw) <= _SHOWN else raw[:_SHOWN] + b"...")[1:]


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


_PLAIN = json.JSONEncoder(separators=(",", ":"))


def _object(mapping: Mapping[str, Any]) -> str:
    if len(mapping) > 1 and float not in map(type, mapping.values()):
        text = _PLAIN.encode(mapping)
        if "\\" not in text:
            return text
    return "{" + ",".join(_members(mapping)) + "}"


def _members(mapping: Mapping[str, Any]) -> list[str]:
    return [f"{quoted(name)}:{_value(value)}" for name, value in mapping.items()]


def _value(value: Any) -> str:
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return java_double(value)
        case _:
            return str(value)
