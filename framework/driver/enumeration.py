"""The house of a source's enumerator: its context, its listing threads, what it has assigned."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import attrs

from headrace.framework.driver.discovery import Discovery
from headrace.framework.errors import SourceError, Where
from headrace.framework.splits import Split, SplitEnumerator, SplitSource
from headrace.framework.stage import Stage
from headrace.framework.worker.transaction import COMPLETE
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["EnumeratorHost"]

log = logging.getLogger(__name__)

T = TypeVar("T")

PLANNED_AT_ONCE = 10_000
"""A plan lies in the memory of its worker; the rest is planned when that is read."""

WARNED_OF = 100


@attrs.define
class EnumeratorHost:
    """Gives an enumerator what it needs, and keeps what it says until the next plan.

    The enumerator's methods are called by `work_off` and `start`, on the coordinator's thread; only the slow work
    that it asks for runs on threads of its own.

    A reader that asks for a split and gets none is remembered, and asked for again when there may be one: after each
    discovery, until it has got one or has been told that there are no more. A split that was given back is kept in
    mind until it is assigned again: the run does not end without it. `completed` counts the things that were finished
    by what the enumerator had to write of them.
    """

    connector: str
    tasks: int
    offsets: OffsetStore
    bounded: bool
    wake: threading.Event = attrs.field(factory=threading.Event)
    planning: bool = False
    finished: list[tuple[Split, int]] = attrs.field(factory=list, init=False)
    counted: dict[str, int] = attrs.field(factory=dict, init=False)
    assigned: dict[int, dict[str, Split]] = attrs.field(factory=dict, init=False)
    events: dict[int, list[Mapping[str, Any]]] = attrs.field(factory=dict, init=False)
    still_there: Callable[[int], bool] | None = attrs.field(default=None, init=False)
    renewed: frozenset[OffsetManagerKey] = attrs.field(factory=frozenset, init=False)
    skipped: int = attrs.field(default=0, init=False)
    completed: int = attrs.field(default=0, init=False)
    is_rule_met: bool = attrs.field(default=False, init=False)
    _warnings: list[str] = attrs.field(factory=list, init=False)
    _unsaid: int = attrs.field(default=0, init=False)
    _planned: dict[int, dict[str, Split]] = attrs.field(factory=dict, init=False)
    _never_idle: dict[int, bool] = attrs.field(factory=dict, init=False)
    _sent: dict[int, list[Mapping[str, Any]]] = attrs.field(factory=dict, init=False)
    _through: set[int] = attrs.field(factory=set, init=False)
    _asking: dict[int, None] = attrs.field(factory=dict, init=False)
    _no_more: set[int] = attrs.field(factory=set, init=False)
    _owners: dict[str, int] = attrs.field(factory=dict, init=False)
    _wholes: dict[str, str] = attrs.field(factory=dict, init=False)
    _returned: dict[str, Split] = attrs.field(factory=dict, init=False)
    _enumerator: SplitEnumerator[Split] | None = attrs.field(default=None, init=False)
    _counting: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _discovery: Discovery = attrs.field(init=False)

    @_discovery.default
    def _begin_discovery(self) -> Discovery:
        return Discovery(connector=self.connector, bounded=self.bounded, warn=self._warnings.append, wake=self.wake)

    def start(self, source: SplitSource[Split], state: Mapping[str, Any] | None) -> None:
        """Make the enumerator and tell it of its readers, each of which has nothing yet and so asks for work."""
        enumerator = self._enumerator = source.create_enumerator(self, state)
        enumerator.start()
        for reader_id in range(self.tasks):
            enumerator.add_reader(reader_id)
        self._asking = dict.fromkeys(range(self.tasks))
        self._ask_again()

    def state(self) -> Mapping[str, Any] | None:
        """What the enumerator has to remember, as it is now."""
        return None if self._enumerator is None else self._enumerator.snapshot_state()

    def offsets_to_write(self) -> Offsets:
        """What the enumerator has to write before the next plans."""
        offsets = {} if self._enumerator is None else self._enumerator.offsets_to_write()
        self.completed += sum(offset is not None and offset.get(COMPLETE) is True for offset in offsets.values())
        return offsets

    def work_off(self) -> None:
        """Hand the enumerator what its slow work has brought; an error of that work is raised here."""
        self._discovery.work_off()

    def take_in(self, reader_id: int, *, finished: list[str], wants: bool, events: list[Mapping[str, Any]]) -> None:
        """Tell the enumerator what a reader has reported; what it was sent has arrived."""
        self._sent.pop(reader_id, None)
        self._through.discard(reader_id)
        mine, planned = self.assigned.get(reader_id, {}), self._planned.get(reader_id, {})
        for split_id in finished:
            # A newer version of the split may have been assigned while the planned one was read.
            if split_id in planned and mine.get(split_id) == planned[split_id]:
                del mine[split_id]
        if self._enumerator is None:
            return
        for event in events:
            self._enumerator.handle_source_event(reader_id, event)
        if wants:
            self.ask(reader_id)
        self._ask_for_idle(but_last=reader_id)

    def ask(self, reader_id: int) -> None:
        """A reader asks for work."""
        if self._enumerator is not None:
            self._asking[reader_id] = None
            self._enumerator.handle_split_request(reader_id)

    def plan(self, reader_id: int) -> Sequence[Split]:
        """What the reader has to read, for its next plan; what it reports as finished is measured against that."""
        self._through.discard(reader_id)
        planned = self._planned[reader_id] = _at_once(self.assigned.get(reader_id, {}))
        self._never_idle[reader_id] = any(split.is_endless for split in planned.values())
        return list(planned.values())

    def plan_events(self, reader_id: int) -> Sequence[Mapping[str, Any]]:
        """What the enumerator has sent the reader, for its next plan: until it is reported, it has not arrived."""
        sent = self._sent[reader_id] = self.events.pop(reader_id, [])
        return list(sent)

    def put_back(self, reader_id: int) -> None:
        """A plan has come to nothing, or nobody knows what it has come to: what was sent with it is sent again."""
        self._through.discard(reader_id)
        if sent := self._sent.pop(reader_id, []):
            self.events[reader_id] = [*sent, *self.events.get(reader_id, [])]

    def hand_back(self, reader_id: int, splits: Sequence[Split]) -> None:
        """Let the enumerator assign these splits of the reader again, under a generation that is newer than theirs."""
        if self._enumerator is None:
            return
        mine = self.assigned[reader_id]
        for split in splits:
            del mine[split.split_id], self._owners[split.split_id]
            self._returned[split.split_id] = split
        self._enumerator.add_splits_back(splits, reader_id)
        self._ask_for_idle(but_last=reader_id)

    def note_through(self, reader_id: int) -> None:
        """The reader has nothing left of its plan, and its report is still to come."""
        self._through.add(reader_id)

    def has_work(self, reader_id: int) -> bool:
        """Whether there is something for the reader that it has not been through."""
        mine = self.assigned.get(reader_id, {})
        if reader_id not in self._through:
            return bool(mine)
        planned = self._planned.get(reader_id, {})
        return any(planned.get(split_id) != split for split_id, split in mine.items())

    def has_news(self, reader_id: int) -> bool:
        """Whether there is something for a reader that is at work, and is not going to be idle by itself."""
        if not self._never_idle.get(reader_id):
            return False
        planned, wanted = self._planned.get(reader_id, {}), _at_once(self.assigned.get(reader_id, {}))
        return bool(self.events.get(reader_id)) or any(planned.get(name) != split for name, split in wanted.items())

    def is_told_everything(self, reader_id: int) -> bool:
        """Whether the reader gets no more than its plan has."""
        mine = self.assigned.get(reader_id, {})
        return reader_id in self._no_more and not self._returned and len(_at_once(mine)) == len(mine)

    @property
    def everybody_is_told(self) -> bool:
        """Whether every reader knows that it gets no more."""
        return len(self._no_more) == self.tasks

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left, and nothing more will come."""
        return self.everybody_is_told and not any(self.assigned.values()) and not self._returned

    @property
    def stalled(self) -> list[str]:
        """What of discovery and assignment does not get on, in words."""
        returned = [f"split {split_id}, which was given back, has no reader yet" for split_id in list(self._returned)]
        return returned + [word for stall in self._discovery.stalls if (word := stall.word) is not None]

    @property
    def is_stalled(self) -> bool:
        """Whether discovery fails, has not answered for the first time, or something that was given back lies about."""
        return bool(self._discovery.stalls or self._returned or self._discovery.is_unanswered)

    @property
    def is_looking(self) -> bool:
        """Whether discovery is asking the source, or has an answer that is not worked off."""
        return self._discovery.is_looking

    @property
    def is_reading(self) -> bool:
        """Whether a reader has something in hand that has an end."""
        return any(not split.is_endless for mine in self.assigned.values() for split in mine.values())

    @property
    def has_planned(self) -> bool:
        """Whether a reader has been given something to read."""
        return any(self._planned.values())

    @property
    def known(self) -> int:
        """How many things have been assigned so far, whole or in parts, those that are finished by now included."""
        parts = sum(split_id in self._owners for split_id in list(self._wholes))
        return len(self._owners) - parts + len(set(self._wholes.values()))

    def close(self) -> None:
        """End the slow work and the enumerator."""
        self._discovery.close()
        if self._enumerator is not None:
            self._enumerator.close()

    def current_parallelism(self) -> int:
        """How many readers there are."""
        return self.tasks

    def assign_split(self, split: Split, reader_id: int) -> None:
        """Give a split to a reader; a second owner within the generation is refused."""
        if not 0 <= reader_id < self.tasks:
            raise SourceError(
                f"split {split.split_id} was assigned to reader {reader_id}, and there are {self.tasks}",
                Where(stage=Stage.ASSIGN, connector=self.connector),
            )
        owner = self._owners.setdefault(split.split_id, reader_id)
        if owner != reader_id:
            raise SourceError(
                f"split {split.split_id} belongs to reader {owner} and was assigned to {reader_id}: "
                "within a generation a split stays where it is",
                Where(stage=Stage.ASSIGN, connector=self.connector),
            )
        if split.whole_id != split.split_id:
            self._wholes[split.split_id] = split.whole_id
        self._asking.pop(reader_id, None)
        self._returned.pop(split.split_id, None)
        mine = self.assigned.setdefault(reader_id, {})
        if mine.get(split.split_id) != split:
            mine[split.split_id] = split
            self.wake.set()

    def owner(self, split_id: str) -> int | None:
        """Who has it, or had it."""
        return self._owners.get(split_id)

    def in_hand(self, split_id: str) -> bool:
        """Whether it is assigned, and not finished."""
        owner = self._owners.get(split_id)
        return split_id in self._returned or (owner is not None and split_id in self.assigned.get(owner, {}))

    def backlog(self) -> int:
        """What is assigned and not finished."""
        return sum(len(mine) for mine in self.assigned.values())

    def keep_rolled_up(self, keep: Callable[[int], bool], *, renewed: Collection[OffsetManagerKey] = ()) -> None:
        """Keep it for the next pause between batches."""
        self.still_there, self.renewed = keep, frozenset(renewed)

    def loads(self) -> Sequence[int]:
        """What each reader still has to read."""
        return [
            sum(max(1, split.size) for split in self.assigned.get(reader_id, {}).values())
            for reader_id in range(self.tasks)
        ]

    def note_skipped(self, word: str, *, warn: bool) -> None:
        """Count and say what is left out."""
        self.skipped += 1
        if warn and len(self._warnings) < WARNED_OF:
            log.warning("%s: %s", self.connector, word)
            self._warnings.append(word)
        elif warn:
            self._unsaid += 1
        else:
            log.info("%s: %s", self.connector, word)

    @property
    def warnings(self) -> Sequence[str]:
        """The words for the summary: so many, and of the rest how many they are."""
        rest = [f"{self._unsaid} more are left out that are not named here"] if self._unsaid else []
        return [*self._warnings, *rest]

    def note_finished(self, split: Split, reader_id: int) -> None:
        """Keep it for the plan."""
        self.finished.append((split, reader_id))

    def count(self, name: str, by: int = 1) -> None:
        """Count something of the source's own."""
        with self._counting:
            self.counted[name] = self.counted.get(name, 0) + by

    def rule_met(self) -> None:
        """The run has nothing to read, as the rule has it."""
        self.is_rule_met = True
        self.wake.set()

    def signal_no_more_splits(self, reader_id: int) -> None:
        """The reader has all that it gets."""
        self._no_more.add(reader_id)
        self._asking.pop(reader_id, None)
        self.wake.set()

    def send_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """Keep the event for the reader's next plan."""
        self.events.setdefault(reader_id, []).append(dict(event))
        self.wake.set()

    def call_async(
        self, work: Callable[[], T], handle: Callable[[T], None], *, after_s: float = 0.0, every_s: float | None = None
    ) -> None:
        """Have it done beside everything else; who asks in vain is asked for again once its answer is handled."""

        def handle_and_ask(answer: T) -> None:
            handle(answer)
            self._ask_again()

        self._discovery.begin(work, handle_and_ask, after_s=after_s, every_s=every_s)

    def _ask_again(self) -> None:
        for reader_id in list(self._asking):
            self.ask(reader_id)

    def _ask_for_idle(self, *, but_last: int) -> None:
        """While splits that were given back have no reader, ask for everyone who has nothing, in the end for one."""
        for reader_id in sorted(range(self.tasks), key=lambda one: one == but_last):
            if self._returned and not self.assigned.get(reader_id):
                self.ask(reader_id)


def _at_once(mine: Mapping[str, Split]) -> dict[str, Split]:
    """What of a reader's splits one plan has: all, where the others would wait behind one that has no end."""
    first = next(iter(mine.values()), None)
    is_all = first is not None and first.is_endless
    return dict(mine) if is_all else dict(islice(mine.items(), PLANNED_AT_ONCE))
