"""Files: those of this machine, and whatever fsspec reaches by a URL.

In the order in which a file meets them: `config` (what the user asks for), `system` (the files of this machine) and
`urls` (those behind a URL), `listing` (what there is), `objects` (one file), `fingerprint` (by what it is known again),
`entry` (how far it has been read, and what to do about it), `stream` (its bytes). `following` knows what becomes of
files that grow and are rotated within a `family`; `cleanup` archives or deletes what is committed; `failures` says in
our words what the file system says. Above them `splits`, `enumerator` and `reader` make them a split source.

fsspec is needed for URLs only, and imported when there is one.
"""

from collections.abc import Mapping
from typing import Any

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.naming import NameParts, NameTemplate
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
from headrace.sources.files.reader import FilesReader
from headrace.sources.files.splits import FileSplit, FileSplitSerializer

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
        place = FileOffsetEntry.stored(path, offset or {}).position()
        parts = self._template.match(path) or NameParts()
        return SplitDescription(
            key=path, records_done=place.records, byte=place.byte, topic=self.config.topic or parts.topic
        )

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: Mapping[str, Any] | None
    ) -> SplitEnumerator[FileSplit]:
        return FilesEnumerator(context, self.config)

    @override
    def create_reader(self, context: SourceReaderContext) -> SourceReader[FileSplit]:
        return FilesReader(context, self.config)
