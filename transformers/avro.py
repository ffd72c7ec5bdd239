"""`avro`: object container files, block by block."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Fault, Where
from headrace.framework.parts import Extent
from headrace.framework.stage import Stage
from headrace.transformers.again import Opener, moved
from headrace.transformers.avro_batches import MOST_BYTES, MOST_VALUES, HeldValues, place
from headrace.transformers.avro_container import SYNC_BYTES, Block, BrokenBlock, Container, Header
from headrace.transformers.avro_doubt import has_long_booleans, is_doubtful
from headrace.transformers.avro_ints import Ints
from headrace.transformers.avro_numbers import Misread, Numbers
from headrace.transformers.avro_schema import AvroSchema
from headrace.transformers.avro_strict import StrictSchema
from headrace.transformers.base import ByteStream, Position, Rejected, Transformer, ValueBatch
from headrace.transformers.compression import TOO_MUCH_FROM
from headrace.transformers.json_check import check
from headrace.transformers.options import FormatOptions
from headrace.transformers.parts import named_within
from headrace.transformers.seeking import Cursor, SeekableStream

__all__ = ["AvroTransformer"]

_HELD_BYTES = 4 * 1024 * 1024
"""Blocks are decoded at one go if neither their bytes nor their values are more than that."""

_VALUE_BYTES = 200
"""What a value takes at the least, for it is an object with a few fields."""

_Decoded = tuple[list[Any], Exception | None]
"""Values, and what is wrong behind them."""

_Piece = tuple[int, list[Any], Exception | None]
"""How many values of the block come before, values, and what is wrong behind them."""


@attrs.define
class AvroTransformer(Transformer):
    """The records of Avro object container files, with the schema that these hold, in whatever codec.

    Values are objects by field name. Dates and times are the numbers that they are in the file, decimals are
    `decimal.Decimal`, and a value of a union of several types is an object whose one field is named by its type, as in
    Kafka Connect. Memory is that of a block, of which no more than `max.record.bytes` are read.

    Reading goes on in the block that holds the next record, after a look at the header. A part begins behind the first
    mark that begins in it. Where the mark is like what data hold (zeros, for one), nobody could find a block by it, and
    the first part has them all.

    With `errors.tolerance=all` a rejected piece is a block, or what is left of it from a record on that cannot be
    decoded: nobody knows where that one ends. Where a block itself is damaged, reading goes on behind the next mark.
    """

    config_class = FormatOptions

    options: FormatOptions = attrs.field(factory=FormatOptions, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self.options = FormatOptions.of(props)
        try:
            import fastavro  # noqa: F401, PLC0415 - an extra brings it
        except ImportError as error:
            message = "avro needs fastavro, which is not installed: pip install 'headrace[avro]'"
            raise ConfigError([Fault("input.format", "avro", message)]) from error

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        cursor = Cursor(stream)
        container = self._container(cursor)
        header = container.header()
        if header is None:
            return
        decoder = _Decoder(header)
        skip = start.records
        if start.byte and start.inside and cursor.seekable:
            skip = start.inside - 1
            container.go_to(start.byte, start.records - skip)
        yield from self._decoded(decoder, container.blocks(header, skip), start.records)

    @override
    def again(self, open_content: Opener, piece: Rejected, *, same: bool, same_size: bool) -> Iterator[ValueBatch]:
        if not same and not _is_block(open_content, piece.before.byte):
            raise moved("no block begins where the piece was")
        if not same and piece.end is not None and not _is_block(open_content, piece.end):
            piece = attrs.evolve(piece, end=None)
        yield from super().again(open_content, piece, same=True, same_size=same_size)

    @classmethod
    @override
    def can_split(cls, props: Mapping[str, str]) -> bool:
        return True

    @override
    def part(self, stream: SeekableStream, extent: Extent, start: Position) -> Iterator[ValueBatch]:
        cursor = Cursor(stream)
        container = self._container(cursor)
        header = container.header()
        if header is None:
            return
        if not header.is_marked_well:
            extent = Extent(extent.start, stream.size) if extent.start == 0 else Extent(extent.start, extent.start)
        decoder, skip = _Decoder(header), max(0, start.inside - 1)
        if start.byte:
            container.go_to(start.byte, start.records - skip, wanted=extent.wanted(start.byte))
        elif extent.start:
            container.go_to(extent.start, 0, wanted=extent.wanted(extent.start))
            if not container.go_behind_mark(header.sync, extent.end):
                return
        with named_within(extent):
            yield from self._decoded(decoder, container.blocks(header, skip, extent.end), start.records)

    def _container(self, cursor: Cursor) -> Container:
        options = self.options
        return Container(cursor, options.max_record_bytes, options.max_decompression_ratio, tolerant=options.tolerant)

    def _decoded(self, decoder: "_Decoder", blocks: Iterator[Block | BrokenBlock], done: int) -> Iterator[ValueBatch]:
        """The values behind the first `done`, those of small blocks together."""
        held = HeldValues(decoder.schema.schema)
        try:
            for block in blocks:
                if isinstance(block, BrokenBlock):
                    yield from held.give_out()
                    yield _broken(block)
                else:
                    yield from self._held(decoder.pieces(block, max(0, done - block.done)), block, held)
        except Exception:
            yield from held.give_out()
            raise
        yield from held.give_out()

    def _held(self, pieces: Iterator[_Piece], block: Block, held: HeldValues) -> Iterator[ValueBatch]:
        """What has to be given out so that the values of a block can be held."""
        for first, values, bad in pieces:
            if not held.has_room(block, values):
                yield from held.give_out()
            if values:
                held.add(block, first, values)
            if bad is not None:
                yield from held.give_out()
                yield _refused(block, first + len(values), bad, tolerant=self.options.tolerant)


def _is_block(open_content: Opener, byte: int) -> bool:
    """Whether a block begins at a byte of an object, and so behind a mark; all of it does at the first."""
    if not byte:
        return True
    header = Container(Cursor(open_content())).header()
    stream = open_content()
    if isinstance(stream, SeekableStream) and stream.size < byte:
        return False
    cursor = Cursor(stream)
    cursor.go_to(byte - SYNC_BYTES, wanted=SYNC_BYTES)
    return header is not None and cursor.exactly(SYNC_BYTES) == header.sync


class _Decoder:
    """What makes values of blocks."""

    def __init__(self, header: Header) -> None:
        try:
            check(header.schema.strip())
            self.schema = AvroSchema.of(json.loads(header.schema))
            self._strict = StrictSchema.of(self.schema.wire)
            self._numbers = Numbers.of(self.schema.wire)
            self._ints = Ints.of(self.schema.wire)
        except Exception as error:  # a library's own, and whatever a strange schema leads to
            reason = " ".join(str(error).split()) or type(error).__name__
            message = f"the schema cannot be read ({reason}): mend the writer, or read the object as bytes"
            raise DataError(message, Where(stage=Stage.TRANSFORM, position="record 1")) from error
        self._most_without_bytes = TOO_MUCH_FROM if self.schema.is_empty else MOST_VALUES
        self._read = _reader(recursive=self.schema.is_recursive)

    def pieces(self, block: Block, first: int) -> Iterator[_Piece]:
        """The values of a block behind its `first`."""
        fix, done = self.schema.fix, 0
        for values, bad in self._decoded(block):
            for at in range(max(0, first - done), len(values), MOST_VALUES):
                part = values[at : at + MOST_VALUES]
                yield done + at, part if fix is None else list(map(fix, part)), None
            done += len(values)
            if bad is not None:
                yield done, [], bad

    def _decoded(self, block: Block) -> Iterator[_Decoded]:
        """The records of a block, up to the first that cannot be decoded, or would be taken for another one."""
        if block.count > len(block.data) and block.count > self._most_without_bytes:
            yield [], ValueError(f"a block of {len(block.data)} bytes says that it has {block.count} records")
            return
        misread = self._misread(block)
        if misread is None:
            yield from self._sound(block)
            return
        for values, bad in self._sound(attrs.evolve(block, count=misread.count, data=block.data[: misread.size])):
            yield values, bad
            if bad is not None:
                return
        yield [], misread.error

    def _misread(self, block: Block) -> Misread | None:
        data = block.data
        doubtful = is_doubtful(data) or (self._strict.has_booleans and has_long_booleans(data))
        return self._numbers.first_misread(data, block.count) if doubtful else None

    def _sound(self, block: Block) -> Iterator[_Decoded]:
        """The records of a block none of which is misread, up to the first that cannot be decoded.

        A block is one array to Avro: all of it is decoded in one call, unless the values would be too many to hold.
        """
        is_small = max(block.count * _VALUE_BYTES, len(block.data)) <= _HELD_BYTES
        values = self._at_once(block) if is_small and not (self.schema.is_empty and block.data) else None
        if values is None:
            yield from self._piece_by_piece(block)
        else:
            yield values, None

    def _at_once(self, block: Block) -> list[Any] | None:
        """The records of a block; None where something is wrong with them, of which the slow way tells what."""
        source = io.BytesIO(_number(block.count) + block.data + b"\0")
        try:
            values: list[Any] = self._read(source, self._strict.array)
        except Exception:  # noqa: BLE001 - a library's own
            return None
        is_sound = len(values) == block.count and not source.read(1) and self._ints.are_within(values)
        return values if is_sound else None

    def _piece_by_piece(self, block: Block) -> Iterator[_Decoded]:
        source, left = io.BytesIO(block.data), block.count
        most = max(1, min(MOST_VALUES, MOST_BYTES * block.count // max(1, len(block.data))))
        while left:
            values, bad = self._some(source, min(most, left))
            if bad is not None:
                yield values, bad
                return
            left -= len(values)
            behind = 0 if left else len(source.read())
            if behind:
                # Whoever has the last record goes on behind the block, and would never see this.
                yield values[:-1], ValueError(f"the block has {behind} bytes behind its last record")
            else:
                yield values, None

    def _some(self, source: io.BytesIO, count: int) -> _Decoded:
        """So many records, or those before the first that cannot be decoded."""
        values: list[Any] = []
        bad: Exception | None = None
        try:
            for _ in range(count):
                values.append(self._read(source, self._strict.item))  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - a library's own: the caller names the record
            bad = error
        beyond = self._ints.first_beyond(values)
        return (values, bad) if beyond is None else (values[:beyond], ValueError("an int has more than 32 bits"))


def _refused(block: Block, done: int, bad: Exception, *, tolerant: bool) -> ValueBatch:
    """What is behind the first `done` records of a block, as a piece; unless `tolerant`, it is raised."""
    reason = " ".join(str(bad).split()) or type(bad).__name__
    where = Where(stage=Stage.TRANSFORM, position=f"record {block.done + done + 1}")
    error = DataError(f"not of the object's schema ({reason}): put a whole copy in its place", where)
    if not tolerant:
        raise error from bad
    error.__cause__ = bad
    return _rest_of(block, done, error)


def _broken(block: BrokenBlock) -> ValueBatch:
    piece = Rejected(
        error=block.error,
        number=block.done + 1,
        before=Position(records=block.done, byte=block.start, inside=1),
        start=block.start,
        end=block.end,
        count=block.count,
    )
    return piece.batch(Position(records=block.done + block.counted, byte=block.end, inside=1))


def _rest_of(block: Block, count: int, error: DataError) -> ValueBatch:
    """What is behind the first `count` records of a block, as a piece."""
    piece = Rejected(
        error=error,
        number=block.done + count + 1,
        before=Position(records=block.done + count, byte=block.start, inside=count + 1),
        start=block.start,
        end=block.end,
        count=max(1, block.count - count),
    )
    return piece.batch(place(block, block.count))


def _number(value: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    left = value << 1
    found = bytearray()
    while left > 0x7F:  # noqa: PLR2004 - seven bits a byte
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _reader(*, recursive: bool) -> Callable[[io.BytesIO, Any], Any]:
    """What decodes one value. The quick one would use up the stack on values that are nested without end."""
    if recursive:
        from fastavro import _read_py  # noqa: PLC0415 - as below

        return _read_py.schemaless_reader
    from fastavro import schemaless_reader  # noqa: PLC0415 - an extra brings it

    return schemaless_reader
