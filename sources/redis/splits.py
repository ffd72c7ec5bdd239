"""A stream as a split, and as bytes."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.splits import Split, SplitSerializer
from headrace.sources.redis.entry import STREAM
from headrace.sources.redis.ids import FIRST, StreamId

__all__ = ["RedisSplit", "RedisSplitSerializer"]

VERSION = 2


@attrs.frozen(kw_only=True)
class RedisSplit(Split):
    """One stream, or one partition of one.

    `start` is where it is read from if nothing of it has been read, `passed` how many entries had been added up to
    there. `end` is the last id that it had when a bounded run began; a continuous one has none. `length` is how many
    entries it had when it was found, and `added` how many had ever been added by then. With `peek` it is only looked
    at: no group is asked to deliver anything.
    """

    stream: str
    start: StreamId = FIRST
    passed: int | None = None
    end: StreamId | None = None
    length: int = 0
    added: int | None = None
    peek: bool = False

    @property
    @override
    def split_id(self) -> str:
        return self.stream

    @property
    @override
    def source_partition(self) -> Mapping[str, Any]:
        return {STREAM: self.stream}

    @property
    @override
    def size(self) -> int:
        return self.length

    @property
    @override
    def is_endless(self) -> bool:
        return self.end is None


class RedisSplitSerializer(SplitSerializer[RedisSplit]):
    """A JSON object of the version's own names; the first version did not say what had been added."""

    version = VERSION

    @override
    def serialize(self, split: RedisSplit) -> bytes:
        told = {
            "stream": split.stream,
            "start": str(split.start),
            "passed": split.passed,
            "end": None if split.end is None else str(split.end),
            "length": split.length,
            "added": split.added,
            "peek": split.peek,
        }
        return json.dumps(told, separators=(",", ":")).encode()

    @override
    def deserialize(self, version: int, data: bytes) -> RedisSplit:
        if not 1 <= version <= VERSION:
            raise ValueError(f"a Redis split of version {version} is from a newer headrace; this one reads {VERSION}")
        told = json.loads(data)
        return RedisSplit(
            stream=told["stream"],
            start=StreamId.parse(told["start"]),
            passed=told["passed"],
            end=None if told["end"] is None else StreamId.parse(told["end"]),
            length=told["length"],
            added=told.get("added"),
            peek=told["peek"],
        )
