"""Going on behind what is no record, where `errors.tolerance=all` asks for it."""

from collections.abc import Callable, Iterator

import attrs

from headrace.framework.errors import DataError
from headrace.transformers.base import Position, Rejected, ValueBatch

__all__ = ["tolerated", "with_last"]


def tolerated(make: Callable[[], Iterator[ValueBatch]], start: Position, *, tolerant: bool) -> Iterator[ValueBatch]:
    """What `make` gives out of an object from `start` on; if `tolerant`, a `DataError` is the last piece of it.

    That piece is all that is left of the object: its format could not, or did not care to, tell where it goes on.
    """
    return _ending_well(make, start) if tolerant else make()


def _ending_well(make: Callable[[], Iterator[ValueBatch]], start: Position) -> Iterator[ValueBatch]:
    end = start
    try:
        for batch in make():
            end = batch.end
            yield batch
    except DataError as error:
        number = (end.line or end.records) + 1
        rest = Rejected(error=error, number=number, before=end, start=end.byte, count=None)
        yield rest.batch(attrs.evolve(end, records=end.records + 1))


def with_last(batches: Iterator[ValueBatch], size: int) -> Iterator[tuple[ValueBatch, bool]]:
    """The batches of an object of so many bytes, each with whether it is known to be the last.

    One that ends with the object's last byte is held back until there is no other, which takes no read; any other is
    given out at once: the next read may hang. What is left of an object, and is no record, is its last.
    """
    held: ValueBatch | None = None
    try:
        for batch in batches:
            if held is not None:
                yield held, False
                held = None
            if batch.end.byte == size:
                held = batch
                continue
            ends = batch.rejected is not None and batch.rejected.is_the_rest
            yield batch, ends
            if ends:
                return
    except Exception:
        if held is not None:
            yield held, False
        raise
    if held is not None:
        yield held, True
