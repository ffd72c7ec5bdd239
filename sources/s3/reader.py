"""Reads the objects of one task, one after the other."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.config import Boundary, DataLoss
from headrace.framework.errors import (
    ObjectArchivedError,
    ObjectChangedError,
    ObjectVanishedError,
    PipelineError,
    RetriableError,
    SourceError,
    Where,
)
from headrace.framework.naming import NameParts, NameTemplate
from headrace.framework.parts import Part
from headrace.framework.record import Origin, RecordBatch
from headrace.framework.splits import SourceReader, SourceReaderContext
from headrace.framework.stage import Stage
from headrace.framework.task import Yielded
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.s3.client import ClientPlace, S3Client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import OVERWRITTEN, Action, OverwritePolicy, S3OffsetEntry, object_key, what_to_do
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.parts import part_entry
from headrace.sources.s3.seekable import SeekableObject
from headrace.sources.s3.splits import S3Split
from headrace.sources.s3.streams import Streams
from headrace.transformers.base import Position, Transformer, ValueBatch
from headrace.transformers.bytes import CHUNK_BYTES
from headrace.transformers.compression import AUTO, NONE, leave_out, open_decompressed
from headrace.transformers.seeking import SeekableStream
from headrace.transformers.tolerating import tolerated, with_last

__all__ = ["S3Reader"]

log = logging.getLogger(__name__)

_MARK_BYTES = 16
_HEAD_BYTES = 64 * 1024


@attrs.define
class S3Reader(SourceReader[S3Split]):
    """One object at a time, each in one streaming GET from where its entry says that reading goes on.

    With the object boundary, an object that goes or changes after some of its records were given out is no object
    that may be left out or begun again within the same transaction: that is a `RetriableError`, which takes back what
    was given out, and what is left of the object is decided on then.
    """

    context: SourceReaderContext
    config: S3Config
    _splits: deque[S3Split] = attrs.field(factory=deque, init=False)
    _current: Iterator[Yielded] | None = attrs.field(default=None, init=False)
    _stream: SeekableObject | None = attrs.field(default=None, init=False)
    _client: S3Client = attrs.field(init=False)
    _clients: ClientPlace = attrs.field(init=False)
    _is_sound: bool = attrs.field(default=True, init=False)
    _transformer: Transformer = attrs.field(init=False)
    _template: NameTemplate = attrs.field(init=False)
    _streams: Streams = attrs.field(init=False)
    _is_begun: bool = attrs.field(default=False, init=False)

    @override
    def start(self) -> None:
        self._template = NameTemplate.parse(self.config.file_name_template)
        self._transformer = registry.find("transformers", self.config.input_format)()
        self._transformer.configure({**self.config.props, CHUNK_BYTES: str(self.config.transformer_max_buffer_size)})
        task = self.context.task
        self._clients = ClientPlace(self.config.connection(), task.connector, task.task_id)
        self._client = self._clients.take()
        self._streams = Streams(self._client, self.config, task, in_order=self._transformer.resumes_at_byte)

    @override
    def add_splits(self, splits: Sequence[S3Split]) -> None:
        self.context.task.offsets.populate_offset_manager(
            [OffsetManagerKey(partition) for split in splits for partition in split.source_partitions]
        )
        self._splits.extend(splits)

    @override
    def snapshot(self) -> Sequence[S3Split]:
        return tuple(self._splits)

    @override
    def poll(self) -> Sequence[Yielded]:
        self._is_sound = False
        items = self._next()
        self._is_sound = True
        return items

    def _next(self) -> Sequence[Yielded]:
        while self._splits:
            if self._current is None:
                self._streams.fetch_ahead(self._splits)
                split = self._splits[0]
                self._current = self._read(split.object) if split.part is None else self._read_part(split, split.part)
            for item in self._current:
                if not self._is_begun:
                    self._streams.ask_ahead(self._splits)
                self._is_begun = True
                return (item,)
            self._current, self._is_begun = None, False
            self.context.split_finished(self._splits.popleft().split_id)
        return ()

    @override
    def close(self) -> None:
        self._close_stream()
        self._streams.close()
        self._clients.give_back(self._client, is_sound=self._is_sound)

    def _read(self, found: S3Object) -> Iterator[Yielded]:
        """What is left of an object; the last item says that there is no more."""
        try:
            yield from self._read_version(found)
        except ObjectChangedError as error:
            self._refuse_half(found, error)
            yield from self._read_changed(found, error)
        except ObjectVanishedError as error:
            self._refuse_half(found, error)
            self._lose(found, error)
        except ObjectArchivedError as error:
            self._refuse_half(found, error)
            self._leave_out(str(error.located(self._where(found))))
        finally:
            self._close_stream()

    def _read_part(self, split: S3Split, part: Part) -> Iterator[Yielded]:
        """What is left of a part. Where the object has changed, all of it is begun anew: that is the enumerator's."""
        found = split.object
        try:
            yield from self._records_of_part(split, part)
        except ObjectChangedError as error:
            self._tell_changed(found, error)
        except ObjectVanishedError as error:
            self._lose(found, error)
        except ObjectArchivedError as error:
            self._leave_out(str(error.located(self._where(found))))
        finally:
            self._close_stream()

    def _records_of_part(self, split: S3Split, part: Part) -> Iterator[Yielded]:
        found = split.object
        whole = self._stored(OffsetManagerKey(S3Split(found).source_partition))
        if whole is not None and whole.is_complete and whole.is_of(found):
            return  # the parts are joined since the plan was made
        key = OffsetManagerKey(split.source_partition)
        stored = self.context.task.offsets.get_entry(key, lambda known: part_entry(found, part, known))
        entry = stored or S3OffsetEntry.for_part(found, part)
        if not entry.is_ended:
            yield from self._sent(
                found,
                entry,
                lambda start: self._part_batches(split, start),
                S3OffsetEntry.ended,
                part_from=split.extent.start,
            )

    def _part_batches(self, split: S3Split, start: Position) -> Iterator[ValueBatch]:
        """The records of a part; the first one has all of an object whose first bytes show that it is compressed."""
        if not split.object.size:
            return
        extent, stream = split.extent, self._open(split.object)
        kind = NONE if self._transformer.handles_compression else self.config.file_compression_type
        is_first = not (extent.start or start.byte)
        looked_at = _MARK_BYTES if self._transformer.resumes_at_byte else _HEAD_BYTES
        stream.go_to(0, wanted=extent.wanted(0) if is_first else looked_at)
        opened = open_decompressed(stream, split.object.key, kind, max_ratio=self.config.max_decompression_ratio)
        if opened.kind == NONE and isinstance(opened, SeekableStream):
            yield from self._transformer.part(opened, extent, start)
        elif not extent.start:
            stream.read_to_the_end()
            if self._transformer.resumes_at_byte:
                leave_out(opened, start.byte)
            yield from self._transformer.batches(opened, start)

    def _tell_changed(self, found: S3Object, error: ObjectChangedError) -> None:
        if self.config.overwrite_policy is OverwritePolicy.FAIL:
            raise error.located(self._where(found))
        self._close_stream()
        now = find_object(self._client, found.bucket, found.key, self.config.attempts(self.context.task.stopping))
        if now is None:
            self._lose(found, ObjectVanishedError("the object is gone", self._where(found)))
        elif now.etag == found.etag:
            raise error
        elif self.config.overwrite_policy is OverwritePolicy.IGNORE:
            self._leave_out(f"{found.uri} is left out: {OVERWRITTEN}")
        else:
            log.warning("%s was overwritten: it is read again from its first record", found.uri)
            self.context.send_source_event(attrs.asdict(now))

    def _stored(self, key: OffsetManagerKey) -> S3OffsetEntry | None:
        return self.context.task.offsets.get_entry(key, lambda known: S3OffsetEntry.stored(key, known))

    def _read_version(self, found: S3Object) -> Iterator[Yielded]:
        stored = self._stored(object_key(found.bucket, found.key))
        decision = what_to_do(stored, found, self.config.overwrite_policy)
        match decision.action:
            case Action.FINISHED:
                return
            case Action.IGNORE:
                self._leave_out(f"{found.uri} is left out: {OVERWRITTEN}")
                return
            case Action.FAIL:
                raise ObjectChangedError(
                    "the object was overwritten after its first record was read, and s3.overwrite.policy is fail",
                    self._where(found),
                )
            case Action.REREAD:
                log.warning("%s was overwritten: it is read again from its first record", found.uri)
        entry = S3OffsetEntry.for_object(found)
        if stored is not None and decision.action is Action.READ:
            entry = entry.from_properties({**stored.get_properties(), **entry.get_properties()}).advanced(
                decision.position
            )
        yield from self._sent(found, entry, lambda start: self._batches(found, start), S3OffsetEntry.finished)

    def _sent(
        self,
        found: S3Object,
        entry: S3OffsetEntry,
        batches: Callable[[Position], Iterator[ValueBatch]],
        at_end: Callable[[S3OffsetEntry], S3OffsetEntry],
        part_from: int = 0,
    ) -> Iterator[Yielded]:
        parts = self._template.match(found.key) or NameParts()
        start, tolerant = entry.position(), self.config.is_tolerant
        end = entry.advanced(start)
        try:
            for batch, ends in with_last(tolerated(lambda: batches(start), start, tolerant=tolerant), found.size):
                end = entry.advanced(batch.end)
                yield self._as_records(found, at_end(end) if ends else end, parts, batch, part_from)
                if ends:
                    return
        except PipelineError as error:
            raise error.located(self._where(found)) from error.__cause__
        yield RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=at_end(end).get_properties(),
            topic=self._topic(found, parts),
            values=(),
        )

    def _batches(self, found: S3Object, start: Position) -> Iterator[ValueBatch]:
        transformer = self._transformer
        stream = self._open(found)
        kind = NONE if transformer.handles_compression else self.config.file_compression_type
        if start.byte and kind in {AUTO, NONE}:  # what comes first is only needed to find one's way
            stream.go_to(0, wanted=_MARK_BYTES if transformer.resumes_at_byte else _HEAD_BYTES)
        opened = open_decompressed(stream, found.key, kind, max_ratio=self.config.max_decompression_ratio)
        if opened.kind != NONE:
            stream.read_to_the_end()
        if transformer.resumes_at_byte:
            leave_out(opened, start.byte)
        return transformer.batches(opened, start)

    def _open(self, found: S3Object) -> SeekableObject:
        self._stream = self._streams.open(found)
        return self._stream

    def _as_records(
        self, found: S3Object, behind: S3OffsetEntry, parts: NameParts, batch: ValueBatch, part_from: int
    ) -> RecordBatch:
        """The records of a batch, `behind` which the entry stands."""
        if batch.rejected is not None:
            batch.rejected.error.located(self._where(found))
        return RecordBatch(
            source_partition=behind.get_manager_key().mapping,
            source_offset=behind.get_properties(),
            topic=self._topic(found, parts),
            values=batch.values,
            schema=batch.schema,
            key=self._transformer.key(found.key),
            partition=parts.partition,
            offset_at=lambda count: behind.properties_at(batch.position_at(count)),
            rejected=batch.rejected,
            origin=Origin.of(found.uri, batch, part_from=part_from),
        )

    def _topic(self, found: S3Object, parts: NameParts) -> str:
        topic = self.config.topic or parts.topic
        if topic is None:
            raise PipelineError("no topic: set `topic`, or put {{topic}} into file.name.template", self._where(found))
        return topic

    def _read_changed(self, found: S3Object, error: ObjectChangedError) -> Iterator[Yielded]:
        """The object was overwritten while it was read, or since it was listed."""
        if self.config.overwrite_policy is OverwritePolicy.FAIL:
            raise error
        self._close_stream()
        now = find_object(self._client, found.bucket, found.key, self.config.attempts(self.context.task.stopping))
        if now is None:
            self._lose(found, ObjectVanishedError("the object is gone", self._where(found)))
        elif now.etag == found.etag:
            raise error
        else:
            yield from self._read(now)

    def _refuse_half(self, found: S3Object, error: SourceError) -> None:
        """Where an object becomes visible as a whole or not at all, take back what was given out of this one."""
        if self._is_begun and self.config.transaction_boundary is Boundary.OBJECT:
            raise RetriableError(
                f"the object went or changed while it was read ({error.message}): what was read of it is taken back, "
                "and it is looked at again",
                self._where(found),
            ) from error

    def _lose(self, found: S3Object, error: ObjectVanishedError) -> None:
        if self.config.data_loss is DataLoss.FAIL:
            raise error.located(self._where(found))
        self._leave_out(f"{found.uri} was deleted before it was read to its end")

    def _leave_out(self, why: str) -> None:
        log.warning("%s: %s", self.config.name, why)
        self.context.task.metrics.leave_out(why)

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _where(self, found: S3Object) -> Where:
        return Where(stage=Stage.READ, object=found.uri)
