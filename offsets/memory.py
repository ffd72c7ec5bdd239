"""Entries in memory: for tests, and for the local engine where nothing is to survive the process."""

import threading
from collections.abc import Collection, Iterator
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.offsets.codec import decode_value, encode_value
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["MemoryOffsetStore"]


@attrs.define(eq=False, repr=False)
class MemoryOffsetStore(OffsetStore):
    """The entries of one connector, for as long as this object lives.

    Several tasks, and several runs one after the other, may share it: each sees at once what any of them commits.
    Entries are kept as the bytes that would lie on the offsets topic, so what is read is what Kafka would give back.
    Every method may be called from any thread.
    """

    _values: dict[OffsetManagerKey, bytes] = attrs.field(factory=dict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @override
    def get(self, keys: Collection[OffsetManagerKey]) -> dict[OffsetManagerKey, dict[str, Any]]:
        """The entries of `keys` that there are, as copies."""
        with self._lock:
            raw = {key: self._values[key] for key in keys if key in self._values}
        return {key: decode_value(value) or {} for key, value in raw.items()}

    @override
    def rolled_up(self, key: OffsetManagerKey, version: str) -> bool | None:
        """None: nothing is rolled up in memory."""
        return None

    @override
    def items(self) -> Iterator[tuple[OffsetManagerKey, dict[str, Any]]]:
        """Every entry, as they all stood when this was called."""
        with self._lock:
            keys = list(self._values)
        return iter(self.get(keys).items())

    @override
    def committed(self, offsets: Offsets) -> None:
        """Keep these entries, all at once; forget those that are None."""
        encoded = {key: encode_value(properties) for key, properties in offsets.items()}
        with self._lock:
            for key, value in encoded.items():
                if value is None:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value

    @override
    def __repr__(self) -> str:
        return f"MemoryOffsetStore({len(self._values)} entries)"
