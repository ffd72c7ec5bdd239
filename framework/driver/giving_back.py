"""Splits on their way from one reader to another: given back, or left behind by a reader that is lost."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.errors import HeadraceError, SourceError, Where
from headrace.framework.splits import Split
from headrace.framework.stage import Stage
from headrace.framework.worker.plan import TaskReport
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["GivingBack"]

log = logging.getLogger(__name__)

LOST_AFTER = 3
"""Attempts of a task in a row that fail as a whole."""

MOST_TIMES = 5
"""How often a split may be given back with nothing read of it in between."""


@attrs.define
class _Failing:
    """A reader whose attempts fail, since the micro-batch `since`. It is lost once only, until it gets on again."""

    since: int
    attempts: int = 0
    is_lost: bool = False


@attrs.define
class GivingBack:
    """Notes what is to move, and moves it between micro-batches, under a new claim.

    A reader gives splits back by itself. It is lost, with all that it has, where the engine says so, and where its
    attempts fail as a whole, `LOST_AFTER` times in a row, while another reader gets on.

    Nothing moves for ever. A split that is given back more than `MOST_TIMES` times, with nothing read of it in between,
    fails the run. A reader whose attempts fail is lost once, until it gets on again: what it has after that waits for
    as long as the run's patience with failures lasts. An engine that loses readers gives up by a rule of its own.
    """

    host: EnumeratorHost
    claim: "Claim"
    _given: dict[int, dict[str, None]] = attrs.field(factory=dict, init=False)
    _lost: dict[int, HeadraceError] = attrs.field(factory=dict, init=False)
    _failing: dict[int, _Failing] = attrs.field(factory=dict, init=False)
    _got_on_in: dict[int, int] = attrs.field(factory=dict, init=False)
    _times: dict[str, int] = attrs.field(factory=dict, init=False)
    _marks: dict[str, Mapping[str, Any] | None] = attrs.field(factory=dict, init=False)

    def take_in(self, report: TaskReport, batch: int) -> None:
        """What a reader has reported, of this micro-batch."""
        if report.given_back:
            self._given.setdefault(report.task_id, {}).update(dict.fromkeys(report.given_back))
        if report.error is None or report.records:
            self._failing.pop(report.task_id, None)
            self._got_on_in[report.task_id] = batch
            return
        failing = self._failing.setdefault(report.task_id, _Failing(batch))
        failing.attempts += 1
        if failing.attempts >= LOST_AFTER and not failing.is_lost and self._others_get_on(failing):
            failing.is_lost = True
            self.note_lost(report.task_id, report.error)

    def note_lost(self, reader_id: int, because: HeadraceError) -> None:
        """The reader is lost: what it has left is for others."""
        self._lost[reader_id] = because

    def settle(self) -> list[int]:
        """Move what is to move: between micro-batches, before the next ones are planned. The readers that are lost.

        A new claim comes first, so that nobody can still be reading what is assigned anew.
        """
        lost, given, self._lost, self._given = self._lost, self._given, {}, {}
        leaving = {reader_id: self._left(reader_id, None) for reader_id in lost}
        leaving |= {reader_id: self._left(reader_id, ids) for reader_id, ids in given.items() if reader_id not in lost}
        if not any(leaving.values()):
            return []
        self.claim.renew()
        for reader_id, splits in leaving.items():
            if not splits:
                continue
            if reader_id not in lost:
                self._refuse_to_bounce(reader_id, splits)
            why = f"it is lost: {lost[reader_id]}" if reader_id in lost else "it has given them back"
            log.warning("%s: %d splits of reader %d move: %s", self.host.connector, len(splits), reader_id, why)
            self.host.hand_back(reader_id, splits)
        return [reader_id for reader_id in lost if leaving[reader_id]]

    def _left(self, reader_id: int, split_ids: Mapping[str, None] | None) -> list[Split]:
        """What the reader still has: of these splits, or at all."""
        mine = self.host.assigned.get(reader_id, {})
        return [split for split_id, split in mine.items() if split_ids is None or split_id in split_ids]

    def _others_get_on(self, failing: _Failing) -> bool:
        return any(
            batch >= failing.since for reader_id, batch in self._got_on_in.items() if reader_id not in self._failing
        )

    def _refuse_to_bounce(self, reader_id: int, splits: list[Split]) -> None:
        for split in splits:
            name, key = split.split_id, OffsetManagerKey(split.source_partition)
            mark = self.claim.view.get([key]).get(key)
            is_in_vain = name in self._marks and self._marks[name] == mark
            self._times[name] = self._times.get(name, 0) + 1 if is_in_vain else 1
            self._marks[name] = mark
            if self._times[name] > MOST_TIMES:
                raise SourceError(
                    f"split {name} was given back {self._times[name]} times with nothing read of it in between, the "
                    f"last time by reader {reader_id}: see in the log of its tasks why they cannot read it",
                    Where(stage=Stage.ASSIGN, connector=self.host.connector),
                )
