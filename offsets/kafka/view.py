"""The committed entries of one connector, kept as bytes and parsed when they are asked for."""

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import attrs
from confluent_kafka import Message

from headrace.framework.compat import override
from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.codec import decode_value, encode_key, encode_value, key_prefix, key_spellings
from headrace.offsets.kafka.aliases import MOST_NAMES_PERMUTED, Aliases, begins_like_anothers, connector_named_by
from headrace.offsets.kafka.records import (
    Counters,
    EnumeratorState,
    Generation,
    counter_key,
    enumerator_key,
    generation_key,
    is_beside,
    rollup_key,
    rollup_prefix,
)
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.merge import merged
from headrace.offsets.rollup import RolledUp
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["KafkaOffsetView"]

log = logging.getLogger(__name__)

MOST_WORDS = 100
SHOWN = 160


@attrs.define
class KafkaOffsetView(OffsetStore):
    """What `OffsetsLog` has read, for one connector.

    A source partition may stand in the topic under several keys, one for each order in which its names were once
    written, and for any other form that is the same to Kafka Connect; they are one entry here. A million entries cost
    a second and their bytes.
    """

    connector: str
    entries: dict[bytes, bytes] = attrs.field(factory=dict)
    beside: dict[bytes, bytes] = attrs.field(factory=dict)
    rollup: RolledUp = attrs.field(factory=RolledUp)
    malformed: int = 0
    passed_over: dict[str, None] = attrs.field(factory=dict)
    """A word on each thing that could not be read, for as many as somebody may want to look at."""

    _to_commit: tuple[Offsets, Sequence[tuple[bytes, bytes | None]]] = attrs.field(default=({}, ()), init=False)
    _aliases: Aliases = attrs.field(init=False)
    _prefix: bytes = attrs.field(init=False)
    _beside_prefix: bytes = attrs.field(init=False)
    _rollup_prefix: bytes = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._aliases = Aliases(self.connector)
        self._prefix = key_prefix(self.connector)
        self._beside_prefix = generation_key(self.connector).rpartition(b",")[0] + b","
        self._rollup_prefix = rollup_prefix(self.connector)

    def take(self, message: Message) -> None:
        """Take in a record of the topic; those of other connectors are passed over."""
        key, value = message.key(), message.value()
        if isinstance(key, bytes):
            self.take_raw(key, value if isinstance(value, bytes) else None)

    def take_raw(self, key: bytes, value: bytes | None) -> None:
        """Take in a record by its key and value; the last one of a key wins."""
        if key.startswith(self._rollup_prefix):
            self._take_shard(key, value)
        elif key.startswith(self._beside_prefix):
            self._keep(self.beside, key, value)
        elif key.startswith(self._prefix):
            self._take_entry(key, value, start=len(self._prefix))
        elif not begins_like_anothers(key):
            self._take_odd(key, value)

    @override
    def get(self, keys: Collection[OffsetManagerKey]) -> dict[OffsetManagerKey, dict[str, Any]]:
        found: dict[OffsetManagerKey, dict[str, Any]] = {}
        for key in keys if self.entries else ():
            known = [value for raw in self.raw_keys(key) if (value := self._decoded(raw)) is not None]
            if known:
                found[key] = merged(known)
        return found

    @override
    def rolled_up(self, key: OffsetManagerKey, version: str) -> bool | None:
        return self.rollup.knows(key, version)

    @override
    def unreadable(self, key: OffsetManagerKey) -> str | None:
        for raw in self.raw_keys(key):
            try:
                decode_value(self.entries.get(raw))
            except MalformedOffsetError as error:
                return str(error)
        return None

    @override
    def items(self) -> Iterator[tuple[OffsetManagerKey, dict[str, Any]]]:
        for key, raw_keys in self.spelled():
            known = [value for raw in raw_keys if (value := self._decoded(raw)) is not None]
            if known:
                yield key, merged(known)

    def spelled(self) -> Spellings:
        """Every source partition, with all the keys under which it stands, however they are written."""
        return Spellings.of(self.connector, list(self.entries), self._pass_over_key)

    @override
    def committed(self, offsets: Offsets) -> None:
        (known, records), self._to_commit = self._to_commit, ({}, ())
        for key, value in records if known is offsets else self.records_for(offsets):
            self.take_raw(key, value)

    def raw_keys(self, key: OffsetManagerKey) -> list[bytes]:
        """The keys under which the topic may have `key`: the one that we write first, then its twins."""
        if len(key.mapping) > MOST_NAMES_PERMUTED:
            keys = [encode_key(self.connector, key.mapping)]
        else:
            keys = list(key_spellings(self.connector, key))
        return [*keys, *(alias for alias in self._aliases.of(key) if alias not in keys)]

    def records_to_commit(self, offsets: Offsets) -> Sequence[tuple[bytes, bytes | None]]:
        """`records_for` what is going to be committed: kept for that, so that thousands are not encoded twice."""
        self._to_commit = offsets, list(self.records_for(offsets))
        return self._to_commit[1]

    def records_for(self, offsets: Offsets) -> Iterator[tuple[bytes, bytes | None]]:
        """The records to write for `offsets`: each under one key, with tombstones for the twins that exist.

        A twin that stayed would go on claiming what it claimed, and a reader could believe it.
        """
        for key, value in offsets.items():
            canonical, *twins = self.raw_keys(key)
            yield canonical, encode_value(value)
            for twin in twins:
                if twin in self.entries:
                    yield twin, None

    @property
    def generation(self) -> Generation:
        """The generation record as it was last read."""
        key = generation_key(self.connector)
        return Generation.decode(self.beside.get(key), key)

    @property
    def remembered(self) -> EnumeratorState | None:
        """What an enumerator has to remember, as it was last read."""
        key = enumerator_key(self.connector)
        return EnumeratorState.decode(self.beside.get(key), key)

    def counters(self, task_id: int) -> Counters:
        """A task's totals as they were last read."""
        return Counters.decode(self.beside.get(counter_key(self.connector, task_id)))

    def _take_entry(self, key: bytes, value: bytes | None, *, start: int = 0) -> None:
        if value is not None and key not in self.entries and (error := self._aliases.take(key, start)) is not None:
            if is_beside(key):
                # Of another connector, and this one has the name that such keys begin with.
                del self._aliases.unreadable[key]
                return
            self._pass_over_key(error)
        elif value is None and (error := self._aliases.unreadable.pop(key, None)) is not None:
            self.passed_over.pop(_word(error), None)
        self._keep(self.entries, key, value)

    def _take_odd(self, key: bytes, value: bytes | None) -> None:
        """A key that does not begin as keys are written: it is ours only if it says so."""
        named = connector_named_by(key)
        if named == self.connector:
            self._take_entry(key, value)
        elif named is None:
            self._pass_over(f"the key {key[:SHOWN]!r} is no source partition; it is passed over")

    def _take_shard(self, key: bytes, value: bytes | None) -> None:
        number = key[len(self._rollup_prefix) : -1]
        if number.isdigit() and rollup_key(self.connector, int(number)) == key:
            self.rollup.take(int(number), value)
        else:
            self._pass_over(f"the key {key[:SHOWN]!r} is no shard of a roll-up; it is passed over")

    def _decoded(self, raw: bytes) -> dict[str, Any] | None:
        stored = self.entries.get(raw)
        if stored is None:
            return None
        try:
            return decode_value(stored)
        except MalformedOffsetError as error:
            self._pass_over(f"the entry {raw[:SHOWN]!r}: {error}; what it speaks of counts as never read")
            return None

    def _pass_over_key(self, error: MalformedOffsetError) -> None:
        self._pass_over(_word(error))

    def _pass_over(self, word: str) -> None:
        self.malformed += 1
        if word not in self.passed_over and len(self.passed_over) < MOST_WORDS:
            self.passed_over[word] = None
            log.warning("%s: %s", self.connector, word)

    def _keep(self, where: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
        if value is None:
            where.pop(key, None)
        else:
            where[key] = value


def _word(error: MalformedOffsetError) -> str:
    return f"{error}; it is passed over"
