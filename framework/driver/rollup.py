"""What the driver itself writes of the progress, between micro-batches; most of all it keeps small what is known."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.splits import SplitSource
from headrace.offsets.kafka.cleaning import TURNS_AFTER_S
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.rollup import SHARDS

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["RollUp"]

log = logging.getLogger(__name__)

AT_A_TIME = 50_000
"""Entries in one transaction."""

READS_FIRST_S = 10.0


@attrs.define
class RollUp:
    """Writes what the enumerator has to say of things that are several splits, and rolls up what is finished.

    Once a connector has `min_entries` entries, those of finished splits give way to marks; 0 is never.

    `look` is called between micro-batches, when no task runs, on the coordinator's thread, and once at the end. It
    touches no split that a task has in hand. A start reads first: until something has been planned, or some seconds
    are over, nothing is done.

    What was removed leaves the broker's disk only once every partition has got further records. A busy connector writes
    them anyway; one that has come to rest, and one that reads a little every day, writes them for that alone: at its
    start, and twice after a roll-up.
    """

    source: SplitSource[Any]
    claim: "Claim"
    min_entries: int
    warn: Callable[[str], None] = log.warning
    clock: Callable[[], float] = time.monotonic
    _at: int = attrs.field(init=False)
    _turns: list[float] = attrs.field(factory=list, init=False)
    _reads_first_until: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reads_first_until = self.clock() + READS_FIRST_S
        self._at = self.min_entries
        if len(self.claim.view.rollup):
            self._turns = self._after(0, *TURNS_AFTER_S)

    def look(self, host: EnumeratorHost, *, is_end: bool = False) -> None:
        """Write what is to be written, roll up if there is enough, let go of what the source does not have any more."""
        if offsets := host.offsets_to_write():
            self.claim.store(offsets)
        if not (is_end or host.has_planned or self.clock() >= self._reads_first_until):
            return
        still_there, host.still_there = host.still_there, None
        if still_there is not None and len(self.claim.view.rollup):
            self.claim.roll_up(keep=still_there)
        if self.min_entries and len(self.claim.view.entries) >= self._at:
            self._roll_up(self._finished(host), host.renewed)
        if self._turns and self.clock() >= self._turns[0]:
            del self._turns[0]
            self.claim.turn_segments()

    def _roll_up(self, finished: Sequence[tuple[OffsetManagerKey, str]], renewed: Collection[OffsetManagerKey]) -> None:
        entries = self.claim.view.entries
        before = len(entries)
        for start in range(0, len(finished), AT_A_TIME):
            self.claim.roll_up(dict(finished[start : start + AT_A_TIME]), renewed=renewed)
        # What is not finished by now is looked at again when as many have come.
        self._at = len(entries) + self.min_entries
        self._turns = self._after(*TURNS_AFTER_S)
        log.info("%s: %d entries are rolled up", self.claim.settings.connector, before - len(entries))
        if full := self.claim.view.rollup.full:
            self.warn(
                f"the roll-up of finished objects has no room in {full} of its {SHARDS} shards: what belongs there "
                "keeps its entries on the offsets topic; read a part of the source under another connector name"
            )

    def _after(self, *seconds: float) -> list[float]:
        return [self.clock() + after for after in seconds]

    def _finished(self, host: EnumeratorHost) -> Sequence[tuple[OffsetManagerKey, str]]:
        splits = (split for mine in host.assigned.values() for split in mine.values())
        held = {OffsetManagerKey(partition) for split in splits for partition in split.source_partitions}
        versions = (
            (key, self.source.finished_version(offset)) for key, offset in self.claim.view.items() if key not in held
        )
        return [(key, version) for key, version in versions if version is not None]
