"""One truth from what several keys of one source partition say."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.offsets.entry import RECORD_COUNT

__all__ = ["merged"]

ETAG = "etag"
LAST_MODIFIED = "lastModified"
COMPLETE = "complete"


def merged(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The entry to believe, of those that stand under the different orders of one key.

    Their order in time is not known, since they lie in different partitions. An entry with an etag is Headrace's own
    and beats one without. Of several with an etag the ones of the newest version count; among those, and among those
    without, the larger count wins, as progress in one version does not go back by itself.
    """
    own = [entry for entry in known if ETAG in entry]
    if own:
        newest = max(own, key=lambda entry: _number(entry, LAST_MODIFIED))
        known = [entry for entry in own if entry[ETAG] == newest[ETAG]]
    best: Mapping[str, Any] = max(known, key=_progress)
    return dict(best)


def _progress(entry: Mapping[str, Any]) -> tuple[int, bool]:
    return _number(entry, RECORD_COUNT), entry.get(COMPLETE) is True


def _number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) else -1
