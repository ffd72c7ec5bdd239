"""Keeps what is known of a source small: between micro-batches, the driver rolls up what is finished."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.splits import Split, SplitSource
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["RollUp"]

log = logging.getLogger(__name__)

AT_A_TIME = 50_000
"""Entries in one transaction."""


@attrs.define
class RollUp:
    """Once a connector has `min_entries` entries, those of finished splits give way to marks; 0 is never.

    `look` is called between micro-batches, when no task runs, on the coordinator's thread. It touches no split that a
    task has in hand.
    """

    source: SplitSource[Any]
    claim: "Claim"
    min_entries: int
    _at: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._at = self.min_entries

    def look(self, host: EnumeratorHost) -> None:
        """Roll up if there is enough, and let go of what the source does not have any more."""
        view = self.claim.view
        still_there, host.still_there = host.still_there, None
        if still_there is not None and len(view.rollup):
            self.claim.roll_up(keep=still_there)
        if self.min_entries and len(view.entries) >= self._at:
            before = len(view.entries)
            finished = self._finished(host)
            for start in range(0, len(finished), AT_A_TIME):
                self.claim.roll_up(dict(finished[start : start + AT_A_TIME]))
            # What is not finished by now is looked at again when as many have come.
            self._at = len(view.entries) + self.min_entries
            log.info("%s: %d entries are rolled up", self.claim.settings.connector, before - len(view.entries))

    def _finished(self, host: EnumeratorHost) -> Sequence[tuple[OffsetManagerKey, str]]:
        held = {_key(split) for mine in host.assigned.values() for split in mine.values()}
        versions = (
            (key, self.source.finished_version(offset)) for key, offset in self.claim.view.items() if key not in held
        )
        return [(key, version) for key, version in versions if version is not None]


def _key(split: Split) -> OffsetManagerKey:
    return OffsetManagerKey(split.source_partition)
