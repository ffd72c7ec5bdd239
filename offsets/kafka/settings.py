"""How to reach Kafka, for every client that a connector needs; picklable, so that it travels to the executors."""

import logging
from collections.abc import Mapping
from typing import Any, Self

import attrs

from headrace.framework.config import Boundary, SourceCommonConfig

__all__ = ["KafkaSettings"]

log = logging.getLogger("headrace.kafka")

DEFAULT_REPLICATION = 3
# Below that, librdkafka tells of every retry; what comes of it, the calls themselves say.
ERRORS_ONLY = 3
# A driver writes much of the same at once: a tombstone for everything that it rolls up.
SMALL = {"compression.type": "lz4"}
QUEUE_KB = 64 * 1024

QUICK = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 500, "socket.keepalive.enable": True}


@attrs.frozen(kw_only=True)
class KafkaSettings:
    """A connector's Kafka: where it is, what the user overrides, and the names that the protocol uses."""

    bootstrap_servers: str
    connector: str
    offsets_topic: str = "headrace-offsets"
    offsets_partitions: int = 25
    offsets_replication: int = 3
    transaction_timeout_ms: int = 30_000
    id_prefix: str = "headrace"
    whole_objects: bool = False
    producer: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    consumer: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    admin: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    @classmethod
    def of(cls, config: SourceCommonConfig) -> Self:
        """Those of a connector's configuration."""
        return cls(
            bootstrap_servers=config.bootstrap_servers,
            connector=config.name,
            offsets_topic=config.offset_storage_topic,
            offsets_partitions=config.offset_storage_partitions,
            offsets_replication=config.offset_storage_replication_factor or DEFAULT_REPLICATION,
            transaction_timeout_ms=config.transaction_timeout_ms,
            id_prefix=config.transactional_id_prefix,
            whole_objects=config.transaction_boundary is Boundary.OBJECT,
            producer=config.producer_overrides,
            consumer=config.consumer_overrides,
            admin=config.admin_overrides,
        )

    def transactional_id(self, holder: int | str) -> str:
        """The id of task number `holder`, or of `"driver"`."""
        return f"{self.id_prefix}-{self.offsets_topic}-{self.connector}-{holder}"

    def admin_config(self) -> dict[str, Any]:
        """For an AdminClient."""
        return {**self._common(), **self.admin}

    def consumer_config(self) -> dict[str, Any]:
        """For a reader of committed records that is assigned to partitions and joins no group."""
        return {
            **self._common(),
            "fetch.wait.max.ms": 10,
            **self.consumer,
            "group.id": self.transactional_id("reader"),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }

    def producer_config(self) -> dict[str, Any]:
        """For a producer that places records as Kafka Connect's do."""
        return {
            **self._common(),
            # A commit flushes, and waits for no linger: it fills the requests, and holds nothing up. Where a record
            # waits longer than this for the requests before it, the library's thread spins.
            "linger.ms": 100,
            "queue.buffering.max.messages": 500_000,
            # A queue has to hold the largest record, or that would wait for room for ever.
            "queue.buffering.max.kbytes": max(QUEUE_KB, int(self.producer.get("message.max.bytes", 0)) // 512),
            **self.producer,
            "partitioner": "murmur2_random",
            "acks": "all",
            "enable.idempotence": True,
        }

    def transactional_config(self, holder: int | str) -> dict[str, Any]:
        """For a producer with the transactional id of `holder`."""
        return {
            **(SMALL if holder == "driver" else {}),
            **self.producer_config(),
            # The commit says whether all went well; a report of each record would only be passed around.
            "delivery.report.only.error": True,
            "transactional.id": self.transactional_id(holder),
            "transaction.timeout.ms": self.transaction_timeout_ms,
        }

    def _common(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap_servers, **QUICK, "logger": log, "log_level": ERRORS_ONLY}
