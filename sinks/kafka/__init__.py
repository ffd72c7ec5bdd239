"""Kafka as the sink: records and offsets in one transaction, or at least once.

- `transactional`: the writer of the protocol.
- `at_least_once`: the writer without transactions.
"""

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig, Support
from headrace.framework.sink import Sink, SinkWriter
from headrace.framework.worker.kept import process_identity
from headrace.framework.worker.plan import TaskPlan
from headrace.offsets.kafka.records import Generation
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """Exactly once, unless `exactly.once.support=disabled`."""

    config: SourceCommonConfig

    @classmethod
    @override
    def get_ready(cls) -> None:
        import headrace.sinks.kafka.transactional  # noqa: F401, PLC0415 - Kafka's client comes with it

    @override
    def configure(self, config: SourceCommonConfig) -> None:
        self.config = config

    @property
    @override
    def exactly_once(self) -> bool:
        return self.config.exactly_once_support is not Support.DISABLED

    @override
    def writer(self, plan: TaskPlan) -> SinkWriter:
        from headrace.sinks.kafka.at_least_once import AtLeastOnceKafkaWriter  # noqa: PLC0415 - Kafka comes with it
        from headrace.sinks.kafka.transactional import TransactionalKafkaWriter  # noqa: PLC0415 - as above

        settings = KafkaSettings.of(self.config)
        generation = Generation(generation=plan.generation, owner=plan.owner)
        if self.exactly_once:
            return TransactionalKafkaWriter(
                settings=settings,
                task_id=plan.task_id,
                generation=generation,
                partitions=plan.partitions,
                snapshot=plan.snapshot,
                was_last=plan.last_worker == process_identity(),
            )
        return AtLeastOnceKafkaWriter(
            settings=settings,
            task_id=plan.task_id,
            generation=generation,
            partitions=plan.partitions,
            snapshot=plan.snapshot,
        )
