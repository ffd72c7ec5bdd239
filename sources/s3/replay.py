"""Pieces of objects, read again for those who replay dead letters."""

import threading
from collections.abc import Iterator

import attrs

from headrace.framework.compat import override
from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import ObjectVanishedError, PipelineError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.replay import Replays
from headrace.framework.stage import Stage
from headrace.sources.s3.client import S3Client, make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.objects import S3Object, same_etag
from headrace.sources.s3.seekable import SeekableObject
from headrace.sources.s3.stream import ObjectStream
from headrace.transformers.base import ByteStream
from headrace.transformers.compression import NONE, open_decompressed
from headrace.transformers.replaying import LetterReader

__all__ = ["S3Replays"]


@attrs.define
class S3Replays(Replays):
    """One HEAD for each letter, and GETs of what it takes."""

    config: S3Config
    _client: S3Client = attrs.field(init=False)
    _letters: LetterReader = attrs.field(init=False)
    _stopping: threading.Event = attrs.field(factory=threading.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._client = make_client(self.config.connection())
        self._letters = LetterReader(self.config)

    @override
    def read(self, letter: DeadLetter) -> Iterator[RecordBatch]:
        bucket, key = str(letter.source_partition["bucket"]), str(letter.source_partition["objectKey"])
        where = Where(stage=Stage.READ, object=f"s3://{bucket}/{key}")
        found = find_object(self._client, bucket, key, self.config.attempts(self._stopping))
        if found is None:
            raise ObjectVanishedError("the object is gone", where)
        try:
            yield from self._batches(letter, found)
        except PipelineError as error:
            raise error.located(where) from error.__cause__

    @override
    def close(self) -> None:
        self._client.close()

    def _batches(self, letter: DeadLetter, found: S3Object) -> Iterator[RecordBatch]:
        opened: list[SeekableObject] = []

        def open_content() -> ByteStream:
            opened.append(self._open(found))
            return self._content(opened[-1], found)

        same = bool(letter.etag) and same_etag(letter.etag, found.etag)
        try:
            yield from self._letters.records(
                letter, open_content, name=found.key, uri=found.uri, size=found.size, same=same
            )
        finally:
            for stream in opened:
                stream.close()

    def _content(self, stream: SeekableObject, found: S3Object) -> ByteStream:
        kind = NONE if self._letters.transformer.handles_compression else self.config.file_compression_type
        if kind != NONE:  # what comes first is only needed to see whether it is compressed
            stream.go_to(0, wanted=16)
        content = open_decompressed(stream, found.key, kind, max_ratio=self.config.max_decompression_ratio)
        if content.kind != NONE:
            stream.read_to_the_end()
        return content

    def _open(self, found: S3Object) -> SeekableObject:
        return SeekableObject(
            lambda start, end: ObjectStream(
                client=self._client, object=found, attempts=self.config.attempts(self._stopping), start=start, end=end
            ),
            found.size,
        )
