"""Where entries lie: the protocol that the memory store and the Kafka topic fulfil."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from headrace.offsets.key import OffsetManagerKey

__all__ = ["OffsetStore", "Offsets"]

Offsets = Mapping[OffsetManagerKey, Mapping[str, Any] | None]
"""Entries by key; None is a tombstone: the key is to be forgotten."""


class OffsetStore(Protocol):
    """The committed entries of one connector, as they stood when this view was last brought up to date.

    A view is read from the store's end once, when its owner starts (in Kafka: to the high watermark, after the
    fencing), and afterwards follows what its owner commits. Entries of a piece of a source are written by one owner
    at a time, so nobody else's writes can be missed in between, and no call of these waits for Kafka. A manager calls
    from one thread at a time; a store that several managers share must bear several.
    """

    def get(self, keys: Collection[OffsetManagerKey]) -> dict[OffsetManagerKey, dict[str, Any]]:
        """The entries of `keys`, in one go; keys without an entry are not in the answer. The maps are copies."""
        ...

    def rolled_up(self, key: OffsetManagerKey, version: str) -> bool | None:
        """Whether `key`, which has no entry, was read to its end in this version before its entry was rolled up.

        False if it was read to its end in another version; None if nothing is known of it.
        """
        ...

    def unreadable(self, key: OffsetManagerKey) -> str | None:  # noqa: ARG002 - for stores that can tell
        """Why what stands under `key` cannot be read, so that it has no entry; None where there is no such thing."""
        return None

    def items(self) -> Iterator[tuple[OffsetManagerKey, dict[str, Any]]]:
        """Every entry of this connector."""
        ...

    def committed(self, offsets: Offsets) -> None:
        """Take in what this view's owner has committed."""
        ...
