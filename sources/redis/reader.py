"""Reads the streams of one task."""

import logging
from collections import deque
from collections.abc import Sequence

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.errors import Where
from headrace.framework.record import RecordBatch
from headrace.framework.splits import SourceReader, SourceReaderContext
from headrace.framework.stage import Stage
from headrace.framework.task import Yielded
from headrace.framework.tolerance import TOLERANCE, Tolerance
from headrace.sources.redis.client import RedisClient, connect
from headrace.sources.redis.clock import ServerClock
from headrace.sources.redis.config import Mode, RedisConfig
from headrace.sources.redis.cursor import StreamCursor
from headrace.sources.redis.deliveries import Deliveries
from headrace.sources.redis.entry import DELIVERY, Entries, Place, RedisOffsetEntry, stream_key, until
from headrace.sources.redis.failures import redis_failures
from headrace.sources.redis.group_cursor import GroupCursor
from headrace.sources.redis.groups import Acknowledgements
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.losses import Losses
from headrace.sources.redis.records import RecordMaker
from headrace.sources.redis.splits import RedisSplit
from headrace.transformers.bytes import CHUNK_BYTES

__all__ = ["RedisReader"]

log = logging.getLogger(__name__)

LONGEST_WAIT_MS = 200
"""How long the server is asked to wait for entries: so soon a stop is seen."""

CLUSTER_LOOKS_EVERY_S = 0.05


@attrs.define(eq=False)
class _Reading:
    """A stream in hand: where reading stands, and how it goes on."""

    split: RedisSplit
    entry: RedisOffsetEntry
    cursor: StreamCursor | None = None
    group: GroupCursor | None = None
    delivered: Entries = ()
    is_noted: bool = True

    @property
    def name(self) -> str:
        return self.split.stream

    @property
    def is_delivered(self) -> bool:
        """Whether a group has delivered what there was when a bounded run began."""
        if self.group is None or self.split.end is None:
            return False
        return self.group.has_recovered and not self.delivered and self.entry.place().id >= self.split.end


