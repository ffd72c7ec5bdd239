"""The stored progress as it is, for whoever only looks at it."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headrace.framework.errors import RetriableError
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView

__all__ = ["count_partitions", "read_view"]

REACH_WITHIN_S = 30.0


def read_view(settings: KafkaSettings) -> KafkaOffsetView | None:
    """The connector's entries up to the high watermark, as they are now; None where there is no offsets topic.

    Nothing is written: no topic is made, no transactional id taken, no group joined. `RetriableError` if Kafka cannot
    be reached.
    """
    partitions = count_partitions(settings)
    if partitions is None:
        return None
    view = KafkaOffsetView(settings.connector)
    log = OffsetsLog(settings, view.take, dict.fromkeys(range(partitions), 0))
    try:
        log.read_to_high_watermark()
    finally:
        log.close()
    return view


def count_partitions(settings: KafkaSettings) -> int | None:
    """How many partitions the offsets topic has; None where there is none."""
    admin = AdminClient(settings.admin_config())
    try:
        # Asking for the topic by its name could create it: brokers do that where they are allowed to.
        found = admin.list_topics(timeout=REACH_WITHIN_S).topics.get(settings.offsets_topic)
    except KafkaException as error:
        raise RetriableError(
            f"Kafka at {settings.bootstrap_servers} does not answer for the offsets topic {settings.offsets_topic}: "
            f"{error.args[0].str()}; check bootstrap.servers and that the broker runs"
        ) from error
    return len(found.partitions) if found is not None and found.partitions else None
