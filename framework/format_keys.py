"""The keys that belong to the formats: known to every configuration, and read by the format that is named in it."""

from collections.abc import Mapping
from functools import cache

from headrace.framework.errors import PluginError
from headrace.framework.limits import LIMITS
from headrace.framework.options import Option, Options
from headrace.framework.registry import DISTRIBUTION, Kind, find, plugins
from headrace.framework.tolerance import TOLERANCE

__all__ = ["built_in_formats", "compresses_by_itself", "format_keys", "keys_without_effect", "options_of"]

_FORMAT, _BYTES = "input.format", "bytes"
_OF_EVERY_FORMAT = frozenset({*LIMITS, TOLERANCE})


def format_keys(props: Mapping[str, str]) -> frozenset[str]:
    """The keys of every built-in format, and of the one that the configuration names."""
    names = {*built_in_formats(), _named(props)}
    return frozenset(key for name in names for option in options_of(name) for key in option.keys)


def keys_without_effect(props: Mapping[str, str]) -> list[str]:
    """The keys in a configuration that belong to other formats than the one that it names."""
    own = {key for option in options_of(_named(props)) for key in option.keys}
    known = format_keys(props)
    return [key for key in props if key in known and key not in own]


def compresses_by_itself(name: str) -> bool:
    """Whether objects of a format are not compressed from outside."""
    try:
        return bool(getattr(find(Kind.TRANSFORMERS, name), "handles_compression", False))
    except PluginError:
        return False


def options_of(name: str) -> tuple[Option, ...]:
    """The keys of a format's own; none where there is no such format."""
    try:
        kind = getattr(find(Kind.TRANSFORMERS, name), "config_class", Options)
    except PluginError:
        return ()
    return tuple(option for option in kind.options() if option.key not in _OF_EVERY_FORMAT)


@cache
def built_in_formats() -> tuple[str, ...]:
    """The names of the formats that Headrace brings."""
    return tuple(one.name for one in plugins(Kind.TRANSFORMERS) if one.distribution == DISTRIBUTION)


def _named(props: Mapping[str, str]) -> str:
    given = props.get(_FORMAT, _BYTES).strip()
    return given.lower() if given.lower() in built_in_formats() else given
