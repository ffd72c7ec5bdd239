"""The end that `stop.rule=position:<p>` sets to reading: a byte of a file."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from headrace.framework.record import RecordBatch
from headrace.sources.files.entry import POSITION

__all__ = ["up_to"]


def up_to(last: int, batches: Iterator[RecordBatch], reached: Callable[[], None]) -> Iterator[RecordBatch]:
    """The records that end at byte `last` of their file at the latest; `reached` is called with the last of them."""
    for batch in batches:
        place = _place(batch)
        if place < last:
            yield batch
            continue
        reached()
        within = batch if place == last else _cut(batch, last)
        if within is not None:
            yield within
        return


def _cut(batch: RecordBatch, last: int) -> RecordBatch | None:
    offset_at = batch.offset_at
    if offset_at is None:
        return None
    count = bisect_right(range(1, len(batch.values) + 1), last, key=lambda records: int(offset_at(records)[POSITION]))
    return batch.head(count) if count else None


def _place(batch: RecordBatch) -> int:
    return int(batch.source_offset[POSITION])
