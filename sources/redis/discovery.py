"""Which streams there are."""

import time
from collections.abc import Iterator

import attrs

from headrace.framework.errors import SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.failures import redis_failures, said_of
from headrace.sources.redis.info import StreamInfo
from headrace.sources.redis.names import partition_of, stream_of

__all__ = ["Discovery", "info_of"]

STREAM_TYPE = "stream"
NO_TYPE = "none"
SCAN_COUNT = 1000
LOOK_AHEAD = 16
"""How many further partitions are looked for behind the last one that is known."""


@attrs.define
class Discovery:
    """Finds streams again and again: all keys are looked through now and then, the likely ones every time."""

    config: RedisConfig
    client: RedisClient
    _names: set[str] = attrs.field(factory=set, init=False)
    _scanned_at: float | None = attrs.field(default=None, init=False)

    def find(self) -> dict[str, StreamInfo]:
        """The streams that are there now, in the order of their names. `SourceError` for a name that is no stream's."""
        with redis_failures(self._where(None)):
            self._names.update(self._likely())
            if self._scan_is_due():
                self._names.update(self._scanned())
                self._scanned_at = time.monotonic()
        found = {name: info for name in sorted(self._names, key=_order) if (info := self._info(name)) is not None}
        self._names = set(found)
        return found

    def _scan_is_due(self) -> bool:
        return self._scanned_at is None or time.monotonic() - self._scanned_at >= self.config.scan_interval_ms / 1000

    def _scanned(self) -> Iterator[str]:
        for choice in self.config.choices:
            patterns = [choice.text, f"{choice.text}-[0-9]*"] if choice.is_pattern else [choice.partitions_pattern]
            for pattern in patterns:
                for key in self.client.scan_iter(match=pattern, count=SCAN_COUNT, _type=STREAM_TYPE):
                    name = _text(key)
                    if name is not None and choice.takes(name):
                        yield name

    def _likely(self) -> Iterator[str]:
        """What is named, and the partitions that may come next."""
        named = [choice.text for choice in self.config.choices if not choice.is_pattern]
        for name in named:
            kind = self.client.type(name).decode()
            if kind == STREAM_TYPE:
                yield name
            elif kind != NO_TYPE:
                raise SourceError(f"the key is a {kind} and no stream: check redis.streams", self._where(name))
            yield from self._partitions(name)

    def _partitions(self, name: str) -> Iterator[str]:
        known = [partition_of(key) for key in self._names if stream_of(key) == name]
        last = max((number for number in known if number is not None), default=-1)
        for number in range(last + 1, last + 1 + LOOK_AHEAD):
            if self.client.type(f"{name}-{number}") == STREAM_TYPE.encode():
                yield f"{name}-{number}"

    def _info(self, name: str) -> StreamInfo | None:
        with redis_failures(self._where(name)):
            return info_of(self.client, name)

    def _where(self, name: str | None) -> Where:
        return Where(stage=Stage.DISCOVER, connector=self.config.name, object=name)


def info_of(client: RedisClient, name: str) -> StreamInfo | None:
    """What the server says of a stream, or None if there is no such key."""
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    try:
        return StreamInfo.from_answer(client.xinfo_stream(name))
    except exceptions.ResponseError as error:
        if "no such key" in said_of(error):
            return None
        raise


def _order(name: str) -> tuple[str, int]:
    number = partition_of(name)
    return stream_of(name), -1 if number is None else number


def _text(key: bytes) -> str | None:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None
