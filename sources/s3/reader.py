"""Reads the objects of one task, one after the other."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence

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
from headrace.framework.record import RecordBatch
from headrace.framework.splits import SourceReader, SourceReaderContext
from headrace.framework.stage import Stage
from headrace.framework.task import Yielded
from headrace.sources.s3.client import ClientPlace, S3Client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import OVERWRITTEN, Action, OverwritePolicy, S3OffsetEntry, object_key, what_to_do
from headrace.sources.s3.interrupt import Interrupter
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.seekable import SeekableObject
from headrace.sources.s3.splits import S3Split
from headrace.sources.s3.stream import ObjectStream
from headrace.transformers.base import Position, Transformer, ValueBatch
from headrace.transformers.bytes import CHUNK_BYTES
from headrace.transformers.compression import AUTO, NONE, leave_out, open_decompressed

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
    _interrupter: Interrupter = attrs.field(init=False)
    _is_begun: bool = attrs.field(default=False, init=False)

    @override
    def start(self) -> None:
        self._interrupter = Interrupter(self.context.task.stopping)
        self._clients = ClientPlace(self.config.connection(), self.context.task.connector, self.context.task.task_id)
        self._client = self._clients.take()
        self._template = NameTemplate.parse(self.config.file_name_template)
        self._transformer = registry.find("transformers", self.config.input_format)()
        self._transformer.configure({**self.config.props, CHUNK_BYTES: str(self.config.transformer_max_buffer_size)})

    @override
    def add_splits(self, splits: Sequence[S3Split]) -> None:
        self.context.task.offsets.populate_offset_manager(
            [object_key(split.object.bucket, split.object.key) for split in splits]
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
                self._current = self._read(self._splits[0].object)
            for item in self._current:
                self._is_begun = True
                return (item,)
            self._current, self._is_begun = None, False
            self.context.split_finished(self._splits.popleft().split_id)
        return ()

    @override
    def close(self) -> None:
        self._close_stream()
        self._interrupter.close()
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

    def _read_version(self, found: S3Object) -> Iterator[Yielded]:
        stored = self.context.task.offsets.get_entry(
            object_key(found.bucket, found.key), lambda known: S3OffsetEntry(object_key(found.bucket, found.key), known)
        )
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
        yield from self._records(found, entry)

    def _records(self, found: S3Object, entry: S3OffsetEntry) -> Iterator[Yielded]:
        parts = self._template.match(found.key) or NameParts()
        end = entry.position()
        try:
            for batch in self._batches(found, end):
                end = batch.end
                yield self._as_records(found, entry, parts, batch)
        except PipelineError as error:
            raise error.located(self._where(found)) from error.__cause__
        yield self._end_of(found, entry.advanced(end).finished(), parts)

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
        task = self.context.task
        attempts = self.config.attempts(task.stopping, count=task.metrics.count)
        self._stream = SeekableObject(
            lambda start, end: ObjectStream(
                client=self._client,
                object=found,
                attempts=attempts,
                interrupter=self._interrupter,
                start=start,
                end=end,
                count=task.metrics.count,
            ),
            found.size,
        )
        return self._stream

    def _as_records(self, found: S3Object, entry: S3OffsetEntry, parts: NameParts, batch: ValueBatch) -> RecordBatch:
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=entry.properties_at(batch.end),
            topic=self._topic(found, parts),
            values=batch.values,
            schema=batch.schema,
            key=self._transformer.key(found.key),
            partition=parts.partition,
            offset_at=lambda count: entry.properties_at(batch.position_at(count)),
        )

    def _end_of(self, found: S3Object, entry: S3OffsetEntry, parts: NameParts) -> RecordBatch:
        return RecordBatch(
            source_partition=entry.get_manager_key().mapping,
            source_offset=entry.get_properties(),
            topic=self._topic(found, parts),
            values=(),
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
