"""What an object's name says: `file.name.template`, as in Aiven's connectors."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator

import attrs

from headrace.framework.errors import ConfigError, Fault

__all__ = ["FILE_NAME_TEMPLATE", "NameParts", "NameTemplate"]

FILE_NAME_TEMPLATE = "file.name.template"

_VARIABLE = re.compile(r"\{\{(.*?)\}\}")
_GROUPS = {
    "topic": r"(?P<topic>[a-zA-Z0-9\-_.]+)",
    "partition": r"(?P<partition>\d+)",
    "start_offset": r"(?P<start_offset>\d+)",
}
_REPEATABLE = "timestamp"
_KNOWN = (*_GROUPS, _REPEATABLE)
_UNITS = {"yyyy": r"\d{4}", "mm": r"\d{2}", "dd": r"\d{2}", "hh": r"\d{2}"}
# Names below it are kept for proving to a certificate authority whose the store is.
_RESERVED = ".well-known/acme-challenge"


@attrs.frozen
class NameParts:
    """What a name says; None for what its template does not ask for."""

    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None


@attrs.frozen
class NameTemplate:
    """A template that has been read: `NameTemplate.parse("{{topic}}-{{partition}}").match("logs-3.gz")`.

    A template is a regular expression, searched for anywhere in the name (its literal parts are not quoted: a dot is
    any character), in which `{{topic}}`, `{{partition}}`, `{{start_offset}}` and `{{timestamp}}` stand for what they
    say. Digits are ASCII digits, and the topic takes as much as it can. A name in which it is not found is not meant.

    The parameters of Aiven's sinks are understood: `{{partition:padding=true}}`, `{{timestamp:unit=yyyy}}` (`MM`, `dd`
    and `HH`, too). A `*` at the very beginning, which no regular expression can have, means `.*`.
    """

    text: str
    variables: frozenset[str]
    _pattern: re.Pattern[str] = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "NameTemplate":
        """Read a template; `ConfigError` with every fault of it."""
        faults = [Fault(FILE_NAME_TEMPLATE, text, message, hint) for message, hint in _faults(text)]
        if faults:
            raise ConfigError(faults)
        source = _VARIABLE.sub(lambda found: _expression(found[1]), f".{text}" if text.startswith("*") else text)
        try:
            pattern = re.compile(source, re.ASCII)
        except re.error as error:
            message = f"is not a regular expression ({error}); put a backslash before what is meant literally"
            raise ConfigError([Fault(FILE_NAME_TEMPLATE, text, message)]) from error
        return cls(text, frozenset(_split(found)[0] for found in _VARIABLE.findall(text)), pattern)

    def match(self, name: str) -> NameParts | None:
        """What `name` says, or None if the template is not found in it."""
        found = self._pattern.search(name)
        if found is None:
            return None
        said = found.groupdict()
        partition, start_offset = said.get("partition"), said.get("start_offset")
        return NameParts(
            topic=said.get("topic"),
            partition=None if partition is None else int(partition),
            start_offset=None if start_offset is None else int(start_offset),
        )


def _split(variable: str) -> tuple[str, str, str]:
    """The name, the parameter and its value of what stands between the braces."""
    name, _, parameter = variable.partition(":")
    key, _, value = parameter.partition("=")
    return name.strip(), key.strip(), value.strip()


def _expression(variable: str) -> str:
    name, _, value = _split(variable)
    return _UNITS.get(value.lower(), r"\d+") if name == _REPEATABLE else _GROUPS[name]


def _faults(text: str) -> Iterator[tuple[str, str | None]]:
    if not text.strip():
        yield "is empty: give a template such as {{topic}}-{{partition}}-{{start_offset}}, or .* for every object", None
    if text.startswith(_RESERVED):
        yield f"begins with {_RESERVED}, which is not for data: choose another prefix", None
    variables = _VARIABLE.findall(text)
    names = Counter(_split(variable)[0] for variable in variables)
    unknown = [name for name in names if name not in _KNOWN]
    if unknown:
        word = "variable" if len(unknown) == 1 else "variables"
        close = difflib.get_close_matches(unknown[0], _KNOWN, n=1)
        yield f"has the unknown {word} {_listed(unknown)}; known are {_listed(_KNOWN)}", close[0] if close else None
    repeated = [name for name, count in names.items() if count > 1 and name in _GROUPS]
    if repeated:
        yield f"has {_listed(repeated)} more than once; only {_listed([_REPEATABLE])} may be repeated", None
    for variable in variables:
        if not _is_parameter_known(*_split(variable)):
            yield (
                f"has {{{{{variable}}}}}, whose parameter is unknown; known are padding=true and unit=yyyy|MM|dd|HH",
                None,
            )


def _is_parameter_known(name: str, key: str, value: str) -> bool:
    if not key or name not in _KNOWN:
        return True
    if name == _REPEATABLE:
        return key == "unit" and value.lower() in _UNITS
    return name in {"partition", "start_offset"} and key == "padding" and value.lower() in {"true", "false"}


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)
