"""What Redis has to say about its offsets: which are possible."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import Fault
from headrace.framework.source_offsets import SourceOffsets
from headrace.offsets.checks import count_faults, flag_faults, partition_faults, slip_faults, text_faults
from headrace.offsets.entry import RECORD_COUNT
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.entry import COMPLETE, DELIVERY, ID, LAST, PASSED, STREAM, WITHIN, WITHIN_ID
from headrace.sources.redis.ids import StreamId

__all__ = ["RedisOffsets"]

COUNTS = (RECORD_COUNT, PASSED, WITHIN)
IDS = (ID, WITHIN_ID, LAST)
KNOWN = (*COUNTS, *IDS, COMPLETE, DELIVERY)


@attrs.frozen
class RedisOffsets(SourceOffsets):
    """Offsets of the streams of one configuration."""

    config: RedisConfig

    @override
    def faults(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Iterable[Fault]:
        if offset is None:
            return
        yield from partition_faults(partition, (STREAM,))
        yield from _id_faults(offset)
        yield from count_faults(offset, COUNTS)
        yield from flag_faults(offset, (COMPLETE,))
        yield from text_faults(offset, (DELIVERY,))
        yield from slip_faults(offset, KNOWN)

    @override
    def notes(self, partition: Mapping[str, Any]) -> Iterable[str]:
        stream = str(partition.get(STREAM))
        if not any(choice.takes(stream) for choice in self.config.choices):
            yield f"its stream is {stream}, and the connector reads {', '.join(self.config.streams)}"


def _id_faults(offset: Mapping[str, Any]) -> Iterator[Fault]:
    for name in IDS:
        given = offset.get(name, "0-0")
        try:
            StreamId.parse(given if isinstance(given, str) else "")
        except ValueError as error:
            yield Fault(f"offset.{name}", str(given), str(error))
