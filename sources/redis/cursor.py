"""One stream, read by our own place in it, with an eye on what goes before it is read."""

import logging
from collections.abc import Callable

import attrs

from headrace.framework.config import DataLoss
from headrace.framework.errors import SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.discovery import info_of
from headrace.sources.redis.entry import Place
from headrace.sources.redis.failures import redis_failures, said_of
from headrace.sources.redis.groups import Entries
from headrace.sources.redis.ids import FIRST
from headrace.sources.redis.info import StreamInfo

__all__ = ["StreamCursor"]

log = logging.getLogger(__name__)


@attrs.frozen
class StreamCursor:
    """Reads the entries behind a place, and says where that place is once what is lost has been counted."""

    client: RedisClient
    config: RedisConfig
    stream: str
    note_lost: Callable[[str], None]

    def read(self, place: Place) -> tuple[Place, Entries]:
        """The next entries, and the place that they follow; none if there are none right now.

        What has gone before it was read is a `SourceError`, or is noted where `data.loss` says to go on.
        """
        info, entries = self._asked(place)
        if info is None:
            return place, ()
        if info.is_another_than(place.id, place.passed):
            self._lose(place, f"it was deleted and begun anew, or its server has lost entries: it ends at {info.last}")
            place = Place(id=FIRST, records=place.records, passed=info.removed)
            info, entries = self._asked(place)
            if info is None:
                return place, ()
        lost = info.lost_behind(place.id, place.passed, len(entries))
        if lost > 0:
            self._lose(place, f"{lost} entries behind it were trimmed or deleted before they were read")
            place = attrs.evolve(place, within=0, passed=(place.passed or 0) + lost)
        elif place.passed is None and not entries and place.id == info.last:
            # Nothing is behind the place: so it is known now how many entries were added up to it.
            place = attrs.evolve(place, passed=info.added)
        return place, entries

    def _asked(self, place: Place) -> tuple[StreamInfo | None, Entries]:
        """What the server says of the stream, and what comes next in it, both of the same moment."""
        with redis_failures(Where(stage=Stage.READ, object=self.stream, position=f"entry {place.id}")):
            if self.config.is_cluster:
                info = info_of(self.client, self.stream)
                answer = self.client.xread({self.stream: str(place.id)}, count=self.config.read_count)
                return info, answer[0][1] if answer else ()
            pipeline = self.client.pipeline(transaction=True)
            pipeline.xinfo_stream(self.stream)
            pipeline.xread({self.stream: str(place.id)}, count=self.config.read_count)
            said, answer = pipeline.execute(raise_on_error=False)
            if isinstance(said, Exception):
                if "no such key" in said_of(said):
                    return None, ()
                raise said
            if isinstance(answer, Exception):
                raise answer
            return StreamInfo.from_answer(said), answer[0][1] if answer else ()

    def _lose(self, place: Place, what: str) -> None:
        where = Where(stage=Stage.READ, object=self.stream, position=f"entry {place.id}")
        if self.config.data_loss is DataLoss.FAIL:
            raise SourceError(
                f"{what}; keep entries longer, and to go on with what there is set data.loss=continue", where
            )
        self.note_lost(f"{where}: {what}")
