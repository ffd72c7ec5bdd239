"""Configuration files: `.json`, `.properties` and `.toml`, each into one flat map of texts."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from headrace.framework.errors import ConfigError
from headrace.framework.properties import parse_properties

__all__ = ["load", "load_file"]

LINE_IN_MESSAGE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def load(paths: Iterable[str | Path], assignments: Iterable[str] = ()) -> dict[str, str]:
    """One map of several files and of `key=value` texts; of what is said twice, the later counts.

    References (`${env:NAME}`) are left as they are: whoever reads a value resolves it. Raises `ConfigError`, which
    names the file and, where there is one, the line.
    """
    props: dict[str, str] = {}
    for path in paths:
        props |= load_file(path)
    for place, assignment in enumerate(assignments, start=1):
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value: number {place} of them has no {'key' if equals else '= in it'}")
        props[key.strip()] = value.strip()
    return props


def load_file(path: str | Path) -> dict[str, str]:
    """The map of one file, by its suffix; a JSON file may have Connect's form, `{"name": ..., "config": {...}}`."""
    place = Path(path)
    read = {".json": _json, ".properties": _properties, ".toml": _toml}.get(place.suffix.lower())
    if read is None:
        raise ConfigError(f"{path}: a configuration is a file that ends in .json, .properties or .toml")
    return read(place, _text(place))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: is not UTF-8 text; save it as UTF-8") from error


def _properties(path: Path, text: str) -> dict[str, str]:
    try:
        return {found.key: found.value for found in parse_properties(text)}
    except ValueError as error:
        raise ConfigError(f"{path}, {error}") from error


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; keep one of them")
    return found


def _json(path: Path, text: str) -> dict[str, str]:
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}: is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply for a configuration") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a JSON object")
    return _flat_json(path, document)


def _flat_json(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    config = document.get("config")
    if not isinstance(config, dict):
        return _scalars(path, document)
    others = sorted(document.keys() - {"name", "config", "initial_state", "tasks", "type"})
    if others:
        raise ConfigError(f'{path}: beside "config" there may be "name" only, not {others[0]!r}: move it inside')
    return _scalars(path, {"name": document.get("name")} | config)


def _scalars(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in document.items():
        if isinstance(value, (dict, list)):
            raise ConfigError(f"{path}: the value of {key!r} must be a text, not {_kind(value)}")
        if value is not None:
            flat[key] = _scalar(value)
    return flat


def _toml(path: Path, text: str) -> dict[str, str]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = LINE_IN_MESSAGE.search(message)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise ConfigError(f"{path}, line {line}: is not TOML: {LINE_IN_MESSAGE.sub('', message)}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply for a configuration") from error
    flat: dict[str, str] = {}
    for key, value in _leaves("", document):
        if key in flat:
            raise ConfigError(f"{path}: the key {key!r} is said twice; keep one of them")
        flat[key] = _joined(path, key, value)
    return flat


def _leaves(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _joined(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, list):
        return _scalar(value)
    if any(isinstance(item, (dict, list)) for item in value):
        raise ConfigError(f"{path}: the value of {key!r} must be a list of plain values")
    return ",".join(map(_scalar, value))


def _scalar(value: Any) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object) -> str:
    return "an object" if isinstance(value, dict) else "a list"
