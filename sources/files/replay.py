"""Pieces of files, read again for those who replay dead letters."""

import threading
from collections.abc import Iterator

import attrs

from headrace.framework.compat import override
from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import PipelineError, Where
from headrace.framework.record import RecordBatch
from headrace.framework.replay import Replays
from headrace.framework.stage import Stage
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import FILENAME, FileOffsetEntry
from headrace.sources.files.failures import file_failures
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.stream import FileStream
from headrace.transformers.base import ByteStream
from headrace.transformers.compression import NONE, open_decompressed
from headrace.transformers.replaying import LetterReader

__all__ = ["FileReplays"]


@attrs.define
class FileReplays(Replays):
    """Opens each letter's file under the name that it had."""

    config: FilesConfig
    _letters: LetterReader = attrs.field(init=False)
    _stopping: threading.Event = attrs.field(factory=threading.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._letters = LetterReader(self.config)

    @override
    def read(self, letter: DeadLetter) -> Iterator[RecordBatch]:
        path = str(letter.source_partition[FILENAME])
        where = Where(stage=Stage.READ, object=path)
        with file_failures(where):
            found = self.config.system(path).look_up(path)
        try:
            yield from self._batches(letter, found)
        except PipelineError as error:
            raise error.located(where) from error.__cause__

    def _batches(self, letter: DeadLetter, found: FoundFile) -> Iterator[RecordBatch]:
        opened: list[FileStream] = []

        def open_content() -> ByteStream:
            opened.append(self._open(found))
            kind = NONE if self._letters.transformer.handles_compression else self.config.file_compression_type
            return open_decompressed(opened[-1], found.path, kind, max_ratio=self.config.max_decompression_ratio)

        same = FileOffsetEntry.stored(found.path, letter.source_offset).is_version(found)
        try:
            yield from self._letters.records(
                letter, open_content, name=found.path, uri=found.path, size=found.size, same=same
            )
        finally:
            for stream in opened:
                stream.close()

    def _open(self, found: FoundFile) -> FileStream:
        with file_failures(Where(stage=Stage.READ, object=found.path)):
            file = self.config.system(found.path).open(found.path)
        return FileStream(path=found.path, opened=file, stopping=self._stopping, size=found.size)
