"""Whether the offsets topic is still the one that a run has begun with."""

import time
from typing import TYPE_CHECKING

import attrs
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from headrace.framework.errors import OffsetsError
from headrace.offsets.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["TopicIdentity"]

LOOK_EVERY_S = 3.0
ANSWER_WITHIN_S = 10.0


@attrs.define
class TopicIdentity:
    """Remembers the topic's id, and asks for it again every few seconds. One thread at a time.

    A topic that was deleted and made anew goes on at places that were read already, with other records: its ends alone
    do not show it once it has grown. Where nobody answers, nobody knows: that is for others to see.
    """

    settings: KafkaSettings
    _admin: AdminClient = attrs.field(init=False)
    _known: str | None = attrs.field(default=None, init=False)
    _asked: "Future[TopicDescription] | None" = attrs.field(default=None, init=False)
    _asked_at: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._admin = AdminClient(self.settings.admin_config())

    def check(self) -> None:
        """Ask, and wait for the answer; `OffsetsError` if it is another topic."""
        asked = self._ask()
        try:
            found = asked.result(ANSWER_WITHIN_S)
        except (KafkaException, TimeoutError):
            return
        self._compare(found)

    def look(self) -> None:
        """Ask from time to time, without waiting for the answer: it is looked at when it is there."""
        if self._asked is None:
            if time.monotonic() - self._asked_at >= LOOK_EVERY_S:
                self._asked = self._ask()
        elif self._asked.done():
            asked, self._asked = self._asked, None
            if asked.exception() is None:
                self._compare(asked.result())

    def _ask(self) -> "Future[TopicDescription]":
        self._asked_at = time.monotonic()
        wanted = TopicCollection([self.settings.offsets_topic])
        answers: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            wanted, request_timeout=ANSWER_WITHIN_S
        )
        return answers[self.settings.offsets_topic]

    def _compare(self, found: TopicDescription) -> None:
        topic_id = str(found.topic_id)
        if self._known is None:
            self._known = topic_id
        elif topic_id != self._known:
            raise OffsetsError(
                f"{self.settings.offsets_topic} was deleted and made anew since this run has begun; restore it "
                "(headrace offsets import) before the next run, which would read anew what it does not find there"
            )
