"""Records of a part of a file: the stages read and transform, for whatever way of reading."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import attrs

from headrace.framework.errors import PipelineError, Where
from headrace.framework.naming import NameParts, NameTemplate
from headrace.framework.parts import Extent
from headrace.framework.record import Origin, RecordBatch
from headrace.framework.stage import Stage
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import FileOffsetEntry
from headrace.sources.files.stream import FileStream
from headrace.transformers.base import Position, Transformer, ValueBatch
from headrace.transformers.compression import NONE, leave_out, open_decompressed
from headrace.transformers.tolerating import tolerated, with_last

__all__ = ["Opener", "Portions"]

Opener = Callable[[], BinaryIO]
"""Opens the file that is read, at its first byte."""

Tail = Callable[[int], str]

AtEnd = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes of the offset behind the last record the one that says that it was the last."""


@attrs.frozen(kw_only=True)
class Portions:
    """Makes the records of files; one per reader."""

    config: FilesConfig
    transformer: Transformer
    template: NameTemplate
    stopping: threading.Event

    def records(
        self,
        entry: FileOffsetEntry,
        opener: Opener,
        size: int,
        *,
        end: int | None = None,
        tail: Tail | None = None,
        extent: Extent | None = None,
        at_end: AtEnd | None = None,
    ) -> Iterator[RecordBatch]:
        """The records of a file of `size` bytes from where `entry` says, to byte `end` or the file's own end.

        With an `extent`, those that begin within it.

        `tail` gives the mark of what stands before a byte of the file; it is stored where the file is not compressed.
        The last batch has no records: it says that there are no more, and stands where they ended. Its offset goes
        through `at_end`. With that, where a batch with records is known to be the last, it is that one's instead.
        """
        start, path = entry.position(), entry.path
        parts = self.template.match(path) or NameParts()
        topic, part_from = self._topic(path, parts), 0 if extent is None else extent.start
        with FileStream(path=path, opened=opener(), stopping=self.stopping, size=size, end=end) as stream:
            properties = _Properties(entry, tail)
            place = start

            def batches() -> Iterator[ValueBatch]:
                found, is_plain = self._batches(stream, start) if extent is None else self._part(stream, extent, start)
                if not is_plain:
                    properties.tail = None
                return found

            for batch, ends in with_last(tolerated(batches, start, tolerant=self.config.is_tolerant), size):
                place = batch.end
                offset = properties.at(place)
                # Who has committed the last has committed the end: nobody passes over what is left once more.
                if ends and at_end is not None:
                    yield self._as_records(batch, parts, topic, properties, at_end(offset), part_from=part_from)
                    return
                yield self._as_records(batch, parts, topic, properties, offset, part_from=part_from)
            offset = properties.at(place)
            yield RecordBatch(
                source_partition=entry.get_manager_key().mapping,
                source_offset=offset if at_end is None else at_end(offset),
                topic=topic,
                values=(),
            )

    def _batches(self, stream: FileStream, start: Position) -> tuple[Iterator[ValueBatch], bool]:
        """The batches, and whether a byte of the content is one of the file."""
        transformer = self.transformer
        skip = start.byte if transformer.resumes_at_byte else 0
        if not transformer.handles_compression and self.config.file_compression_type != NONE:
            opened = open_decompressed(
                stream,
                stream.path,
                self.config.file_compression_type,
                max_ratio=self.config.max_decompression_ratio,
            )
            if opened.kind != NONE or not skip:
                leave_out(opened, skip)
                return transformer.batches(opened, start), opened.kind == NONE
        stream.go_to(skip)
        return transformer.batches(stream, start), True

    def _part(self, stream: FileStream, extent: Extent, start: Position) -> tuple[Iterator[ValueBatch], bool]:
        """The same of a part; the first one has all of a file that turns out to be compressed."""
        transformer = self.transformer
        kind = NONE if transformer.handles_compression else self.config.file_compression_type
        opened = open_decompressed(stream, stream.path, kind, max_ratio=self.config.max_decompression_ratio)
        if opened.kind == NONE:
            stream.go_to(0)
            return transformer.part(stream, extent, start), True
        if extent.start:
            return iter(()), False
        if transformer.resumes_at_byte:
            leave_out(opened, start.byte)
        return transformer.batches(opened, start), False

    def _as_records(
        self,
        batch: ValueBatch,
        parts: NameParts,
        topic: str,
        properties: "_Properties",
        offset: dict[str, Any],
        *,
        part_from: int,
    ) -> RecordBatch:
        entry = properties.entry
        if batch.rejected is not None:
            batch.rejected.error.located(Where(stage=Stage.READ, object=entry.path))
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=offset,
            topic=topic,
            values=batch.values,
            schema=batch.schema,
            key=self.transformer.key(entry.path),
            partition=parts.partition,
            offset_at=lambda count: properties.at(batch.position_at(count)),
            rejected=batch.rejected,
            origin=Origin.of(entry.path, batch, part_from=part_from),
        )

    def _topic(self, path: str, parts: NameParts) -> str:
        topic = self.config.topic or parts.topic
        if topic is None:
            where = Where(stage=Stage.READ, object=path)
            raise PipelineError("no topic: set `topic`, or put {{topic}} into file.name.template", where)
        return topic


@attrs.define
class _Properties:
    """What is stored of a place in a file; `tail` is None once it is known to be compressed."""

    entry: FileOffsetEntry
    tail: Tail | None

    def at(self, position: Position) -> dict[str, Any]:
        tail = self.tail(position.byte) if self.tail is not None and position.byte > 0 else None
        return self.entry.properties_at(position, tail=tail)