@attrs.define
class RedisReader(SourceReader[RedisSplit]):
    """Reads every stream in turn for as long as it has entries, and then waits for any of them.

    In a bounded run streams are read one after the other, each to the last entry that it had when it was found. Where
    the rule's time has come, by the server's clock, a stream is finished once it has nothing more.
    """

    context: SourceReaderContext
    config: RedisConfig
    _client: RedisClient = attrs.field(init=False)
    _maker: RecordMaker = attrs.field(init=False)
    _acknowledgements: Acknowledgements | None = attrs.field(default=None, init=False)
    _streams: dict[str, _Reading] = attrs.field(factory=dict, init=False)
    _ready: deque[_Reading] = attrs.field(factory=deque, init=False)
    _is_to_say_so: bool = attrs.field(default=True, init=False)
    """Whether it is new that there is nothing right now: since the start, or since records were sent."""
    _last_wanted: StreamId | None = attrs.field(default=None, init=False)
    _is_rule_met: bool = attrs.field(default=False, init=False)
    _clock: ServerClock = attrs.field(init=False)
    _is_late: bool = attrs.field(default=False, init=False)
    """Whether the rule's time has come: what is read from now on shows all that there was before it."""

    @override
    def start(self) -> None:
        self._last_wanted = self.config.last_wanted()
        with redis_failures(Where(stage=Stage.READ)):
            self._client = connect(self.config.connection())
        self._clock = ServerClock(self._client, self.config, Stage.READ)
        transformer = registry.find("transformers", self.config.input_format)()
        chunk = str(self.config.transformer_max_buffer_size)
        # An entry is passed over as a whole: within one, the first bad record has to be an error.
        transformer.configure({**self.config.props, CHUNK_BYTES: chunk, TOLERANCE: Tolerance.NONE.value})
        self._maker = RecordMaker(self.config, transformer)
        if self.config.mode is Mode.GROUP:
            self._acknowledgements = Acknowledgements(self._client, self.config, self.context.task.offsets)

    @override
    def add_splits(self, splits: Sequence[RedisSplit]) -> None:
        self.context.task.offsets.populate_offset_manager([stream_key(split.stream) for split in splits])
        for split in splits:
            reading = self._streams[split.stream] = self._reading(split)
            self._ready.append(reading)

    @override
    def snapshot(self) -> Sequence[RedisSplit]:
        return [reading.split for reading in self._streams.values()]

    @override
    def poll(self) -> Sequence[Yielded]:
        while self._streams and not self._is_rule_met and not self.context.task.stopping.is_set():
            if not self._ready:
                if self._is_to_say_so:
                    self._is_to_say_so = False
                    return ()  # what was sent can be committed, and what failed before has answered
                self._look_at_clock()
                if not self._ready:
                    self._await_entries()
                continue
            batch = self._read(self._ready[0])
            if batch is not None:
                self._is_to_say_so = True
                return (batch,)
        return ()

    @override
    def committed(self) -> None:
        if self._acknowledgements is not None:
            self._acknowledgements.acknowledge()

    @override
    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()

    def _reading(self, split: RedisSplit) -> _Reading:
        key = stream_key(split.stream)
        stored = self.context.task.offsets.get_entry(key, lambda known: RedisOffsetEntry(key, known))
        begun = RedisOffsetEntry(key, {}).at(Place(id=split.start, passed=split.passed))
        # Where a stream begins elsewhere than at its beginning, that is stored before its first record.
        reading = _Reading(split, stored or begun, is_noted=stored is not None or split.start == FIRST)
        losses = Losses(split.stream, self.config.data_loss, self._note_lost)
        if self._acknowledgements is not None and not split.peek:
            consumer = self.config.consumer_of(self.context.task.task_id)
            reading.group = GroupCursor(self._client, self.config, split, consumer, losses, self._warn)
            reading.is_noted = True
            if reading.entry.get_string(DELIVERY) is None:
                # Where our own offsets stood before says nothing of the group.
                place = Place(records=reading.entry.record_count, passed=None if stored else split.passed)
                reading.entry = self._delivered_to(reading, place, self._acknowledgements)
        else:
            reading.cursor = StreamCursor(self._client, self.config, split, losses, self._warn)
        return reading

    def _read(self, reading: _Reading) -> RecordBatch | None:
        """The next records of a stream; with None it has none right now, or its split is finished."""
        if not reading.is_noted:
            reading.is_noted = True
            return self._moved(reading, reading.entry)
        if reading.is_delivered:
            self._finish(reading)
            return None
        before = reading.entry
        entries, meets_rule = self._entries(reading)
        if entries:
            self._turn(reading)
            batch = self._batch(reading, entries)
            # A bad record ends a batch: what is behind it comes first.
            if meets_rule and not reading.delivered and reading.entry.place().id >= StreamId.parse(entries[-1][0]):
                self._meet_rule()
            return batch
        if meets_rule:
            self._meet_rule()
        if reading.entry != before:
            return self._moved(reading, reading.entry)  # what is lost is counted once
        self._ready.popleft()
        if reading.split.end is not None or self._is_late:
            self._finish(reading)
        return None

    def _entries(self, reading: _Reading) -> tuple[Entries, bool]:
        """The entries that come next, and whether the run ends by its rule behind them."""
        found = self._found(reading)
        if self._last_wanted is None:
            return found, False
        wanted = until(found, self._last_wanted)
        last = StreamId.parse(wanted[-1][0]) if wanted else reading.entry.place().id
        return wanted, last >= self._last_wanted or len(wanted) < len(found)

    def _meet_rule(self) -> None:
        self._is_rule_met = True
        self.context.rule_met()

    def _found(self, reading: _Reading) -> Entries:
        if reading.delivered:
            entries, reading.delivered = reading.delivered, ()
            return entries
        before = reading.entry.place()
        if reading.group is not None and self._acknowledgements is not None:
            place, entries = reading.group.read(before)
            if place != before:
                reading.entry = self._delivered_to(reading, place, self._acknowledgements)
            return entries
        assert reading.cursor is not None  # noqa: S101 - one of the two
        place, entries = reading.cursor.read(before)
        if place != before:
            reading.entry = reading.entry.at(place)
        return until(entries, reading.split.end)

    @staticmethod
    def _delivered_to(reading: _Reading, place: Place, acknowledgements: Acknowledgements) -> RedisOffsetEntry:
        """The entry of a group that stands at a place; what was delivered last is still what it was."""
        delivery = reading.entry.get_string(DELIVERY) or acknowledgements.none_yet
        return reading.entry.from_properties(reading.entry.properties_at(place, delivery=delivery))

    def _batch(self, reading: _Reading, entries: Entries) -> RecordBatch:
        if self._acknowledgements is None or reading.group is None:
            batch = self._maker.batch(reading.entry, entries, end=reading.split.end)
            reading.entry = reading.entry.from_properties(batch.source_offset)
            return batch
        deliveries = Deliveries(reading.name, self._maker, self._acknowledgements)
        batch, reading.delivered = deliveries.batch(reading.entry, entries)
        reading.entry = reading.entry.from_properties(batch.source_offset)
        return batch

    def _turn(self, reading: _Reading) -> None:
        """Let the next stream have its turn; a bounded run stays with one."""
        if reading.split.end is None:
            self._ready.rotate(-1)

    def _finish(self, reading: _Reading) -> None:
        if self._ready and self._ready[0] is reading:
            self._ready.popleft()
        del self._streams[reading.name]
        self.context.split_finished(reading.split.split_id)

    def _moved(self, reading: _Reading, entry: RedisOffsetEntry) -> RecordBatch:
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=entry.get_properties(),
            topic=self._maker.topic(reading.name),
            values=(),
        )

    def _look_at_clock(self) -> None:
        """Once the rule's time has come every stream is read once more."""
        if not self._clock.is_awaited:
            return
        is_past = self._clock.is_past()
        if is_past is None:
            self._warn(
                "the user may not ask the server for its time, so stop.rule ends the run with the first entry from "
                "after its time only: allow it +time"
            )
        elif is_past:
            self._is_late = True
            self._ready.extend(self._streams.values())

    def _await_entries(self) -> None:
        """Wait a little until any stream has something; those are ready then."""
        if self.config.is_cluster:
            self.context.task.stopping.wait(CLUSTER_LOOKS_EVERY_S)
            self._ready.extend(self._streams.values())
            return
        wait_ms = min(LONGEST_WAIT_MS, self.config.timeout_ms // 2)
        with redis_failures(Where(stage=Stage.READ, object=", ".join(self._streams))):
            places = {reading.name: str(reading.entry.place().id) for reading in self._streams.values()}
            for name, _ in self._client.xread(places, count=1, block=wait_ms) or ():
                self._ready.append(self._streams[name.decode()])

    def _warn(self, what: str) -> None:
        if what not in self.context.task.metrics.warnings:
            log.warning("%s: %s", self.config.name, what)
            self.context.task.metrics.warn(what)

    def _note_lost(self, what: str) -> None:
        log.warning("%s: %s", self.config.name, what)
        self.context.task.metrics.leave_out(what)
