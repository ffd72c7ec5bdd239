"""Entries as records: the map of an entry's fields, or one field's bytes through a transformer."""

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import attrs

from headrace.framework.errors import DataError, PipelineError, Where
from headrace.framework.parsers import topic_name
from headrace.framework.record import Origin, RecordBatch
from headrace.framework.schema import BYTES, STRING, Schema
from headrace.framework.stage import Stage
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.entry import STREAM, Entries, Place, RedisOffsetEntry
from headrace.sources.redis.ids import StreamId
from headrace.sources.redis.names import stream_of
from headrace.transformers.base import Position, Rejected, Transformer
from headrace.transformers.lines import LineTransformer

__all__ = ["FIELDS", "RecordMaker"]

FIELDS = Schema("map", keys=STRING, values=STRING)
"""The schema of an entry's fields."""

WHOLE = "bytes"
NEWLINE = b"\n"


@attrs.define
class _Values:
    """The values of some entries; `ends` says after how many of them each entry is over. An error ends them."""

    schema: Schema | None = None
    values: list[Any] = attrs.field(factory=list)
    ends: list[int] = attrs.field(factory=list)
    error: DataError | None = None


@attrs.frozen
class _Places:
    """Where reading goes on after so many of some entries' values."""

    start: Place
    entries: Entries
    ends: Sequence[int]

    def after(self, count: int) -> Place:
        passed = bisect_right(self.ends, count)
        before = self.ends[passed - 1] if passed else 0
        within = count - before + (0 if passed else self.start.within)
        return Place(
            id=StreamId.parse(self.entries[passed - 1][0]) if passed else self.start.id,
            within=within,
            inside=StreamId.parse(self.entries[passed][0]) if within else None,
            records=self.start.records + count,
            passed=None if self.start.passed is None else self.start.passed + passed,
        )

    def position(self, count: int) -> Position:
        """The same as a format would say it, as far as one could: how many records there are before it."""
        place = self.after(count)
        return Position(records=place.records, inside=place.within)


@attrs.frozen
class RecordMaker:
    """Makes records of entries; one per reader."""

    config: RedisConfig
    transformer: Transformer

    def batch(self, entry: RedisOffsetEntry, entries: Entries, *, end: StreamId | None = None) -> RecordBatch:
        """The records of these entries, which follow where `entry` stands; without records, the place behind them.

        A bad one ends the batch before it; where it is the first, its `DataError` is raised, or if bad records are
        passed over, the batch is the one entry that has it, from there to its end.
        """
        stream = str(entry.get_manager_key().mapping[STREAM])
        start = entry.place()
        found = self._maps(entries) if self.config.value_field is None else self._fields(start, entries)
        count = len(found.values)
        places = _Places(start, entries, found.ends)
        if found.error is not None and not count:
            bad, passed = _named(found.error, stream, start, entries[len(found.ends)][0]), len(found.ends)
            if not self.config.is_tolerant:
                raise bad from bad.__cause__
            return self._rejected(entry, entries[: passed + 1], bad, end)
        last = places.after(count)
        complete = end is not None and found.error is None and last.id >= end
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=entry.properties_at(last, complete=complete),
            topic=self.topic(stream),
            values=found.values,
            schema=found.schema,
            key=self.transformer.key(stream),
            offset_at=lambda part: entry.properties_at(places.after(part)),
            origin=Origin(stream, places.position),
        )

    def _rejected(
        self, entry: RedisOffsetEntry, entries: Entries, error: DataError, end: StreamId | None
    ) -> RecordBatch:
        """What is left of the last of these entries, before which there is nothing, as a piece that is no record."""
        start, (last, fields) = entry.place(), entries[-1]
        after = Place(
            id=StreamId.parse(last),
            records=start.records + 1,
            passed=None if start.passed is None else start.passed + len(entries),
        )
        name = (self.config.value_field or "").encode()
        stream = str(entry.get_manager_key().mapping[STREAM])
        within = start.within if len(entries) == 1 else 0
        raw = fields.get(name) if fields and not within else None
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=entry.properties_at(after, complete=end is not None and after.id >= end),
            topic=self.topic(stream),
            values=(),
            key=self.transformer.key(stream),
            rejected=Rejected(
                error=error,
                number=start.records + 1,
                before=Position(records=start.records, inside=within),
                count=None,
                raw=raw if raw is not None and len(raw) <= (self.config.max_record_bytes or len(raw)) else None,
            ),
        )

    def topic(self, stream: str) -> str:
        """Where the records of a stream go."""
        if self.config.topic is not None:
            return self.config.topic
        try:
            return topic_name()(stream_of(stream))
        except ValueError as error:
            message = "no topic: the stream's name is none, so set `topic`"
            raise PipelineError(message, Where(stage=Stage.READ, object=stream)) from error

    def _maps(self, entries: Entries) -> _Values:
        found = _Values(FIELDS)
        for _, fields in entries:
            if fields:
                try:
                    found.values.append({name.decode(): value.decode() for name, value in fields.items()})
                except UnicodeDecodeError as error:
                    found.error = DataError("a field is not UTF-8: take one field as bytes, with redis.value.field")
                    found.error.__cause__ = error
                    break
            found.ends.append(len(found.values))
        return found

    def _fields(self, start: Place, entries: Entries) -> _Values:
        name = (self.config.value_field or "").encode()
        payloads = []
        missing = None
        for _, fields in entries:
            if fields and name not in fields:
                missing = DataError(f"the entry has no field {name.decode()}: check redis.value.field")
                break
            payloads.append(fields[name] if fields else b"")
        found = self._at_once(payloads) if payloads and all(payloads) and not start.within else None
        found = found or self._one_by_one(payloads, start.within)
        found.error = found.error or missing
        return found

    def _at_once(self, payloads: list[bytes]) -> _Values | None:
        """The values where each payload is one, or None where that is not known: the quick way."""
        if self.config.input_format == WHOLE and not self.config.transformer_max_buffer_size:
            return _Values(BYTES, payloads, list(range(1, len(payloads) + 1)))
        transformer = self.transformer
        if not isinstance(transformer, LineTransformer) or any(NEWLINE in payload for payload in payloads):
            return None
        lines = transformer.strip(payloads)
        if transformer.skips_blank and not all(lines):
            return None
        values, bad = transformer.decode(lines)
        if bad is not None:
            return None
        return _Values(transformer.schema, list(values), list(range(1, len(values) + 1)))

    def _one_by_one(self, payloads: list[bytes], within: int) -> _Values:
        found = _Values()
        for number, payload in enumerate(payloads):
            skip = 0 if number else within
            try:
                for batch in self.transformer.batches(io.BytesIO(payload), Position()):
                    found.schema = batch.schema
                    found.values += batch.values[skip:]
                    skip = max(0, skip - len(batch.values))
            except DataError as error:
                found.error = error
                break
            found.ends.append(len(found.values))
        return found


def _named(error: DataError, stream: str, start: Place, entry_id: bytes) -> DataError:
    """The same error, with its place in the stream and not in the entry."""
    position = f"record {start.records + 1}, entry {entry_id.decode()}"
    named = DataError(error.message, Where(stage=Stage.TRANSFORM, object=stream, position=position))
    named.__cause__ = error.__cause__ or error
    return named
