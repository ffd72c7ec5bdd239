"""How a driver hears from its running tasks: that they have begun, and that one is through and others are not."""

import functools
import json
import logging

import attrs
from confluent_kafka import KafkaException, Producer

from headrace.offsets.kafka.records import BegunWord, EndedWord, begun_key, ended_key
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["TaskWords"]

log = logging.getLogger(__name__)

SENT_WITHIN_S = 0.2
KEPT = 4


@attrs.frozen
class TaskWords:
    """Puts the words of tasks on the offsets topic. Safe to use from several threads.

    They are hints, so they are in no transaction, and none is missed: without it the driver learns the same from the
    report, when the whole batch is over. A producer stays with the process, for the words of later batches.
    """

    settings: KafkaSettings

    def tell(self, task_id: int, word: BegunWord | EndedWord) -> None:
        """Say it; returns once it is sent, or soon: the rest is done beside what comes next in this process."""
        key = begun_key if isinstance(word, BegunWord) else ended_key
        try:
            producer = _producer(json.dumps(self._config(), sort_keys=True))
            producer.produce(self.settings.offsets_topic, word.encode(), key(self.settings.connector, task_id))
            unsent = producer.flush(SENT_WITHIN_S)
        except (KafkaException, BufferError) as error:
            log.info("%s, task %d: a word to the driver was not sent: %s", self.settings.connector, task_id, error)
        else:
            if unsent:
                log.info("%s, task %d: a word to the driver is not sent yet", self.settings.connector, task_id)

    def _config(self) -> dict[str, object]:
        # Quick rather than safe: a word that is late is none, and one that is said twice does no harm.
        quick = {"linger.ms": 0, "message.timeout.ms": 5000, "enable.idempotence": False, "acks": 1}
        wanted = {**self.settings.producer_config(), **quick}
        return {name: value for name, value in wanted.items() if name != "logger"}


@functools.lru_cache(maxsize=KEPT)
def _producer(config: str) -> Producer:
    return Producer({**json.loads(config), "logger": log})
