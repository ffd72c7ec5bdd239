"""Consumer groups: made, asked, and acknowledged to, never before what they delivered is committed."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from uuid import uuid4

import attrs

from headrace.framework.errors import HeadraceError, Where
from headrace.framework.stage import Stage
from headrace.offsets.manager import OffsetManager
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import EARLIEST, LATEST, RedisConfig
from headrace.sources.redis.entry import DELIVERY, RedisOffsetEntry, stream_key
from headrace.sources.redis.failures import redis_failures, said_of
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.info import GroupInfo, StreamInfo

__all__ = ["Acknowledgements", "acknowledge", "make_group", "place_of_group"]

log = logging.getLogger(__name__)

ACKNOWLEDGED_AT_ONCE = 1000


def make_group(client: RedisClient, config: RedisConfig, stream: str, info: StreamInfo, *, is_new: bool) -> None:
    """Make the consumer group on a stream, unless there is one; a stream that `is_new` is read from its beginning.

    The server is told how many entries lie before the group's beginning, where that is known: so it can say later what
    went before the group was given it. A stream that has gone in the meantime has none.
    """
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    latest = FIRST if is_new else info.last
    start = {EARLIEST: FIRST, LATEST: latest}.get(config.start) or StreamId.parse(config.start)
    with redis_failures(Where(stage=Stage.DISCOVER, connector=config.name, object=stream)):
        try:
            client.xgroup_create(stream, config.group, id=str(start), entries_read=info.passed_at(start))
        except exceptions.ResponseError as error:
            if not any(said in said_of(error) for said in ("BUSYGROUP", "requires the key to exist")):
                raise


def place_of_group(client: RedisClient, config: RedisConfig, stream: str) -> str | None:
    """The last entry that the group was given; None if there is no such group."""
    with redis_failures(Where(stage=Stage.DISCOVER, connector=config.name, object=stream)):
        group = GroupInfo.named(config.group, client.xinfo_groups(stream))
    return None if group is None else str(group.delivered)


@attrs.define
class Acknowledgements:
    """What was delivered and is not acknowledged yet, in the order of its deliveries.

    Every entry that is delivered has a number. The name of the last one travels in the offset of its records: what is
    committed says up to which entry a stream can be acknowledged.
    """

    client: RedisClient
    config: RedisConfig
    offsets: OffsetManager
    _token: str = attrs.field(factory=lambda: uuid4().hex[:12], init=False)
    _waiting: dict[str, deque["_Delivery"]] = attrs.field(factory=dict, init=False)
    _number: int = attrs.field(default=0, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @property
    def none_yet(self) -> str:
        """A name for a place at which nothing has been delivered."""
        return f"{self._token}:0"

    def add(self, stream: str, ids: Sequence[bytes]) -> Callable[[int], str]:
        """Note a delivery; what names its first so many entries, with what was delivered of the stream before."""
        with self._lock:
            before, self._number = self._number, self._number + len(ids)
            if ids:
                self._waiting.setdefault(stream, deque()).append(_Delivery(before, ids))
        return lambda count: f"{self._token}:{before + count}"

    def acknowledge(self) -> None:
        """Acknowledge every entry that is committed; what fails is tried again after the next commit."""
        with self._lock:
            for stream, waiting in self._waiting.items():
                committed = self._committed(stream)
                while waiting and waiting[0].before < committed:
                    done, rest = waiting[0].cut(committed)
                    try:
                        self._send(stream, done.ids)
                    except HeadraceError as error:
                        log.warning("%s: acknowledged later, or delivered again: %s", stream, error)
                        return
                    waiting.popleft()
                    if rest.ids:
                        waiting.appendleft(rest)

    def _committed(self, stream: str) -> int:
        key = stream_key(stream)
        entry = self.offsets.get_entry(key, lambda known: RedisOffsetEntry(key, known))
        token, _, number = ((entry and entry.get_string(DELIVERY)) or "").partition(":")
        return int(number) if token == self._token else 0

    def _send(self, stream: str, ids: Sequence[bytes]) -> None:
        with redis_failures(Where(stage=Stage.COMMIT, object=stream)):
            acknowledge(self.client, self.config, stream, ids)


@attrs.frozen
class _Delivery:
    """Entries that were delivered together, and the number of the one before them."""

    before: int
    ids: Sequence[bytes]

    def cut(self, number: int) -> "tuple[_Delivery, _Delivery]":
        """The entries up to a number, and those behind it."""
        count = number - self.before
        return _Delivery(self.before, self.ids[:count]), _Delivery(number, self.ids[count:])


def acknowledge(client: RedisClient, config: RedisConfig, stream: str, ids: Sequence[bytes]) -> None:
    """Take entries from what is pending in the group."""
    for first in range(0, len(ids), ACKNOWLEDGED_AT_ONCE):
        client.xack(stream, config.group, *ids[first : first + ACKNOWLEDGED_AT_ONCE])
