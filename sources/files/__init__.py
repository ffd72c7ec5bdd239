"""Files: those of this machine, and whatever fsspec reaches by a URL.

In the order in which a file meets them: `config` (what the user asks for), `system` (the files of this machine, which
`globs` names) and `urls` (those behind a URL), `listing` (what there is), `objects` (one file), `fingerprint` (by what
it is known again), `entry` (how far it has been read, and what to do about it), `stream` (its bytes). `parts` and
`part_reader` are for files that are read in parts, and `cutting` says which are. `following` knows what becomes of
files that grow and are rotated within a `family`; `cleanup` archives or deletes what is committed; `failures` says in
our words what the file system says. Above them `splits`, `enumerator` and `reader` make them a split source; `offsets`
is for those who move its offsets, `replay` for dead letters.

fsspec is needed for URLs only, and imported when there is one.
"""

from collections.abc import Mapping
from typing import Any

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.naming import NameParts, NameTemplate
from headrace.framework.replay import Replays
from headrace.framework.source_offsets import SourceOffsets
from headrace.framework.splits import (
    Boundedness,
    SourceReader,
    SourceReaderContext,
    SplitDescription,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitSerializer,
    SplitSource,
)
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import FileOffsetEntry
from headrace.sources.files.enumerator import FilesEnumerator
from headrace.sources.files.offsets import FilesOffsets
from headrace.sources.files.parts import part_entry
from headrace.sources.files.reader import FilesReader
from headrace.sources.files.replay import FileReplays
from headrace.sources.files.splits import FileSplit, FileSplitSerializer
from headrace.transformers.base import Position

__all__ = ["FilesSource"]


class FilesSource(SplitSource[FileSplit]):
    """Files, each a split; their order is that of their paths within a task."""

    config_class = FilesConfig

    config: FilesConfig
    _template: NameTemplate

    @override
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        self.config = FilesConfig.from_props(props)
        self._template = NameTemplate.parse(self.config.file_name_template)
        return self.config

    @property
    @override
    def boundedness(self) -> Boundedness:
        return Boundedness.UNBOUNDED if self.config.follow else Boundedness.BOUNDED

    @property
    @override
    def split_serializer(self) -> SplitSerializer[FileSplit]:
        return FileSplitSerializer()

    @override
    def describe(self, split: FileSplit, offset: Mapping[str, Any] | None) -> SplitDescription:
        path = split.file.path
        part = split.part
        stored = FileOffsetEntry.stored(path, offset or {}) if part is None else part_entry(path, part, offset)
        place = Position() if stored is None else stored.position()
        parts = self._template.match(path) or NameParts()
        start = 0 if part is None else part.extent.start
        return SplitDescription(
            key=path,
            records_done=place.records,
            byte=place.byte or start,
            topic=self.config.topic or parts.topic,
            part="" if part is None else part.part.words(),
            start=start,
        )

    @override
    def source_offsets(self) -> SourceOffsets:
        return FilesOffsets()

    @override
    def replays(self) -> Replays:
        return FileReplays(self.config)

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: Mapping[str, Any] | None
    ) -> SplitEnumerator[FileSplit]:
        return FilesEnumerator(context, self.config)

    @override
    def create_reader(self, context: SourceReaderContext) -> SourceReader[FileSplit]:
        return FilesReader(context, self.config)
