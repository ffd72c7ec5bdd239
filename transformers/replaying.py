"""What a dead letter stands for, read again by the format that it was read by."""

from collections.abc import Iterator

import attrs

from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import DataError, PipelineError
from headrace.framework.naming import NameParts, NameTemplate
from headrace.framework.parts import PART, Extent, part_of
from headrace.framework.record import Origin, RecordBatch
from headrace.transformers.again import Opener, moved, taken
from headrace.transformers.base import Position, Rejected, Transformer, ValueBatch
from headrace.transformers.bytes import CHUNK_BYTES
from headrace.transformers.parts import named_within
from headrace.transformers.seeking import SeekableStream

__all__ = ["LetterReader"]

SIZE = "size"
_HEAD_BYTES = 64 * 1024


@attrs.define
class LetterReader:
    """Makes records of letters, for the sources of objects: with the format, and the names, of a configuration."""

    config: SourceCommonConfig
    transformer: Transformer = attrs.field(init=False)
    _template: NameTemplate = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Configure the format."""
        config = self.config
        self._template = NameTemplate.parse(config.file_name_template)
        self.transformer = registry.find("transformers", config.input_format)()
        self.transformer.configure({**config.props, CHUNK_BYTES: str(config.transformer_max_buffer_size)})

    def records(
        self, letter: DeadLetter, open_content: Opener, *, name: str, uri: str, size: int, same: bool
    ) -> Iterator[RecordBatch]:
        """The records of a letter's piece, out of an object of `size` bytes; `same` is the one that it was read from.

        `name` is the object's for the template and the key, `uri` the one for people.
        """
        parts = self._template.match(name) or NameParts()
        topic = self.config.topic or parts.topic
        if topic is None:
            raise PipelineError("no topic: set `topic`, or put {{topic}} into file.name.template")
        for batch in _values_of(letter, self.transformer, open_content, size=size, same=same):
            yield RecordBatch(
                source_partition=letter.source_partition,
                source_offset=letter.source_offset,
                topic=topic,
                values=batch.values,
                schema=batch.schema,
                key=self.transformer.key(name),
                partition=parts.partition,
                origin=Origin.of(uri, batch),
            )


def _values_of(
    letter: DeadLetter, transformer: Transformer, open_content: Opener, *, size: int, same: bool
) -> Iterator[ValueBatch]:
    piece, part = _piece_of(letter), part_of(letter.source_partition, letter.source_offset)
    same_size = letter.source_offset.get(SIZE) == size
    if part is not None and (piece.is_the_rest or transformer.reads_from_the_end):
        if not (same or same_size):
            raise moved("its size is not the one with which it was cut into parts")
        return _of_part(transformer, open_content, piece, part.extent(size))
    values = transformer.again(open_content, piece, same=same, same_size=same_size)
    return values if part is None else _named(values, part.extent(letter.source_offset.get(SIZE) or size))


def _named(values: Iterator[ValueBatch], extent: Extent) -> Iterator[ValueBatch]:
    with named_within(extent):
        yield from values


def _of_part(transformer: Transformer, open_content: Opener, piece: Rejected, extent: Extent) -> Iterator[ValueBatch]:
    """What a part holds from a piece of it on; the first one has all of an object that is compressed."""
    content = open_content()
    if isinstance(content, SeekableStream):
        content.go_to(0, wanted=extent.wanted(0) if extent.start == 0 else _HEAD_BYTES)
        yield from taken(transformer.part(content, extent, piece.before), piece.count)
    else:
        yield from transformer.again(lambda: content, piece, same=True, same_size=True)


def _piece_of(letter: DeadLetter) -> Rejected:
    """A letter as the piece that a format can read again."""
    return Rejected(
        error=DataError(letter.error),
        number=letter.number or 0,
        before=letter.position or Position(),
        start=letter.start,
        end=letter.end,
        count=letter.count,
        is_of_part=PART in letter.source_partition,
    )
