"""Texts into values: what an option may hold.

A parser is called with the trimmed text and returns the value, or raises `ValueError` saying what is allowed. The
message never holds the text: it may be a secret. The words of a choice are compared without regard to case.
"""

import enum
import math
import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import attrs

from headrace.framework.errors import ConfigError
from headrace.framework.naming import NameTemplate
from headrace.framework.registry import plugins
from headrace.framework.secrets import Secret

__all__ = [
    "Parser",
    "boolean",
    "choice",
    "converter",
    "decimal",
    "integer",
    "member",
    "milliseconds",
    "name_template",
    "names",
    "plugin",
    "secret",
    "servers",
    "text",
    "topic_name",
]

T = TypeVar("T")
E = TypeVar("E", bound=enum.StrEnum)

JAVA_JSON = "org.apache.kafka.connect.json.JsonConverter"
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SERVER = re.compile(r"(?:[0-9A-Za-z_.+-]+://)?(?:\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z_.%-]+):([0-9]{1,5})")
CLASS_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@attrs.frozen
class Parser(Generic[T]):
    """What an option may hold: its kind, a few words on it, and the function from text to value.

    `words` are the values to suggest for a wrong one; `hidden` says that the value is never shown.
    """

    kind: str
    parse: Callable[[str], T]
    detail: str = ""
    words: tuple[str, ...] = ()
    hidden: bool = False

    def __call__(self, text: str) -> T:
        """The value of a text; `ValueError` says what is allowed."""
        return self.parse(text)

    def describe(self) -> str:
        """The kind and its limits, as they stand in the documentation."""
        return f"{self.kind}, {self.detail}" if self.detail else self.kind


def text(pattern: str = ".+", *, what: str = "must not be empty") -> Parser[str]:
    """Any text but the empty one, or what matches `pattern` as a whole; `what` says how it must be."""
    form = re.compile(pattern, re.DOTALL)

    def parse(given: str) -> str:
        if not form.fullmatch(given):
            raise ValueError(what)
        return given

    return Parser("text", parse)


