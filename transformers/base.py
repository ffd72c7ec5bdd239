"""What a transformer promises."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import attrs

from headrace.framework.options import Options
from headrace.framework.schema import Schema, SchemaAndValue

__all__ = ["ByteStream", "Position", "Transformer", "ValueBatch"]


class ByteStream(Protocol):
    """A stream of bytes, read once, from front to back.

    Whatever else than a clean end happens to it, it raises: nobody takes an error for an end.
    """

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and at least one unless the stream has ended cleanly."""
        ...


@attrs.frozen(kw_only=True)
class Position:
    """Where reading goes on in an object: what lies before that place.

    `records` counts as Kafka Connect's S3 source counts (non-blank lines, rows, chunks). `byte` counts uncompressed
    bytes, `line` lines of any kind, blank ones included; both are 0 where a format does not know them.

    `inside` is what else a format must know about the place at `byte`, in a number of its own; it is greater than 0
    where the format has it. A format that needs it and finds 0 counts `records` from the object's beginning.
    """

    records: int = 0
    byte: int = 0
    line: int = 0
    inside: int = 0


@attrs.frozen(kw_only=True)
class ValueBatch:
    """Values that follow each other in an object; `position_at(n)` is where reading goes on after the first n.

    It is exact for every n from 0 to the number of values, and worked out when it is asked for. From there come the
    other values, in the same places. Right behind a value (n greater than 0) it does not depend on how the stream was
    read or where batches were cut.
    """

    schema: Schema | None
    values: Sequence[Any]
    position_at: Callable[[int], Position]

    @property
    def end(self) -> Position:
        """Where reading goes on after all of them."""
        return self.position_at(len(self.values))


class Transformer(ABC):
    """Turns the bytes of an object into values, each with the position after it.

    Made and configured once per task and asked for many objects, one after the other, on the task's thread. Memory
    is bounded by the largest record, not by the object. An object ends at a clean end of its stream and nowhere
    else: what cannot be decoded is a `DataError` that names the position, after everything before it was given out.
    An error of the stream passes through as it is, after the values that were complete.
    """

    config_class: ClassVar[type[Options]] = Options
    """The keys of the format's own, for documentation; `configure` reads them."""

    resumes_at_byte: ClassVar[bool] = False
    """Whether it goes on from `Position.byte` alone. If so, the stream that it is given starts there.

    A format that needs something of the object's beginning as well (a header, a schema) leaves this False. It is
    given the stream from the object's first byte, and moves on by itself with `go_to` (see `seeking`).
    """

    grows: ClassVar[bool] = False
    """Whether an object that was added to at its end can be read on where it had ended: a format of lines can."""

    handles_compression: ClassVar[bool] = False
    """Whether the format compresses by itself, so that nobody else should decompress."""

    def configure(self, props: Mapping[str, str]) -> None:
        """Read the configuration; called once, first. `ConfigError` with all faults."""

    @abstractmethod
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        """The values after `start`, in batches of whatever size suits the format (about a megabyte at the most).

        With `resumes_at_byte`, and `start.byte` greater than 0, the stream's first byte is the one at `start.byte`.
        Otherwise it is the object's first, and `start.records` records are to be skipped, in whatever way is
        quickest: progress that comes from Kafka Connect knows no bytes. Positions count from the object's beginning
        in either case.
        """

    def transform(self, stream: ByteStream, start: Position) -> Iterator[tuple[SchemaAndValue, Position]]:
        """The same one by one: each value with the position after it."""
        for batch in self.batches(stream, start):
            for index, value in enumerate(batch.values):
                yield SchemaAndValue(batch.schema, value), batch.position_at(index + 1)

    def key(self, name: str) -> bytes | None:
        """The record key for the records of an object: its name, unless a format knows better."""
        return name.encode()
