"""One stream, read by our own place in it, with an eye on what goes before it is read."""

from collections.abc import Callable

import attrs

from headrace.framework.errors import Where
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.discovery import info_of
from headrace.sources.redis.entry import Entries, Place, until
from headrace.sources.redis.failures import redis_failures, said_of
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.info import StreamInfo
from headrace.sources.redis.losses import Losses
from headrace.sources.redis.splits import RedisSplit

__all__ = ["StreamCursor"]


@attrs.frozen
class StreamCursor:
    """Reads the entries behind a place, and says where that place is once what is lost has been counted.

    `warn` is told, in words that do not change, what cannot be known on this server.
    """

    client: RedisClient
    config: RedisConfig
    split: RedisSplit
    losses: Losses
    warn: Callable[[str], None]

    def read(self, place: Place) -> tuple[Place, Entries]:
        """The next entries, and the place that they follow; none if there are none right now.

        What has gone before it was read is a `SourceError`, or is noted where `data.loss` says to go on.
        """
        info, entries = self._asked(place)
        if info is not None and self._is_another(info, place, entries):
            self.losses.lose(
                place.id,
                f"it was deleted and begun anew, or its server has lost entries: it ends at {info.last}, and how many "
                "were lost is not known",
            )
            place = self._anew(info, place, entries)
            info, entries = self._asked(place)
        if info is None:
            self.losses.miss_the_end(self.split, place)
            return place, ()
        if info.added is None:
            self.warn(
                "the server does not count what is added to a stream, as Redis does from 7 on: what is trimmed or "
                "deleted before it is read will not be missed"
            )
        lost = info.lost_behind(place.id, place.passed, _found(info, entries))
        if lost > 0:
            self.losses.lose(place.id, f"{lost} entries behind it were trimmed or deleted before they were read")
            # Without an id nobody knows whether the entry that was begun is among those that were lost.
            within = place.within if place.inside is not None else 0
            place = attrs.evolve(place, within=within, passed=(place.passed or 0) + lost)
        elif place.passed is None and not entries and place.id == info.last:
            # Nothing is behind the place: so it is known now how many entries were added up to it.
            place = attrs.evolve(place, passed=info.added)
        return place.before(StreamId.parse(entries[0][0])) if entries else place, entries

    def _is_another(self, info: StreamInfo, place: Place, entries: Entries) -> bool:
        if info.is_another_than(place.id, place.passed, _found(info, entries)):
            return True
        # Where nothing has been read yet, the stream's end when the run began is all that it can be told by.
        split = self.split
        is_fresh = not place.records and (place.id, place.passed) == (split.start, split.passed)
        return is_fresh and split.end is not None and info.is_another_than(split.end, split.added)

    def _anew(self, info: StreamInfo, place: Place, entries: Entries) -> Place:
        """Where reading goes on in a stream that is another one: at its beginning, unless that may repeat something."""
        if info.last < place.id or info.begins_behind(place.id):
            return Place(id=FIRST, records=place.records, passed=info.removed)
        # Entries from before the place are there: most likely those that were read, on a server that has lost others.
        found = _found(info, entries)
        passed = None if info.added is None or found >= self.config.read_count else info.added - found
        return Place(id=place.id, records=place.records, passed=passed)

    def _asked(self, place: Place) -> tuple[StreamInfo | None, Entries]:
        """What the server says of the stream, and what comes next in it, both of the same moment."""
        name = self.split.stream
        with redis_failures(Where(stage=Stage.READ, object=name, position=f"entry {place.id}")):
            if self.config.is_cluster:
                info = info_of(self.client, name)
                answer = self.client.xread({name: str(place.id)}, count=self.config.read_count)
                return info, answer[0][1] if answer else ()
            pipeline = self.client.pipeline(transaction=True)
            pipeline.xinfo_stream(name)
            pipeline.xread({name: str(place.id)}, count=self.config.read_count)
            said, answer = pipeline.execute(raise_on_error=False)
            if isinstance(said, Exception):
                if "no such key" in said_of(said):
                    return None, ()
                raise said
            if isinstance(answer, Exception):
                raise answer
            return StreamInfo.from_answer(said), answer[0][1] if answer else ()


def _found(info: StreamInfo, entries: Entries) -> int:
    """How many of these entries were there when the server was asked: a cluster is asked a little earlier."""
    return len(until(entries, info.last))
