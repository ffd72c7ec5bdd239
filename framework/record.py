"""What a task yields: a record with its origin, or many records with one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import attrs

from headrace.framework.parts import within_part
from headrace.framework.schema import Schema
from headrace.transformers.base import Place, Position, Rejected, ValueBatch

__all__ = ["Header", "Origin", "RecordBatch", "SourceRecord"]

Header = tuple[str, bytes | None]


def _copy(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return dict(mapping)


@attrs.frozen(kw_only=True)
class SourceRecord:
    """One record, where it came from, and where it goes.

    `source_partition` says where it came from (which object, file or stream) and `source_offset` where reading goes
    on *after* it; the two maps are all that the framework stores of a task's progress. Both are flat: string keys,
    and strings, 64-bit integers, floats, booleans or None as values. They are copied when the record is made, so a
    task may go on changing its own.

    `value` and `key` are anything that the converters take, or a `SchemaAndValue`. With `partition` None the
    producer chooses the Kafka partition; with `timestamp` None (milliseconds otherwise) the broker sets it.
    """

    source_partition: Mapping[str, Any] = attrs.field(converter=_copy)
    source_offset: Mapping[str, Any] = attrs.field(converter=_copy)
    topic: str
    value: Any
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[Header] = ()


@attrs.frozen
class Origin:
    """Where the values of a batch lie, for whoever has to name one of them, or to read it again.

    `object` is the piece's name for people; `position_at(n)` is where reading goes on after the first n values. In a
    part of an object these count from `part_from`, the byte with which the part begins; where `others`, the records
    before it, are known, records have the numbers that they have in the object.
    With `place_of` the format says where each value stands.
    """

    object: str
    position_at: Callable[[int], Position]
    part_from: int = 0
    others: int = 0
    place_of: Callable[[int], Place] | None = None

    @classmethod
    def of(cls, name: str, batch: ValueBatch, *, part_from: int = 0) -> Self:
        """Of values of an object, or of a part of it."""
        if batch.others is None:
            return cls(name, batch.position_at, part_from, place_of=batch.place_of)
        return cls(name, batch.position_at, others=batch.others, place_of=batch.place_of)

    def record(self, number: int) -> str:
        """The record of that number, which counts from 1 as positions do, for people."""
        return within_part(f"record {self.others + number}", self.part_from)

    def line(self, number: int) -> str:
        """The line of that number, counted from 1 in the same way, for people."""
        return within_part(f"line {number}", self.part_from)

    def place(self, index: int) -> Place:
        """Where the value with that index stands, as far as the format or its positions say it."""
        if self.place_of is not None:
            return self.place_of(index)
        before, after = self.position_at(index), self.position_at(index + 1)
        return Place(
            line=after.line or None,
            start=before.byte if after.byte else None,
            end=after.byte if after.byte > before.byte else None,
        )

    def before(self, index: int) -> Position:
        """From where that value can be read again."""
        before, place = self.position_at(index), self.place_of(index) if self.place_of else Place()
        if place.line is None or place.start is None:
            return before
        return attrs.evolve(before, byte=place.start, line=place.line - 1)


@attrs.frozen(kw_only=True)
class RecordBatch:
    """Many records of one origin with one offset entry: the fast way to say the same.

    `values` share the schema, the topic, the key, the Kafka partition, the timestamp and the headers.
    `source_offset` is where reading goes on after the last of them; a batch without values only moves the offset.

    `offset_at(n)` gives the offset after the first `n` values. It is asked for when something goes wrong inside the
    batch, so that what came before is committed and nothing is lost; a batch without it stands or falls as one.

    `rejected` is a piece that is no record, in a batch that has no values and whose offset is behind that piece: with
    `errors.tolerance=all` only. `origin` says where the values lie; dead letters name it.
    """

    source_partition: Mapping[str, Any] = attrs.field(converter=_copy)
    source_offset: Mapping[str, Any] = attrs.field(converter=_copy)
    topic: str
    values: Sequence[Any]
    schema: Schema | None = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[Header] = ()
    offset_at: Callable[[int], Mapping[str, Any]] | None = None
    rejected: Rejected | None = None
    origin: Origin | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it only moves the offset."""
        return not self.values and self.rejected is None

    def head(self, count: int) -> "RecordBatch | None":
        """The first `count` values as a batch of their own, or None where the batch cannot be cut there."""
        if self.offset_at is None:
            return None
        return attrs.evolve(self, values=self.values[:count], source_offset=self.offset_at(count))
