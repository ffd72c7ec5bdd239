"""`bytes`: an object as one record, or cut into chunks."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Fault, OffsetsError, Where
from headrace.framework.schema import BYTES
from headrace.framework.stage import Stage
from headrace.transformers.base import ByteStream, Position, Transformer, ValueBatch
from headrace.transformers.options import FormatOptions

__all__ = ["CHUNK_BYTES", "BytesTransformer"]

CHUNK_BYTES = "transformer.max.buffer.size"

_NUMBER = re.compile(r"[0-9]{1,10}")
_LARGEST_CHUNK = 2**31 - 1
_READ_BYTES = 256 * 1024
_MOST_VALUES = 5000


@attrs.define
class BytesTransformer(Transformer):
    """Bytes as they are: the whole object (`transformer.max.buffer.size=0`, the default) or chunks of exactly so many.

    Only the last chunk may be shorter. Records are chunks, and are counted so. Without chunks an object is held in
    memory as a whole: it is one record. An object without bytes has no record.

    Progress that counts records and knows no byte, as Kafka Connect leaves it, is good for the chunk size that it was
    counted in. To take a whole object as one record behind such progress is refused: it might skip what nobody has
    read. An object of more than `max.record.bytes` is no record.
    """

    config_class = FormatOptions
    resumes_at_byte = True

    _chunk: int = attrs.field(default=0, init=False)
    _limit: int = attrs.field(default=0, init=False)

    @override
    def configure(self, props: Mapping[str, str]) -> None:
        self._limit = FormatOptions.of(props).max_record_bytes
        text = props.get(CHUNK_BYTES, "0").strip()
        if not (_NUMBER.fullmatch(text) and int(text) <= _LARGEST_CHUNK):
            message = f"must be 0, for the whole object, or a number of bytes from 1 to {_LARGEST_CHUNK}"
            raise ConfigError([Fault(CHUNK_BYTES, props.get(CHUNK_BYTES), message)])
        self._chunk = int(text)

    @override
    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        return self._chunks(stream, start) if self._chunk else _whole(stream, start, self._limit)

    def _chunks(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        if start.byte == 0:
            start = Position(records=start.records, byte=_skip(stream, start.records * self._chunk))
        for data in _multiples(stream, self._chunk):
            step = self._chunk * _MOST_VALUES
            for at in range(0, len(data), step):
                part = data[at : at + step]
                values = [part[first : first + self._chunk] for first in range(0, len(part), self._chunk)]
                batch = ValueBatch(
                    schema=BYTES, values=values, position_at=partial(_after, start, self._chunk, len(part))
                )
                yield batch
                start = batch.end


def _after(start: Position, chunk: int, size: int, count: int) -> Position:
    return Position(records=start.records + count, byte=start.byte + min(count * chunk, size))


def _whole(stream: ByteStream, start: Position, limit: int) -> Iterator[ValueBatch]:
    if start.byte:
        return
    if start.records:
        raise OffsetsError(
            f"the stored progress counts {start.records} chunks of this object, and {CHUNK_BYTES}=0 takes it as one "
            "record: set the size that they were counted in (Kafka Connect's default is 4096), or reset the offset",
            Where(stage=Stage.TRANSFORM, position=f"record {start.records + 1}"),
        )
    pieces: list[bytes] = []
    size = 0
    while data := stream.read(_READ_BYTES):
        pieces.append(data)
        size += len(data)
        if limit and size > limit:
            raise DataError(
                f"the object has more than {limit} bytes, and would be one record: set max.record.bytes higher, or "
                f"cut it into chunks with {CHUNK_BYTES}",
                Where(stage=Stage.TRANSFORM, position="record 1"),
            )
    if pieces:
        value = b"".join(pieces)
        yield ValueBatch(schema=BYTES, values=[value], position_at=partial(_after, start, len(value), len(value)))


def _multiples(stream: ByteStream, chunk: int) -> Iterator[bytes]:
    """The rest of a stream, each time a whole number of chunks but for the end."""
    held = bytearray()
    while data := stream.read(_READ_BYTES):
        held += data
        size = len(held) // chunk * chunk
        if size:
            yield bytes(memoryview(held)[:size])
            del held[:size]
    if held:
        yield bytes(held)


def _skip(stream: ByteStream, size: int) -> int:
    """Read that many bytes, or as many as there are, and forget them; how many there were."""
    left = size
    while left and (data := stream.read(min(left, _READ_BYTES))):
        left -= len(data)
    return size - left
