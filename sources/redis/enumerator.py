"""Finds the streams, once for all tasks, and gives each of them to one."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.config import Boundary, DataLoss
from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.framework.errors import ConfigError, Fault, SourceError, Where
from headrace.framework.splits import SplitEnumerator, SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient, connect
from headrace.sources.redis.clock import ServerClock
from headrace.sources.redis.config import EARLIEST, LATEST, Mode, RedisConfig
from headrace.sources.redis.discovery import Discovery
from headrace.sources.redis.entry import RedisOffsetEntry, stream_key
from headrace.sources.redis.failures import redis_failures
from headrace.sources.redis.groups import make_group, place_of_group
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.info import StreamInfo
from headrace.sources.redis.names import partition_of
from headrace.sources.redis.splits import RedisSplit

__all__ = ["RedisEnumerator"]

log = logging.getLogger(__name__)

COMMITTED_WITHIN_S = 10.0


@attrs.define
class RedisEnumerator(SplitEnumerator[RedisSplit]):
    """Looks for streams at the start, and in a continuous run again every `discovery.interval.ms`.

    Where reading begins in a stream is resolved here, once: with `redis.start=latest` that is the last entry that a
    stream has when it is first seen at the start of the connector's first run, and the first one of a stream that
    comes later. The state holds what was resolved.
    """

    context: SplitEnumeratorContext[RedisSplit]
    config: RedisConfig
    state: Mapping[str, Any] | None = None
    _strategy: ObjectDistributionStrategy = attrs.field(init=False)
    _starts: dict[str, str] = attrs.field(init=False)
    _knows_starts: bool = attrs.field(init=False)
    _client: RedisClient = attrs.field(default=None, init=False)
    _discovery: Discovery | None = attrs.field(default=None, init=False)
    _is_last_look: bool = attrs.field(default=False, init=False)
    _grouped: set[str] = attrs.field(factory=set, init=False)
    _assigned: set[str] = attrs.field(factory=set, init=False)
    _last_seen: dict[str, StreamInfo] = attrs.field(factory=dict, init=False)
    _gone: dict[str, "_Gone"] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._starts = {name: str(place) for name, place in (self.state or {}).items()}
        self._knows_starts = self.state is not None
        self._strategy = registry.find("distributions", self.config.distribution_type)()
        self._strategy.configure(self.config.props)

    @override
    def start(self) -> None:
        if not self.context.bounded and self.config.transaction_boundary is Boundary.OBJECT:
            message = "cannot be object where streams are read on and on, they have no end: set it to interval or poll"
            raise ConfigError([Fault("transaction.boundary", "object", message)])
        every_s = None if self.context.bounded else self.config.discovery_interval_ms / 1000
        self.context.call_async(self._find, self._take_in, every_s=every_s)

    @override
    def snapshot_state(self) -> Mapping[str, Any] | None:
        return dict(self._starts) if self._knows_starts and self.config.start == LATEST else None

    @override
    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _find(self) -> dict[str, StreamInfo]:
        if self._discovery is None:
            with redis_failures(Where(stage=Stage.DISCOVER, connector=self.config.name)):
                self._client = connect(self.config.connection())
            self._discovery = Discovery(self.config, self._client)
        self.context.count("redis_list_calls")
        # A stream that comes after the time of the rule has nothing that is to be read.
        self._is_last_look = ServerClock(self._client, self.config, Stage.DISCOVER).is_past() is True
        found = self._discovery.find()
        if self.config.mode is Mode.GROUP:
            for name in found.keys() - self._grouped:
                self._ask_group(name, found[name])
                self._grouped.add(name)
        return found

    def _ask_group(self, name: str, info: StreamInfo) -> None:
        """Make the group, or for a plan only ask where it stands."""
        if not self.context.planning:
            make_group(self._client, self.config, name, info, is_new=self._knows_starts)
        elif (place := place_of_group(self._client, self.config, name)) is not None:
            self._starts[name] = place

    def _take_in(self, found: Mapping[str, StreamInfo]) -> None:
        self._note_gone(found)
        fresh = {name: info for name, info in found.items() if name not in self._assigned}
        known = self.context.offsets.get([stream_key(name) for name in fresh])
        splits = [self._split(name, info, known.get(stream_key(name))) for name, info in fresh.items()]
        self._knows_starts = True
        self._assign([split for split in splits if split is not None])
        if self.context.bounded or self._is_last_look:
            for reader_id in range(self.context.current_parallelism()):
                self.context.signal_no_more_splits(reader_id)

    def _split(self, name: str, info: StreamInfo, stored: Mapping[str, Any] | None) -> RedisSplit | None:
        start = self._start_of(name, info, stored)
        split = RedisSplit(
            stream=name,
            start=start,
            passed=info.passed_at(start),
            end=info.last if self.context.bounded else None,
            added=info.added,
            length=info.length,
            peek=self.context.planning,
        )
        if self.context.bounded and self.config.mode is Mode.OFFSETS and _is_read(info, start, stored, name):
            if self.context.planning:
                self.context.note_finished(split, self._shared_out([split])[0])
            return None
        return split

    def _start_of(self, name: str, info: StreamInfo, stored: Mapping[str, Any] | None) -> StreamId:
        if self.config.mode is Mode.GROUP:
            return StreamId.parse(self._starts.get(name, str(FIRST)))
        if self.config.start == EARLIEST or stored is not None:
            return FIRST
        if self.config.start != LATEST:
            return StreamId.parse(self.config.start)
        if name not in self._starts:
            # Of a stream that was not there at the first look every entry is later than "latest".
            self._starts[name] = str(FIRST if self._knows_starts else info.last)
        return StreamId.parse(self._starts[name])

    def _note_gone(self, found: Mapping[str, StreamInfo]) -> None:
        """Streams that were there have been deleted: what is committed of them says what that means."""
        for name in self._last_seen.keys() - found.keys():
            self._assigned.discard(name)
            self._grouped.discard(name)
            self._starts.pop(name, None)
            self._gone[name] = _Gone(self._last_seen[name].last, time.monotonic() + COMMITTED_WITHIN_S)
        self._last_seen = dict(found)
        for name, gone in list(self._gone.items()):
            stored = self.context.offsets.get([stream_key(name)]).get(stream_key(name))
            place = RedisOffsetEntry(stream_key(name), dict(stored or {})).place().id
            if place >= gone.last:
                log.info("%s: the stream %s was deleted; what was known of it had been read", self.config.name, name)
            elif time.monotonic() < gone.decide_at:
                continue
            else:
                self._lose(name, f"its last entry was {gone.last}, and {place} is committed")
            del self._gone[name]

    def _lose(self, name: str, place: str) -> None:
        said = f"the stream was deleted before it was read: {place}"
        if self.config.data_loss is DataLoss.FAIL:
            where = Where(stage=Stage.DISCOVER, connector=self.config.name, object=name)
            raise SourceError(f"{said}; to go on without it set data.loss=continue", where)
        self.context.note_skipped(f"{name}: {said}", warn=True)

    def _assign(self, splits: Sequence[RedisSplit]) -> None:
        for split, task in zip(splits, self._shared_out(splits), strict=True):
            self._assigned.add(split.stream)
            self.context.assign_split(split, task)

    def _shared_out(self, splits: Sequence[RedisSplit]) -> list[int]:
        tasks = self.context.current_parallelism()
        wanted = [StorageObject(split.stream, split.length, partition_of(split.stream)) for split in splits]
        # A stream that was given back may have moved.
        held = {one.name: task for one in wanted if (task := self.context.owner(one.name)) is not None}
        if isinstance(self._strategy, BalancedDistribution):
            plan = self._strategy.plan(wanted, tasks, given=held, loads=self.context.loads())
            return [plan[one.name] for one in wanted]
        return [held[one.name] if one.name in held else self._strategy.task_for(one, tasks) for one in wanted]


@attrs.frozen
class _Gone:
    """A stream that was deleted: the last id that was seen, and until when its last records may be on their way."""

    last: StreamId
    decide_at: float


def _is_read(info: StreamInfo, start: StreamId, stored: Mapping[str, Any] | None, name: str) -> bool:
    """Whether nothing is left to read, to miss, or to store: where a stream begins elsewhere is stored."""
    if stored is None:
        return start == FIRST and info.length == 0
    place = RedisOffsetEntry(stream_key(name), dict(stored)).place()
    return place.id == info.last and (None in {place.passed, info.added} or place.passed == info.added)
