"""What files have to say about their offsets: which are possible."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.framework.compat import override
from headrace.framework.errors import Fault
from headrace.framework.parts import ENDED, PART, PARTS
from headrace.framework.source_offsets import SourceOffsets
from headrace.offsets.checks import count_faults, flag_faults, part_faults, partition_faults, slip_faults, text_faults
from headrace.offsets.entry import RECORD_COUNT
from headrace.sources.files.entry import (
    COMPLETE,
    CUT,
    ETAG,
    FILENAME,
    HEAD,
    HEAD_BYTES,
    INODE,
    INSIDE,
    LAST_MODIFIED,
    LINE,
    POSITION,
    SIZE,
    TAIL,
)

__all__ = ["FilesOffsets"]

COUNTS = (POSITION, RECORD_COUNT, LINE, INSIDE, SIZE, LAST_MODIFIED, INODE, HEAD_BYTES, PARTS)
FLAGS = (COMPLETE, ENDED)
TEXTS = (ETAG, HEAD, TAIL, CUT)


class FilesOffsets(SourceOffsets):
    """Offsets of files, and of parts of them."""

    @override
    def faults(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Iterable[Fault]:
        if offset is None:
            return
        yield from partition_faults({name: value for name, value in partition.items() if name != PART}, (FILENAME,))
        yield from part_faults(partition, offset)
        yield from count_faults(offset, COUNTS)
        yield from flag_faults(offset, FLAGS)
        yield from text_faults(offset, TEXTS)
        yield from slip_faults(offset, (*COUNTS, *FLAGS, *TEXTS))

    @override
    def in_order(self, partition: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {FILENAME: partition[FILENAME]} if FILENAME in partition else {}
        return {**named, **partition}
