"""How a running task hears from its driver: it tails the partition of the control record."""

import logging
import threading
from collections.abc import Callable

import attrs
from confluent_kafka import Consumer, TopicPartition

from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.records import Control, Generation, control_key
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["ControlTail"]

log = logging.getLogger(__name__)

LOOK_S = 0.05


@attrs.define(kw_only=True)
class ControlTail:
    """Hands on what the driver of `generation` says, from the positions of a plan on; one per worker process.

    It reads uncommitted records, so it hears a word while the driver's transaction is still open: a hint may come
    early, and one of another run is no hint. Losing the tail loses no record, a batch then ends by its clock.
    """

    settings: KafkaSettings
    partitions: int
    positions: "dict[int, int]"
    generation: Generation
    hear: Callable[[Control], None]
    _ended: threading.Event = attrs.field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        """Begin to listen."""
        self._thread = threading.Thread(target=self._listen, name="headrace-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _listen(self) -> None:
        key = control_key(self.settings.connector)
        partition = partition_for(key, self.partitions)
        consumer = Consumer(
            {
                **self.settings.consumer_config(),
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "latest",
                "enable.partition.eof": False,
            }
        )
        try:
            start = self.positions.get(partition, 0)
            consumer.assign([TopicPartition(self.settings.offsets_topic, partition, start)])
            while not self._ended.is_set():
                message = consumer.poll(LOOK_S)
                if message is None:
                    continue
                error, value = message.error(), message.value()
                if error is not None:
                    log.info("%s: the control record: %s", self.settings.connector, error.str())
                elif message.key() == key and isinstance(value, bytes):
                    self._take(Control.decode(value))
        finally:
            consumer.close()

    def _take(self, control: Control) -> None:
        if (control.generation, control.owner) == (self.generation.generation, self.generation.owner):
            self.hear(control)
