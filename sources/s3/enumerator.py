"""Lists the bucket, once for all tasks, and gives every object that is to be read to one of them."""

import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from math import ceil
from typing import Any

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.framework.errors import ObjectChangedError, OffsetsError, Where
from headrace.framework.naming import NameTemplate
from headrace.framework.splits import SplitEnumerator, SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.framework.stop_rule import TimeLimit
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.rollup import name_mark
from headrace.offsets.store import Offsets
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.cutting import Cutter
from headrace.sources.s3.entry import OVERWRITTEN, Action, object_key
from headrace.sources.s3.listing import Skipped
from headrace.sources.s3.objects import S3Object, version_name
from headrace.sources.s3.progress import Standing, standings
from headrace.sources.s3.splits import S3Split
from headrace.sources.s3.sweep import Part, Sweep

__all__ = ["S3Enumerator"]

ENOUGH = 100_000
"""With so many objects still to be read, finding more can wait: what is found lies in memory."""

OVERLOADED = sys.maxsize
"""More than there can be to read."""

WATERMARK = "watermark"
SCOPE = "scope"
START = "startKey"


@attrs.define
class S3Enumerator(SplitEnumerator[S3Split]):
    """Walks through the listing every `discovery.interval.ms`; in a bounded run once.

    A walk begins behind the last key that was seen, where new objects usually come: also after a restart, which
    reads what is new before it has listed what is old. The whole bucket is walked through at the start, every
    `reconcile.interval.ms`, and every time where it takes no more requests than its end does. So an object is found
    whatever its name and whenever it comes.

    What an object's entry, or the roll-up, says against what the listing says decides whether it is read. What is in
    no whole listing any more leaves the roll-up, unless earlier runs have listed more than this one does.
    """

    context: SplitEnumeratorContext[S3Split]
    config: S3Config
    state: Mapping[str, Any] | None = None
    _template: NameTemplate = attrs.field(init=False)
    _limit: TimeLimit = attrs.field(init=False)
    _strategy: ObjectDistributionStrategy = attrs.field(init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _sweep: Sweep = attrs.field(init=False)
    _watermark: str | None = attrs.field(default=None, init=False)
    _scope: str = attrs.field(init=False)
    _start: str | None = attrs.field(init=False)
    _whole_at: float | None = attrs.field(default=None, init=False)
    _in_one_page: bool = attrs.field(default=False, init=False)
    _settled: dict[str, str] = attrs.field(factory=dict, init=False)
    _told: set[str] = attrs.field(factory=set, init=False)
    _cutter: Cutter = attrs.field(init=False)
    _changed: list[S3Object] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._cutter = Cutter(self.context, self.config)
        self._template = NameTemplate.parse(self.config.file_name_template)
        self._limit = TimeLimit.of(self.config.stop_rule)
        self._strategy = registry.find("distributions", self.config.distribution_type)()
        self._strategy.configure(self.config.props)
        known = self.state or {}
        self._watermark = known.get(WATERMARK)
        self._scope = _common(known.get(SCOPE, self._listed), self._listed)
        # Where only the scope is known, it was stored by a version that did not write down where a listing began.
        self._start = _lower(known.get(START), self.config.start_key) if SCOPE in known else self.config.start_key
        self._sweep = self._new_sweep(None if self.context.planning else self._watermark)

    @override
    def start(self) -> None:
        self.context.call_async(self._sweep.part, self._take_in)

    @override
    def add_splits_back(self, splits: Sequence[S3Split], reader_id: int) -> None:
        self._assign(splits, without=reader_id)

    @override
    def handle_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """A reader of a part has found that the object was overwritten: all of it is begun anew."""
        self._assign(self._to_read(self._standings([S3Object(**event)])))

    @override
    def offsets_to_write(self) -> Offsets:
        return self._cutter.offsets_to_write()

    @override
    def snapshot_state(self) -> Mapping[str, Any]:
        # In a small bucket it would change all the time, and save nothing.
        watermark = {} if self._in_one_page or self._watermark is None else {WATERMARK: self._watermark}
        start = {} if self._start is None else {START: self._start}
        return {SCOPE: self._scope, **start, **watermark}

    @override
    def close(self) -> None:
        self._closed.set()

    @property
    def _listed(self) -> str:
        """What the keys begin with in this run's whole listing."""
        return f"s3://{self.config.bucket}/{self.config.prefix or ''}"

    @property
    def _covers_all(self) -> bool:
        """Whether this run's whole listing shows all that any earlier one has shown: what it lacks is gone."""
        return self._scope.startswith(self._listed) and self._start == self.config.start_key

    def _new_sweep(self, start_after: str | None) -> Sweep:
        return Sweep(
            config=self.config,
            template=self._template,
            attempts=self.config.attempts(self._closed),
            count=self.context.count,
            client=self._sweep.client if hasattr(self, "_sweep") else None,
            start_after=start_after,
            watermark=self._watermark if self.context.planning else None,
            limit=self._limit,
        )

    def _take_in(self, part: Part) -> None:
        for found, why in part.left_out:
            self._leave_out(found, str(why), warn=why is Skipped.ARCHIVED)
        told = self._standings([found for found in part.objects if self._settled.get(found.key) != found.etag])
        if self._sweep.is_whole:
            # Of very many the rest is noted by a later walk.
            changed = (one.found for one in told if self._is_rolled_up_otherwise(one))
            self._changed += islice(changed, ENOUGH - len(self._changed))
        self._assign(self._to_read(told))
        if part.ended:
            self._sweep_ended(self._sweep, part)
        else:
            # Where this run is ended before its walk is, the next one begins with what lies behind.
            self._note_seen(self._sweep)
            self._go_on()

    def _note_seen(self, sweep: Sweep) -> None:
        self._watermark = max(filter(None, (self._watermark, sweep.last)), default=None)

    def _go_on(self, _: None = None) -> None:
        if self.context.planning or self.context.backlog() < ENOUGH:
            self.context.call_async(self._sweep.part, self._take_in)
        else:
            self.context.call_async(_do_nothing, self._go_on, after_s=self._interval_s)

    def _sweep_ended(self, sweep: Sweep, last: Part) -> None:
        self._note_seen(sweep)
        if sweep.watermark is not None:
            # Before this walk, a run makes another one that begins there.
            self.context.count("s3_list_calls_more", max(1, ceil(sweep.behind / self.config.page_size)))
        if sweep.is_whole:
            self._reconcile(sweep, last)
        if sweep.is_last or (self.context.bounded and sweep.is_whole):
            for reader_id in range(self.context.current_parallelism()):
                self.context.signal_no_more_splits(reader_id)
            return
        self._sweep = self._new_sweep(None if self._is_whole_due() else self._watermark)
        after_s = 0.0 if self._whole_at is None else self._interval_s
        self.context.call_async(self._sweep.part, self._take_in, after_s=after_s)

    def _reconcile(self, sweep: Sweep, last: Part) -> None:
        self._whole_at = time.monotonic()
        self._in_one_page = sweep.seen <= self.config.page_size
        changed, self._changed = self._changed, []
        # What is no longer there is forgotten: it may come back. What has changed is looked at until it is rolled up.
        self._settled = {found.key: found.etag for found in last.objects} if self._in_one_page else {}
        for found in changed:
            self._settled.pop(found.key, None)
        if self._covers_all:
            marks = sorted(sweep.marks)
            renewed = [key for found in changed if _is_alone(marks, key := object_key(found.bucket, found.key))]
            self.context.keep_rolled_up(lambda mark: _holds(marks, mark), renewed=renewed)

    def _is_whole_due(self) -> bool:
        if self._whole_at is None or self._in_one_page or self._limit.has_come:
            return True
        return time.monotonic() - self._whole_at >= self.config.reconcile_interval_ms / 1000

    @property
    def _interval_s(self) -> float:
        return self.config.discovery_interval_ms / 1000

    def _standings(self, objects: Sequence[S3Object]) -> list[Standing]:
        try:
            return standings(objects, self.context.offsets, self.config.overwrite_policy)
        except OffsetsError as error:
            raise error.located(Where(stage=Stage.DISCOVER, connector=self.config.name)) from error.__cause__

    def _is_rolled_up_otherwise(self, one: Standing) -> bool:
        """Whether the roll-up has another version than the one that is there, or another object of the same mark."""
        found = one.found
        if one.rolled_up or one.entry is None:
            return one.rolled_up and one.decision.action is not Action.FINISHED
        version = version_name(found.etag, found.size)
        return self.context.offsets.rolled_up(object_key(found.bucket, found.key), version) is False

    def _to_read(self, objects: Sequence[Standing]) -> list[S3Split]:
        self._cutter.forget([one.found for one in objects if one.overruled])
        told = [(one, self._action(one)) for one in objects]
        to_read = [one for one, action in told if action in {Action.READ, Action.REREAD}]
        finished = [one for one, action in told if action is Action.FINISHED]
        for one in finished:
            if one.cut is not None:
                self._cutter.follow(one.cut)
        if self.context.planning:
            self._note_finished([S3Split(one.found) for one in finished])
            self._note_finished([split for one in to_read if one.cut for split in one.cut.splits(ended=True)])
        return [split for one in to_read for split in self._cutter.splits(one)]

    def _note_finished(self, splits: Sequence[S3Split]) -> None:
        for split, task in zip(splits, self._shared_out(splits), strict=True):
            self.context.note_finished(split, task)

    def _action(self, one: Standing) -> Action:
        found, action = one.found, one.decision.action
        if action is Action.FAIL:
            raise ObjectChangedError(
                "the object was overwritten after it had been read, and s3.overwrite.policy is fail: "
                "restore it, reset its offset, or choose reread or ignore",
                Where(stage=Stage.DISCOVER, connector=self.config.name, object=found.uri),
            )
        if action is Action.IGNORE:
            self._leave_out(found, OVERWRITTEN, warn=True)
        return action

    def _leave_out(self, found: S3Object, why: str, *, warn: bool) -> None:
        version = f"{found.uri}@{found.etag}"
        if version not in self._told:
            self._told.add(version)
            self.context.note_skipped(f"{found.uri} is left out: {why}", warn=warn)

    def _assign(self, splits: Sequence[S3Split], *, without: int | None = None) -> None:
        for split, task in zip(splits, self._shared_out(splits, without), strict=True):
            self.context.assign_split(split, task)

    def _shared_out(self, splits: Sequence[S3Split], without: int | None = None) -> list[int]:
        """The task of each, by the strategy; the one that balances avoids the task `without` if there are others."""
        tasks = self.context.current_parallelism()
        if isinstance(self._strategy, BalancedDistribution):
            wanted = [StorageObject(split.split_id, split.size) for split in splits]
            owners = {split.split_id: self.context.owner(split.split_id) for split in splits}
            given = {name: owner for name, owner in owners.items() if owner is not None}
            loads = [OVERLOADED if task == without else load for task, load in enumerate(self.context.loads())]
            plan = self._strategy.plan(wanted, tasks, given=given, loads=loads)
            return [plan[one.name] for one in wanted]
        return [self._strategy.task_for(split.as_object(), tasks) for split in splits]


def _lower(one: str | None, other: str | None) -> str | None:
    """The key that comes first; None is the beginning."""
    return None if one is None or other is None else min(one, other)


def _common(one: str, other: str) -> str:
    """What both begin with."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _do_nothing() -> None:
    """There is enough to read: the next look is later."""


def _is_alone(marks: Sequence[int], key: OffsetManagerKey) -> bool:
    """Whether no other name has this one's mark."""
    mark = name_mark(key)
    return bisect_right(marks, mark) - bisect_left(marks, mark) == 1


def _holds(marks: Sequence[int], mark: int) -> bool:
    place = bisect_left(marks, mark)
    return place < len(marks) and marks[place] == mark
