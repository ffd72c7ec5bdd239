"""Objects in S3, and in whatever speaks its protocol.

In the order in which an object meets them: `config` (what the user asks for), `client` (the connection), `listing`
(what there is), `objects` (one thing that is there), `entry` (how far it has been read, and what to do about it),
`stream` (its bytes, over broken connections), `streams` (those of one object after the other; `ahead` has small ones
fetched before their turn, `next_object` has a larger one asked for). `failures` says in our words what boto3 says in
its own, `attempts` counts how often something is tried, and `interrupt` ends a read that a stopping task waits in.
`progress` is the one place that says how far objects have been read, `parts` what it means for one that is read in
parts, and `cutting` which ones are. Above them `splits`, `enumerator` and `reader` make them a split source; `offsets`
and `explain` are for those who look at its offsets and move them, `replay` for dead letters.

boto3 comes in with the extra `s3`, and is imported when a client is made.
"""

from collections.abc import Mapping
from typing import Any

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.naming import NameParts, NameTemplate
from headrace.framework.parts import Part
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
from headrace.sources.s3.client import Connection, make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import Action, S3OffsetEntry, finished_version, object_key, what_to_do
from headrace.sources.s3.enumerator import S3Enumerator
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.offsets import S3Offsets
from headrace.sources.s3.parts import part_entry
from headrace.sources.s3.reader import S3Reader
from headrace.sources.s3.replay import S3Replays
from headrace.sources.s3.splits import S3Split, S3SplitSerializer
from headrace.transformers.base import Position
from headrace.transformers.compression import NONE

__all__ = ["S3Source"]


class S3Source(SplitSource[S3Split]):
    """The objects of a bucket, each a split; their order is that of their keys within a task."""

    config_class = S3Config

    config: S3Config
    _template: NameTemplate

    @classmethod
    @override
    def get_ready(cls) -> None:
        # Of anybody's client the first is dear: it reads what all others need.
        make_client(Connection(access_key_id="none", secret_access_key="none")).close()  # noqa: S106

    @override
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        self.config = S3Config.from_props(props)
        self._template = NameTemplate.parse(self.config.file_name_template)
        return self.config

    @property
    @override
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    @override
    def split_serializer(self) -> SplitSerializer[S3Split]:
        return S3SplitSerializer()

    @override
    def describe(self, split: S3Split, offset: Mapping[str, Any] | None) -> SplitDescription:
        found = split.object
        parts = self._template.match(found.key) or NameParts()
        topic = self.config.topic or parts.topic
        if split.part is not None:
            place, start = self._place_in_part(found, split.part, offset), split.extent.start
            return SplitDescription(
                key=found.key,
                records_done=place.records,
                byte=place.byte or start,
                topic=topic,
                get_calls=self._get_calls(start or place.byte),
                part=split.part.words(),
                start=start,
            )
        stored = None if offset is None else S3OffsetEntry.stored(object_key(found.bucket, found.key), offset)
        decision = what_to_do(stored, found, self.config.overwrite_policy)
        place = stored.position() if stored and decision.action is Action.FINISHED else decision.position
        return SplitDescription(
            key=found.key,
            records_done=place.records,
            byte=place.byte,
            topic=topic,
            get_calls=self._get_calls(place.byte),
        )

    @override
    def finished_version(self, offset: Mapping[str, Any]) -> str | None:
        return finished_version(offset)

    @override
    def source_offsets(self) -> SourceOffsets:
        return S3Offsets(self.config)

    @override
    def replays(self) -> Replays:
        return S3Replays(self.config)

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[S3Split], state: Mapping[str, Any] | None
    ) -> SplitEnumerator[S3Split]:
        return S3Enumerator(context, self.config, state)

    def _place_in_part(self, found: S3Object, part: Part, offset: Mapping[str, Any] | None) -> Position:
        entry = part_entry(found, part, offset)
        return Position() if entry is None else entry.position()

    def _get_calls(self, byte: int) -> int:
        """One, and one more where an object that was begun must be looked at from its start: is it compressed?"""
        return 2 if byte and self.config.file_compression_type != NONE else 1

    @override
    def create_reader(self, context: SourceReaderContext) -> SourceReader[S3Split]:
        return S3Reader(context, self.config)