def integer(*, at_least: int | None = None, at_most: int = INT_MAX, kind: str = "whole number") -> Parser[int]:
    """A whole number within limits."""
    limits = _limits(at_least, None if at_most in {INT_MAX, LONG_MAX} else at_most)
    complaint = f"must be a whole number{', ' if limits else ''}{limits or ''}"
    least = -at_most - 1 if at_least is None else at_least

    def parse(given: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", given):
            raise ValueError(complaint)
        number = int(given)
        if not least <= number <= at_most:
            raise ValueError(complaint if limits else f"must be a whole number, {least} to {at_most}")
        return number

    return Parser(kind, parse, limits)


def milliseconds(*, at_least: int = 0, at_most: int = LONG_MAX) -> Parser[int]:
    """A span of time as a whole number of milliseconds."""
    return integer(at_least=at_least, at_most=at_most, kind="milliseconds")


def decimal(*, at_least: float | None = None, at_most: float | None = None) -> Parser[float]:
    """A number that is finite and within limits."""
    limits = _limits(at_least, at_most)
    complaint = f"must be a number{', ' if limits else ''}{limits}"

    def parse(given: str) -> float:
        if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", given):
            raise ValueError(complaint)
        number = float(given)
        too_small = at_least is not None and number < at_least
        too_big = at_most is not None and number > at_most
        if too_small or too_big or not math.isfinite(number):
            raise ValueError(complaint)
        return number

    return Parser("number", parse, limits)


def boolean() -> Parser[bool]:
    """`true` or `false`."""

    def parse(given: str) -> bool:
        if given.lower() not in {"true", "false"}:
            raise ValueError("must be true or false")
        return given.lower() == "true"

    return Parser("true or false", parse, words=("true", "false"))


def choice(*words: str, not_yet: tuple[str, ...] = (), other_names: Mapping[str, str] | None = None) -> Parser[str]:
    """One of `words`; those in `not_yet` are known too, and refused as such; `other_names` lead to one of `words`."""
    known = {word.lower(): word for word in words} | {name.lower(): word for name, word in (other_names or {}).items()}
    allowed = " | ".join(words)

    def parse(given: str) -> str:
        if given.lower() in {word.lower() for word in not_yet}:
            raise ValueError(f"not yet: this value does not work so far; what works is {allowed}")
        if given.lower() not in known:
            raise ValueError(f"must be {allowed}")
        return known[given.lower()]

    return Parser("one of", parse, allowed, words=words)


def member(kind: type[E], *, not_yet: tuple[E, ...] = (), other_names: Mapping[str, E] | None = None) -> Parser[E]:
    """One of an enumeration's values; the rest as with `choice`."""
    words = choice(*(one for one in kind if one not in not_yet), not_yet=not_yet, other_names=other_names)
    return Parser(words.kind, lambda given: kind(words(given)), words.detail, words.words)


def plugin(kind: str, *words: str, not_yet: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> Parser[str]:
    """The name of a plugin: a built-in one, or one that another package registers under `headrace.<kind>`.

    `also` are other names for the built-in ones (Java's), which are returned as they are. With the kind `sources`,
    `module:Class` is a name, too.
    """
    allowed = " | ".join(words)

    def parse(given: str) -> str:
        registered = {one.name for one in plugins(kind)}
        name = given if given in registered.union(also, not_yet) else given.lower()
        if name in registered.union(words, also):
            return name
        if kind == "sources" and CLASS_PATH.fullmatch(given):
            return given
        if name in not_yet:
            raise ValueError(f"not yet: this one does not work so far; what works is {allowed}")
        raise ValueError(f"must be {allowed}, or the name of an installed plugin (see headrace plugins)")

    return Parser("plugin", parse, f"{allowed} | another one's name", words=words)


def names() -> Parser[tuple[str, ...]]:
    """A comma list; white space around a name does not count, and an empty text is an empty list."""

    def parse(given: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in given.split(",")) if given else ()
        if not all(found):
            raise ValueError("must be a comma list without empty places")
        return found

    return Parser("comma list", parse)


def secret() -> Parser[Secret]:
    """A text that nothing prints."""

    def parse(given: str) -> Secret:
        if not given:
            raise ValueError("must not be empty")
        return Secret(given)

    return Parser("secret", parse, hidden=True)


def topic_name() -> Parser[str]:
    """What Kafka takes as the name of a topic."""
    what = "must be a topic's name: 1 to 249 letters, digits, dots, underscores and hyphens, and not . or .."

    def parse(given: str) -> str:
        if not TOPIC.fullmatch(given) or given in {".", ".."}:
            raise ValueError(what)
        return given

    return Parser("topic name", parse)


def servers() -> Parser[str]:
    """A comma list of `host:port`, as one text without white space."""

    def parse(given: str) -> str:
        found = [part.strip() for part in given.split(",") if part.strip()]
        ports = [SERVER.fullmatch(part) for part in found]
        if not found or not all(port and 0 < int(port[1]) <= 65535 for port in ports):  # noqa: PLR2004 - the last port
            raise ValueError("must be a comma list of host:port")
        return ",".join(found)

    return Parser("comma list of host:port", parse)


def _limits(at_least: float | None, at_most: float | None) -> str:
    if at_least is None:
        return "" if at_most is None else f"at most {at_most}"
    return f"at least {at_least}" if at_most is None else f"{at_least} to {at_most}"


def converter() -> Parser[str]:
    """A converter: one of ours, by its name or Java's class name, or another one's."""
    return plugin(
        "converters",
        "bytes",
        "string",
        "json",
        also=(
            "org.apache.kafka.connect.converters.ByteArrayConverter",
            JAVA_JSON,
            "org.apache.kafka.connect.storage.StringConverter",
        ),
        not_yet=(
            "avro",
            "jsonschema",
            "protobuf",
            "io.confluent.connect.avro.AvroConverter",
            "io.confluent.connect.json.JsonSchemaConverter",
            "io.confluent.connect.protobuf.ProtobufConverter",
        ),
    )


def name_template() -> Parser[str]:
    """A template of objects' names, which is a faulty one if it has faults."""

    def parse(given: str) -> str:
        try:
            return NameTemplate.parse(given).text
        except ConfigError as error:
            raise ValueError("; ".join(fault.message for fault in error.faults)) from error

    return Parser("name template", parse)
