"""What must not be seen, and what stands in a configuration in its place."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from headrace.framework.compat import override
from headrace.framework.properties import parse_properties

__all__ = ["HIDDEN", "Secret", "looks_secret", "masked", "resolve", "shown"]

HIDDEN = "[hidden]"

SECRET_KEY = re.compile(
    r"passw|passphrase|secret|token(?!\.endpoint)|jaas|credential|private[._-]?key|api[._-]?key|user\.info"
    r"|key\.pem|keystore\.key",
    re.IGNORECASE,
)
USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
REFERENCE = re.compile(r"\$\{([A-Za-z][\w.-]*):([^{}]*)\}")


@attrs.frozen(repr=False)
class Secret:
    """A text that nothing prints: `reveal` is the only way to it."""

    _text: str

    def reveal(self) -> str:
        """The text itself, for whoever signs in with it."""
        return self._text

    @override
    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


def looks_secret(key: str) -> bool:
    """Whether the values of this key are better not seen: passwords, tokens, JAAS texts and their like."""
    return SECRET_KEY.search(key) is not None


def shown(key: str, value: str) -> str:
    """A value as it may be printed: a secret is hidden, and so is what stands before the @ of a URL.

    A reference (`${env:NAME}`) is no secret: it is shown as it was written.
    """
    if looks_secret(key) and not REFERENCE.fullmatch(value.strip()):
        return HIDDEN
    return USER_INFO.sub(HIDDEN, value)


def masked(props: Mapping[str, str]) -> dict[str, str]:
    """The map as it may be printed."""
    return {key: shown(key, value) for key, value in props.items()}


def resolve(text: str) -> str:
    """The text with its references replaced: `${env:NAME}`, `${file:PATH:KEY}` of a properties file.

    What comes in by a reference is not searched for others. Raises `ValueError`, whose message names the reference
    and never what it stands for.
    """
    return REFERENCE.sub(lambda found: _referred(found[1], found[2]), text)


def _referred(provider: str, path: str) -> str:
    if provider == "env":
        return _from_environment(path)
    if provider == "file":
        return _from_file(*path.rpartition(":")[::2])
    raise ValueError(f"${{{provider}:...}} is unknown: only ${{env:NAME}} and ${{file:PATH:KEY}} are looked up")


def _from_environment(name: str) -> str:
    try:
        return os.environ[name]
    except (KeyError, ValueError):
        raise ValueError(f"the environment variable {name!r} is not set: set it where the run starts") from None


def _from_file(path: str, key: str) -> str:
    if not path:
        raise ValueError("a reference to a file is written ${file:PATH:KEY}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path!r} cannot be read: it is no file of UTF-8 text") from error
    try:
        properties = parse_properties(text)
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from error
    values = {found.key: found.value for found in properties}
    if key not in values:
        raise ValueError(f"{path} has no key {key!r}")
    return values[key]
