"""What a consumer group has delivered, and what is stored of it once records of it are committed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.record import RecordBatch
from headrace.sources.redis.entry import Entries, Place, RedisOffsetEntry
from headrace.sources.redis.groups import Acknowledgements
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.records import RecordMaker

__all__ = ["Deliveries"]


@attrs.frozen
class Deliveries:
    """Makes batches of what a group has delivered of one stream, each with offsets that name what is acknowledged."""

    stream: str
    maker: RecordMaker
    acknowledgements: Acknowledgements

    def batch(self, entry: RedisOffsetEntry, entries: Entries) -> tuple[RecordBatch, Entries]:
        """The records of these entries, where `entry` says how the group stands, and the entries that are left.

        Older entries may come again: the place does not go back for them. Entries are left where a bad record ends the
        batch: it comes first the next time.
        """
        place = entry.place().before(StreamId.parse(entries[0][0]))
        # From before all entries: so what is passed are just these.
        batch = self.maker.batch(entry.at(attrs.evolve(place, id=FIRST, passed=0)), entries)
        count = entry.from_properties(batch.source_offset).place().passed or 0
        ids = [entry_id for entry_id, _ in entries[:count]]
        delivery = _Delivery(entry, ids, self.acknowledgements.add(self.stream, ids))
        inner = batch.offset_at
        batch = attrs.evolve(
            batch,
            source_offset=delivery.offset(batch.source_offset),
            offset_at=None if inner is None else lambda part: delivery.offset(inner(part)),
        )
        return batch, entries[count:]


@attrs.frozen
class _Delivery:
    """How the group stood, which entries are passed by a batch, and how the first so many of them are named."""

    entry: RedisOffsetEntry
    ids: Sequence[bytes]
    named: Callable[[int], str]

    def offset(self, read: Mapping[str, Any]) -> dict[str, Any]:
        """What is stored where that much of the entries was read."""
        before, after = self.entry.place(), self.entry.from_properties(read).place()
        count = after.passed or 0
        newer = sum(StreamId.parse(one) > before.id for one in self.ids[:count])
        place = Place(
            id=max(after.id, before.id),
            within=after.within,
            inside=after.inside,
            records=after.records,
            passed=None if before.passed is None else before.passed + newer,
        )
        return self.entry.properties_at(place, delivery=self.named(count), last=after.id if count else None)
