"""Streams in Redis, and in what speaks its protocol.

In the order in which an entry meets them: `config` (what the user asks for), `client` (the connection), `clock` (its
time), `names` and `discovery` (which streams there are), `info` (what the server says of one), `ids` (the order of
entries), `entry` (how far a stream has been read), `cursor` (what comes next, and what has gone; `group_cursor` through
a consumer group, `pending` what that has delivered before), `losses` (what becomes of that), `groups` (consumer groups,
and what is acknowledged to them), `deliveries` (what they deliver), `records` (entries as records). `failures` says in
our words what redis-py says in its own. Above them `splits`, `enumerator` and `reader` make them a split source;
`offsets` is for those who move its offsets, `replay` for dead letters.

redis-py comes in with the extra `redis`, and is imported when a client is made.
"""

from collections.abc import Mapping
from typing import Any

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
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
from headrace.sources.redis.config import Mode, RedisConfig
from headrace.sources.redis.entry import RedisOffsetEntry, stream_key
from headrace.sources.redis.enumerator import RedisEnumerator
from headrace.sources.redis.names import stream_of
from headrace.sources.redis.offsets import RedisOffsets
from headrace.sources.redis.reader import RedisReader
from headrace.sources.redis.replay import RedisReplays
from headrace.sources.redis.splits import RedisSplit, RedisSplitSerializer

__all__ = ["RedisSource"]


class RedisSource(SplitSource[RedisSplit]):
    """Streams, each a split, or each of its partitions one; their order is that of their entries."""

    config_class = RedisConfig

    config: RedisConfig

    @override
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        self.config = RedisConfig.from_props(props)
        return self.config

    @property
    @override
    def boundedness(self) -> Boundedness:
        return Boundedness.UNBOUNDED

    @property
    @override
    def exactly_once(self) -> bool:
        return self.config.mode is Mode.OFFSETS

    @property
    @override
    def split_serializer(self) -> SplitSerializer[RedisSplit]:
        return RedisSplitSerializer()

    @override
    def describe(self, split: RedisSplit, offset: Mapping[str, Any] | None) -> SplitDescription:
        place = RedisOffsetEntry(stream_key(split.stream), dict(offset or {})).place()
        topic = self.config.topic or stream_of(split.stream)
        return SplitDescription(key=split.stream, records_done=place.records, topic=topic)

    @override
    def source_offsets(self) -> SourceOffsets:
        return RedisOffsets(self.config)

    @override
    def replays(self) -> Replays:
        return RedisReplays(self.config)

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[RedisSplit], state: Mapping[str, Any] | None
    ) -> SplitEnumerator[RedisSplit]:
        return RedisEnumerator(context, self.config, state)

    @override
    def create_reader(self, context: SourceReaderContext) -> SourceReader[RedisSplit]:
        return RedisReader(context, self.config)
