"""Keys of the topic that speak of a source partition, and are not the bytes that anybody here would look for."""

import json
import re

import attrs

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.codec import decode_key, encode_key
from headrace.offsets.key import OffsetManagerKey

__all__ = ["MOST_NAMES_PERMUTED", "Aliases", "begins_like_anothers", "connector_named_by"]

MOST_NAMES_PERMUTED = 4
"""Every order of so many names is looked for; what has more stands under one key, and under its aliases."""

_TEXT = rb'"[^"\\\x00-\x1f]*+"'
_MEMBER = _TEXT + rb":(?:" + _TEXT + rb"|0|-?[1-9][0-9]{0,17}|true|false|null)"
_PLAIN = re.compile(rb"\{(?:" + _MEMBER + rb"(?:," + _MEMBER + rb"){0,%d})?\}\]" % (MOST_NAMES_PERMUTED - 1))
_ANOTHERS = re.compile(rb"\[" + _TEXT + b",")
_NAMED = re.compile(rb'\s*\[\s*("(?:[^"\\]|\\.)*+")')


def begins_like_anothers(raw: bytes) -> bool:
    """Whether a key begins as this or any other connector writes it, so that the name in it can be taken as it is."""
    return _ANOTHERS.match(raw) is not None


def connector_named_by(raw: bytes) -> str | None:
    """The connector that a key begins with, however the rest of it goes on; None where it names none."""
    named = _NAMED.match(raw)
    try:
        return None if named is None else str(json.loads(named[1]))
    except ValueError:
        return None


@attrs.define
class Aliases:
    """The keys of one connector that have spaces, needless escapes or very many names: JSON of the right form will do.

    Nearly all keys are plain, and are told so without parsing them.
    """

    connector: str
    unreadable: dict[bytes, MalformedOffsetError] = attrs.field(factory=dict, init=False)
    """Those that name no source partition, and why."""

    _known: dict[OffsetManagerKey, dict[bytes, None]] = attrs.field(factory=dict, init=False)

    def take(self, raw: bytes, start: int) -> MalformedOffsetError | None:
        """Note a key, if it is to be noted; its source partition begins at `start`, 0 where that is not known."""
        if start and _PLAIN.fullmatch(raw, start) and _is_text(raw):
            return None
        try:
            key = decode_key(raw)[1]
        except MalformedOffsetError as error:
            self.unreadable[raw] = error
            return error
        if len(key.mapping) > MOST_NAMES_PERMUTED or encode_key(self.connector, key.mapping) != raw:
            self._known.setdefault(key, {})[raw] = None
        return None

    def of(self, key: OffsetManagerKey) -> list[bytes]:
        """The aliases of a source partition."""
        return list(self._known.get(key, ())) if self._known else []


def _is_text(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
