"""One or two topics as one store, every key parsed: for those who must not miss a spelling."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NoReturn

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import MalformedOffsetError, OffsetsError
from headrace.offsets.codec import decode_value
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.merge import merged
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["ParsedStore"]


@attrs.frozen
class ParsedStore(OffsetStore):
    """What all of `views` know of one connector; where they differ, `merged` decides. It is only read.

    A value that cannot be read counts as none; `unreadable_values` names them.
    """

    views: Sequence[KafkaOffsetView]
    spellings: Sequence[Spellings] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "spellings", [Spellings.of(view.connector, view.entries) for view in self.views])

    @override
    def get(self, keys: Collection[OffsetManagerKey]) -> dict[OffsetManagerKey, dict[str, Any]]:
        found = {}
        for key in keys:
            if (known := self._known(key)) is not None:
                found[key] = known
        return found

    @override
    def rolled_up(self, key: OffsetManagerKey, version: str) -> bool | None:
        return next((known for view in self.views if (known := view.rolled_up(key, version)) is not None), None)

    @override
    def items(self) -> Iterator[tuple[OffsetManagerKey, dict[str, Any]]]:
        for place, spellings in enumerate(self.spellings):
            for key, _ in spellings:
                told_before = any(earlier.of_key(key) for earlier in self.spellings[:place])
                if not told_before and (known := self._known(key)) is not None:
                    yield key, known

    @override
    def committed(self, offsets: Offsets) -> NoReturn:
        raise OffsetsError(f"{len(offsets)} offsets cannot be kept here: this store is only read")

    def _known(self, key: OffsetManagerKey) -> dict[str, Any] | None:
        known = [
            value
            for view, spellings in zip(self.views, self.spellings, strict=True)
            for raw in spellings.of_key(key)
            if (value := _decoded(view.entries[raw])) is not None
        ]
        return merged(known) if known else None


def _decoded(raw: bytes) -> dict[str, Any] | None:
    try:
        return decode_value(raw)
    except MalformedOffsetError:
        return None
