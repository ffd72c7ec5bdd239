"""One truth from what several keys of one source partition say."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.offsets.entry import RECORD_COUNT

__all__ = ["merged"]

ETAG = "etag"


def merged(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The entry to believe, of those that stand under the different orders of one key.

    Their order in time is not known, since they lie in different partitions. An entry with an etag is Headrace's own
    and beats one without; among equals the larger count wins, as progress does not go back by itself.
    """
    best: Mapping[str, Any] = max(known, key=_weight)
    return dict(best)


def _weight(entry: Mapping[str, Any]) -> tuple[bool, int]:
    count = entry.get(RECORD_COUNT)
    return ETAG in entry, count if isinstance(count, int) else -1
