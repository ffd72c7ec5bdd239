"""What a consumer group has delivered, and nobody has acknowledged: taken over, once what has gone of it is counted."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.entry import Entries
from headrace.sources.redis.groups import acknowledge
from headrace.sources.redis.ids import FIRST, StreamId
from headrace.sources.redis.losses import Losses

__all__ = ["PendingEntries"]

START = b"0-0"


@attrs.define
class PendingEntries:
    """The pending entries of one stream that are a consumer's own, or that others have had for long enough.

    Entries that are trimmed or deleted while they are pending have no fields any more, and a server forgets them when
    somebody takes them over. So all of them are looked for first, and are lost before anything is given out.
    """

    client: RedisClient
    config: RedisConfig
    stream: str
    consumer: str
    losses: Losses
    _others: set[bytes] = attrs.field(factory=set, init=False)
    """What has gone and is still in the hands of others: no loss of ours."""

    def read(self) -> Iterator[Entries]:
        """What is there: first this consumer's own, then what it takes over. An entry comes once."""
        self._lose_what_has_gone()
        mine: set[bytes] = set()
        if self.config.claim_idle_ms:
            for entries in self._own():
                mine.update(entry_id for entry_id, _ in entries)
                yield entries
        for entries in self._claimed():
            yield [entry for entry in entries if entry[0] not in mine]

    def _own(self) -> Iterator[Entries]:
        after = str(FIRST)
        while entries := self._history(after):
            after = entries[-1][0].decode()
            if not all(fields for _, fields in entries):
                self._lose_what_has_gone()  # it went since
            yield [entry for entry in entries if entry[1]]

    def _history(self, after: str) -> Entries:
        answer = self.client.xreadgroup(
            self.config.group, self.consumer, {self.stream: after}, count=self.config.read_count
        )
        entries: Entries = answer[0][1] if answer else ()
        return entries

    def _claimed(self) -> Iterator[Entries]:
        start = START
        while True:
            start, entries, *dropped = self.client.xautoclaim(
                self.stream,
                self.config.group,
                self.consumer,
                self.config.claim_idle_ms,
                start_id=start,
                count=self.config.read_count,
            )
            # What went since: servers from 7 on have dropped it by now, and say so.
            self._lose([entry_id for entry_id in (dropped[0] if dropped else ()) if entry_id not in self._others])
            if not all(fields for _, fields in entries):
                self._lose_what_has_gone()
            yield [entry for entry in entries if entry[1]]
            if start == START:
                return

    def _lose_what_has_gone(self) -> None:
        """Count what is pending and has gone; where a run goes on without it, it is pending no more."""
        lost: list[bytes] = []
        for page in self._pages():
            gone = self._gone(page)
            ours = [one["message_id"] for one in gone if self._is_ours(one)]
            self._others.update(one["message_id"] for one in gone if not self._is_ours(one))
            lost += ours
        self._lose(lost)
        acknowledge(self.client, self.config, self.stream, lost)

    def _pages(self) -> Iterator[Sequence[dict[str, Any]]]:
        first = "-"
        while page := self.client.xpending_range(
            self.stream, self.config.group, min=first, max="+", count=self.config.read_count
        ):
            yield page
            first = f"({page[-1]['message_id'].decode()}"

    def _gone(self, page: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        pipeline = self.client.pipeline(transaction=False)
        for one in page:
            pipeline.xrange(self.stream, one["message_id"], one["message_id"])
        return [one for one, found in zip(page, pipeline.execute(), strict=True) if not found]

    def _is_ours(self, one: dict[str, Any]) -> bool:
        is_own: bool = one["consumer"] == self.consumer.encode()
        return is_own or one["time_since_delivered"] >= self.config.claim_idle_ms

    def _lose(self, lost: Sequence[bytes]) -> None:
        if lost:
            self.losses.lose(
                StreamId.parse(lost[0]),
                f"{len(lost)} entries that the group {self.config.group} had been given, from this one on, were "
                "trimmed or deleted before they were acknowledged",
            )
