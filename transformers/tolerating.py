"""Going on behind what is no record, where `errors.tolerance=all` asks for it."""

from collections.abc import Callable, Iterator

import attrs

from headrace.framework.errors import DataError
from headrace.transformers.base import ByteStream, Position, Rejected, ValueBatch

__all__ = ["GAP", "lines_and_gaps", "tolerated", "with_last"]

_READ_BYTES = 256 * 1024

GAP: list[bytes] = []
"""In the place of lines: one line that is too long to be held."""


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


def lines_and_gaps(stream: ByteStream, limit: int) -> Iterator[tuple[list[bytes], int]]:
    """Whole lines without their ends, and how many bytes they are with them; a line of more than `limit` is a `GAP`.

    Of a gap nothing is held, however long it is; 0 is no limit.
    """
    pieces: list[bytes] = []
    held = dropped = 0
    while chunk := stream.read(_READ_BYTES):
        pieces.append(chunk)
        held += len(chunk)
        end = chunk.find(b"\n")
        if end < 0:
            if dropped or (limit and held > limit):
                dropped, pieces, held = dropped + held, [], 0
            continue
        data = b"".join(pieces)
        if dropped:
            yield GAP, dropped + end + 1
            data, dropped = data[end + 1 :], 0
        lines = data.split(b"\n")
        rest = lines.pop()
        pieces, held = ([rest], len(rest)) if rest else ([], 0)
        yield from _cut(lines, limit)
    if dropped:
        yield GAP, dropped + held
    elif pieces:
        last = b"".join(pieces)
        yield (GAP if limit and held > limit else [last]), held


def _cut(lines: list[bytes], limit: int) -> Iterator[tuple[list[bytes], int]]:
    """The lines, up to each one that is too long, and that one."""
    first = 0
    for index, line in enumerate(lines) if limit and max(map(len, lines), default=0) > limit else ():
        if len(line) > limit:
            yield from _sized(lines[first:index])
            yield GAP, len(line) + 1
            first = index + 1
    yield from _sized(lines[first:])


def _sized(lines: list[bytes]) -> Iterator[tuple[list[bytes], int]]:
    if lines:
        yield lines, sum(map(len, lines)) + len(lines)
