"""Consumer groups: made, and read so that nothing is acknowledged before it is committed."""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
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

__all__ = ["Acknowledgements", "Entries", "GroupCursor", "make_group", "place_of_group", "until"]

log = logging.getLogger(__name__)

Entries = Sequence[tuple[bytes, dict[bytes, bytes] | None]]
"""Entries as the server sends them; one that was deleted since has no fields."""

ACKNOWLEDGED_AT_ONCE = 1000


def until(entries: Entries, end: StreamId | None) -> Entries:
    """The entries up to an id, that included."""
    if end is None or not entries or StreamId.parse(entries[-1][0]) <= end:
        return entries
    return [entry for entry in entries if StreamId.parse(entry[0]) <= end]


def make_group(client: RedisClient, config: RedisConfig, stream: str, *, is_new: bool) -> None:
    """Make the consumer group on a stream, unless there is one; a stream that `is_new` is read from its beginning."""
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    start = {EARLIEST: "0", LATEST: "0" if is_new else "$"}.get(config.start, config.start)
    with redis_failures(Where(stage=Stage.DISCOVER, connector=config.name, object=stream)):
        try:
            client.xgroup_create(stream, config.group, id=start)
        except exceptions.ResponseError as error:
            if "BUSYGROUP" not in said_of(error):
                raise


def place_of_group(client: RedisClient, config: RedisConfig, stream: str) -> str | None:
    """The last entry that the group was given; None if there is no such group."""
    with redis_failures(Where(stage=Stage.DISCOVER, connector=config.name, object=stream)):
        for group in client.xinfo_groups(stream):
            if group["name"].decode() == config.group:
                return str(group["last-delivered-id"].decode())
    return None


@attrs.define
class GroupCursor:
    """Reads a stream through a group: first what is pending from those who came before, then what is new."""

    client: RedisClient
    config: RedisConfig
    stream: str
    consumer: str
    has_recovered: bool = attrs.field(default=False, init=False)
    """Whether everything that was pending has been given out."""

    _pending: Iterator[Entries] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pending = self._left_behind()

    def read(self) -> Entries:
        """The next entries, or none if there are none right now."""
        from redis import exceptions  # noqa: PLC0415 - comes with the extra

        with redis_failures(Where(stage=Stage.READ, object=self.stream)):
            try:
                return next(self._pending, None) or self._new()
            except exceptions.ResponseError as error:
                if "NOGROUP" not in said_of(error):
                    raise
                if not self.client.exists(self.stream):
                    return ()
        make_group(self.client, self.config, self.stream, is_new=True)
        return ()

    def _new(self) -> Entries:
        return self._read(">")

    def _read(self, after: str) -> Entries:
        answer = self.client.xreadgroup(
            self.config.group, self.consumer, {self.stream: after}, count=self.config.read_count
        )
        entries: Entries = answer[0][1] if answer else ()
        return entries

    def _left_behind(self) -> Iterator[Entries]:
        """What was delivered before, and not acknowledged: to this consumer, and to others of the group."""
        mine: set[bytes] = set()
        if self.config.claim_idle_ms:
            after = str(FIRST)
            while entries := self._read(after):
                mine.update(entry_id for entry_id, _ in entries)
                after = entries[-1][0].decode()
                yield entries
        start: bytes = b"0-0"
        while True:
            answer = self.client.xautoclaim(
                self.stream,
                self.config.group,
                self.consumer,
                self.config.claim_idle_ms,
                start_id=start,
                count=self.config.read_count,
            )
            start, entries = answer[0], [entry for entry in answer[1] if entry[0] not in mine]
            if entries:
                yield entries
            if start == b"0-0":
                break
        self.has_recovered = True


@attrs.define
class Acknowledgements:
    """What was delivered and is not acknowledged yet, in the order of its deliveries.

    A delivery's name travels in the offset of its records: what is committed says which deliveries are.
    """

    client: RedisClient
    config: RedisConfig
    offsets: OffsetManager
    _token: str = attrs.field(factory=lambda: uuid4().hex[:12], init=False)
    _waiting: dict[str, deque[tuple[int, list[bytes]]]] = attrs.field(factory=dict, init=False)
    _number: int = attrs.field(default=0, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def add(self, stream: str, ids: list[bytes]) -> str:
        """Note a delivery; its name."""
        with self._lock:
            self._number += 1
            self._waiting.setdefault(stream, deque()).append((self._number, ids))
            return f"{self._token}:{self._number}"

    def acknowledge(self) -> None:
        """Acknowledge every delivery that is committed; what fails is tried again after the next commit."""
        with self._lock:
            for stream, waiting in self._waiting.items():
                committed = self._committed(stream)
                while waiting and waiting[0][0] <= committed:
                    try:
                        self._send(stream, waiting[0][1])
                    except HeadraceError as error:
                        log.warning("%s: acknowledged later, or delivered again: %s", stream, error)
                        return
                    waiting.popleft()

    def _committed(self, stream: str) -> int:
        key = stream_key(stream)
        entry = self.offsets.get_entry(key, lambda known: RedisOffsetEntry(key, known))
        token, _, number = ((entry and entry.get_string(DELIVERY)) or "").partition(":")
        return int(number) if token == self._token else 0

    def _send(self, stream: str, ids: list[bytes]) -> None:
        with redis_failures(Where(stage=Stage.COMMIT, object=stream)):
            for first in range(0, len(ids), ACKNOWLEDGED_AT_ONCE):
                self.client.xack(stream, self.config.group, *ids[first : first + ACKNOWLEDGED_AT_ONCE])
