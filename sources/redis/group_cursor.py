"""One stream, read through a consumer group, with an eye on what goes before the group is given it."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from headrace.framework.errors import Where
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.entry import Entries, Place
from headrace.sources.redis.failures import redis_failures, said_of
from headrace.sources.redis.groups import make_group
from headrace.sources.redis.ids import FIRST
from headrace.sources.redis.info import GroupInfo, StreamInfo
from headrace.sources.redis.losses import Losses
from headrace.sources.redis.pending import PendingEntries
from headrace.sources.redis.splits import RedisSplit

__all__ = ["GroupCursor"]

NO_STREAM = "no such key"
NO_GROUP = "NOGROUP"


@attrs.frozen(kw_only=True)
class _Asked:
    """What the server says of a stream and of the group, and what it has delivered, all of the same moment."""

    info: StreamInfo | None = None
    group: GroupInfo | None = None
    entries: Entries = ()


@attrs.define
class GroupCursor:
    """Reads a stream through a group: first what is pending from those who came before, then what is new.

    `warn` is told, in words that do not change, what cannot be known of this stream.
    """

    client: RedisClient
    config: RedisConfig
    split: RedisSplit
    consumer: str
    losses: Losses
    warn: Callable[[str], None]
    has_recovered: bool = attrs.field(default=False, init=False)
    """Whether everything that was pending has been given out."""

    _pending: Iterator[Entries] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pending = self._left_behind()

    def read(self, place: Place) -> tuple[Place, Entries]:
        """The next entries, and where the group stood before they were delivered; none if there are none right now.

        `place` is where it stood when we looked last. What has gone before the group was given it is a `SourceError`,
        and nothing is delivered then; or it is noted where `data.loss` says to go on.
        """
        with redis_failures(Where(stage=Stage.READ, object=self.split.stream)):
            asked = self._asked()
            while asked.info is not None and asked.group is None:
                place = self._make_anew(place, asked.info)
                asked = self._asked()
            if asked.info is None:
                self.losses.miss_the_end(self.split, place)
                return place, ()
            place = self._counted(asked, place)
            if entries := self._next_pending():
                return place, entries
            asked = self._asked(deliver=True)
            return (place, ()) if asked.group is None else (self._counted(asked, place), asked.entries)

    def _make_anew(self, place: Place, info: StreamInfo) -> Place:
        """Make the group on a stream that had it when it was found."""
        self.losses.lose(
            place.id,
            f"the group {self.config.group} is not there any more, and is made anew: it went by itself or with its "
            "stream, and how many entries were lost is not known",
        )
        make_group(self.client, self.config, self.split.stream, info, is_new=True)
        return Place(id=FIRST, records=place.records)

    def _counted(self, asked: _Asked, place: Place) -> Place:
        """Where the group stands, once what it cannot be given any more has been counted."""
        info, group = asked.info, asked.group
        assert info is not None and group is not None  # noqa: S101, PT018 - looked at by those who call this
        if group.delivered < place.id:
            self.losses.lose(
                place.id,
                f"the group {self.config.group} stands before it, at {group.delivered}: the group was made anew or set "
                "back, or its server has lost entries, and how many were lost is not known",
            )
            place = Place(id=group.delivered, records=place.records)
        passed = group.passed(info, place.passed if place.id == group.delivered else None)
        if passed is None:
            self.warn(
                f"{self.split.stream}: the server does not say how many entries lie before the group "
                f"{self.config.group}: what is trimmed before the group is given it will not be missed"
            )
        elif info.added is not None and info.begins_behind(group.delivered):
            lost = info.added - passed - info.length
            if lost > 0:
                self.losses.lose(
                    group.delivered,
                    f"{lost} entries behind it were trimmed or deleted before the group {self.config.group} was given "
                    "them",
                )
            passed += lost
        return attrs.evolve(place, id=group.delivered, passed=passed)

    def _asked(self, *, deliver: bool = False) -> _Asked:
        answers = self._answers(deliver=deliver)
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        if any(NO_STREAM in said_of(error) for error in errors):
            return _Asked()
        for error in errors:
            if NO_GROUP not in said_of(error):
                raise error
        info, group = StreamInfo.from_answer(answers[0]), GroupInfo.named(self.config.group, answers[1])
        found = answers[2] if deliver and not errors else ()
        return _Asked(info=info, group=group, entries=found[0][1] if found else ())

    def _answers(self, *, deliver: bool) -> list[Any]:
        name, config = self.split.stream, self.config
        calls: list[Callable[[RedisClient], Any]] = [
            lambda server: server.xinfo_stream(name),
            lambda server: server.xinfo_groups(name),
        ]
        if deliver:
            calls.append(
                lambda server: server.xreadgroup(config.group, self.consumer, {name: ">"}, count=config.read_count)
            )
        if config.is_cluster:
            return [_answer(self.client, call) for call in calls]
        pipeline = self.client.pipeline(transaction=True)
        for call in calls:
            call(pipeline)
        answers: list[Any] = pipeline.execute(raise_on_error=False)
        return answers

    def _next_pending(self) -> Entries:
        from redis import exceptions  # noqa: PLC0415 - comes with the extra

        try:
            return next(self._pending, ())
        except exceptions.ResponseError as error:
            if NO_GROUP not in said_of(error):
                raise
            return ()

    def _left_behind(self) -> Iterator[Entries]:
        """What was delivered before, and not acknowledged; what has gone of it is a loss before any of it comes."""
        pending = PendingEntries(self.client, self.config, self.split.stream, self.consumer, self.losses)
        yield from filter(None, pending.read())
        self.has_recovered = True


def _answer(server: RedisClient, call: Callable[[RedisClient], Any]) -> Any:
    """What a server says, or the error with which it refuses."""
    from redis import exceptions  # noqa: PLC0415 - comes with the extra

    try:
        return call(server)
    except exceptions.ResponseError as error:
        return error
