"""What a transformer promises."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import attrs

from headrace.framework.errors import DataError
from headrace.framework.options import Options
from headrace.framework.schema import Schema, SchemaAndValue

if TYPE_CHECKING:
    from headrace.framework.parts import Extent
    from headrace.transformers.seeking import SeekableStream

__all__ = ["ByteStream", "Place", "Position", "Rejected", "Transformer", "ValueBatch"]


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
class Place:
    """Where a value stands: the number of the line with which it begins, and its bytes in the content.

    Bytes are those of the block or the row group that it is in, where it has none of its own. None is what a format
    does not know.
    """

    line: int | None = None
    start: int | None = None
    end: int | None = None


@attrs.frozen(kw_only=True)
class Rejected:
    """A piece of an object that is no record, and behind which reading went on.

    `error` says why; `number` is that of its first record, or of its line, as the error's place has it. `before` is
    from where the piece can be read again. `start` and `end` are its bytes in the content, a line with its end, None
    where the format has no such place. `count` is how many records it stands for; None is for all to the object's
    end, or to that of its part. `raw` are its bytes by themselves; None where there are none, or too many to be held.

    Numbers of a piece that `is_of_part` are counted from the beginning of a part of an object, not of the object.
    """

    error: DataError
    number: int
    before: Position
    start: int | None = None
    end: int | None = None
    count: int | None = 1
    raw: bytes | None = None
    is_of_part: bool = False

    @property
    def is_the_rest(self) -> bool:
        """Whether nothing can come behind it: it goes to the object's end, or to that of its part."""
        return self.count is None and self.end is None

    def batch(self, after: Position) -> "ValueBatch":
        """A batch that has no values and moves on behind the piece."""
        return ValueBatch(schema=None, values=(), position_at=lambda _: after, rejected=self)


@attrs.frozen(kw_only=True)
class ValueBatch:
    """Values that follow each other in an object; `position_at(n)` is where reading goes on after the first n.

    It is exact for every n from 0 to the number of values, and worked out when it is asked for. From there come the
    other values, in the same places. Right behind a value (n greater than 0) it does not depend on how the stream was
    read or where batches were cut.

    With `rejected` there are no values: the batch says that a piece is none, and stands behind it.

    `place_of(n)` is where the value with the index n stands, for formats of which positions do not say it. A line that
    it names begins at its `start`, and reading can go on from there.

    In a part of an object `others` is how many records of the object come before those that its positions count; None
    is not known.
    """

    schema: Schema | None
    values: Sequence[Any]
    position_at: Callable[[int], Position]
    rejected: Rejected | None = None
    others: int | None = None
    place_of: Callable[[int], Place] | None = None

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

    With `errors.tolerance=all` a format that can tell where a bad record ends gives out a batch with that `rejected`
    piece, and goes on behind it. One that cannot, or does not care, raises its `DataError` all the same: what is left
    of the object is the piece then.
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

    reads_from_the_end: ClassVar[bool] = False
    """Whether nothing can be read of an object without its last bytes."""

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

    @classmethod
    def can_split(cls, props: Mapping[str, str]) -> bool:  # noqa: ARG003 - for formats of which it depends
        """Whether a large object can be read in parts, with such a configuration: then there is a `part`."""
        return False

    def part(self, stream: "SeekableStream", extent: "Extent", start: Position) -> Iterator[ValueBatch]:
        """The values that begin within `extent`, from where `start` says that reading goes on; see `parts`.

        The stream stands at the object's first byte, and is the content as it is: compressed objects have no parts. A
        `start` with nothing behind it is the beginning of the part. In positions `byte` counts from the object's
        beginning, `records` and `line` from the part's.
        """
        raise NotImplementedError(f"{type(self).__name__} reads whole objects")

    def transform(self, stream: ByteStream, start: Position) -> Iterator[tuple[SchemaAndValue, Position]]:
        """The same one by one: each value with the position after it."""
        for batch in self.batches(stream, start):
            for index, value in enumerate(batch.values):
                yield SchemaAndValue(batch.schema, value), batch.position_at(index + 1)

    def again(
        self,
        open_content: Callable[[], ByteStream],
        piece: Rejected,
        *,
        same: bool,
        same_size: bool,  # noqa: ARG002 - for those who know where a record begins
    ) -> Iterator[ValueBatch]:
        """The values of a piece that was rejected, read once more: for `headrace dlq replay`.

        `open_content` opens the object's content at its first byte, as often as it is called. If it is the `same`
        object the piece is where it was. Otherwise somebody has repaired it, and the piece is the records of the same
        numbers, or what is at its bytes where the format sees that records begin and end there in an object of the
        `same_size`; it is a `SourceError` where nobody can know. What still is no record is a `DataError`. Of an object
        in which one can go about, no more is fetched than it takes.
        """
        from headrace.transformers.again import taken, until  # noqa: PLC0415 - it is made of this module

        place = piece.before if same else Position(records=piece.before.records)
        stream = until(open_content(), piece.end if same and not self.reads_from_the_end else None)
        if self.resumes_at_byte and place.byte:
            from headrace.transformers.seeking import Cursor  # noqa: PLC0415 - as above

            Cursor(stream).go_to(place.byte)
        yield from taken(self.batches(stream, place), piece.count)

    def key(self, name: str) -> bytes | None:
        """The record key for the records of an object: its name, unless a format knows better."""
        return name.encode()
