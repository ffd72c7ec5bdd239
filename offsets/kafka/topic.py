"""The offsets topic itself: created compacted, refused if it is not."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic, ResourceType

from headrace.framework.errors import NotCompactedError, OffsetsError, RetriableError
from headrace.offsets.kafka.cleaning import CLEANED_SOON
from headrace.offsets.kafka.patience import timed_out
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["COMPACT", "cleanup_policy", "ensure_offsets_topic"]

COMPACT = "compact"
"""The policy of a topic that forgets nothing but what was written anew."""


REACH_WITHIN_S = 30.0
ASK_AGAIN_AFTER_S = 5.0


def ensure_offsets_topic(settings: KafkaSettings) -> int:
    """Make the connector's offsets topic if it is missing; how many partitions it has.

    Raises `NotCompactedError` for a topic that exists and would forget, `RetriableError` if Kafka cannot be reached.
    """
    admin = AdminClient(settings.admin_config())
    name = settings.offsets_topic
    with _answered(settings, name):
        cluster = admin.list_topics(timeout=REACH_WITHIN_S)
        if name not in cluster.topics:
            _create(admin, settings, brokers=len(cluster.brokers))
        _refuse_uncompacted(admin, name)
        return len(admin.list_topics(name, timeout=REACH_WITHIN_S).topics[name].partitions)


def cleanup_policy(settings: KafkaSettings, name: str) -> str:
    """What becomes of old records in a topic, in Kafka's words; anything but `compact` forgets progress.

    Raises `RetriableError` if Kafka cannot be reached, or does not say.
    """
    with _answered(settings, name):
        return _policy(AdminClient(settings.admin_config()), name)


@contextmanager
def _answered(settings: KafkaSettings, name: str) -> Iterator[None]:
    try:
        yield
    except (KafkaException, TimeoutError) as error:
        said = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
        raise RetriableError(
            f"Kafka at {settings.bootstrap_servers} does not answer for the offsets topic {name}: {said}; "
            "check bootstrap.servers and that the broker runs"
        ) from error


def _create(admin: AdminClient, settings: KafkaSettings, *, brokers: int) -> None:
    topic = NewTopic(
        settings.offsets_topic,
        num_partitions=settings.offsets_partitions,
        replication_factor=min(settings.offsets_replication, brokers),
        config=dict(CLEANED_SOON),
    )
    try:
        admin.create_topics([topic])[settings.offsets_topic].result(REACH_WITHIN_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise OffsetsError(
                f"the offsets topic {settings.offsets_topic} could not be created: {error.args[0].str()}; "
                "create it with cleanup.policy=compact, or allow this user to"
            ) from error
    _await_leaders(admin, settings)


def _await_leaders(admin: AdminClient, settings: KafkaSettings) -> None:
    deadline = time.monotonic() + REACH_WITHIN_S
    while time.monotonic() < deadline:
        topic = admin.list_topics(settings.offsets_topic, timeout=REACH_WITHIN_S).topics[settings.offsets_topic]
        if topic.partitions and all(partition.leader >= 0 for partition in topic.partitions.values()):
            return
        time.sleep(0.02)
    raise RetriableError(f"the new offsets topic {settings.offsets_topic} has no leaders after {REACH_WITHIN_S:.0f} s")


def _refuse_uncompacted(admin: AdminClient, name: str) -> None:
    policy = _policy(admin, name)
    if policy != COMPACT:
        raise NotCompactedError(
            f"the offsets topic {name} has cleanup.policy={policy} and would forget progress: "
            "alter it to cleanup.policy=compact, or name another topic in offset.storage.topic"
        )


def _policy(admin: AdminClient, name: str) -> str:
    return str(_settings_of(admin, name)["cleanup.policy"].value)


def _settings_of(admin: AdminClient, name: str) -> Mapping[str, ConfigEntry]:
    """The topic's settings. A broker that is only just back may not answer some questions: they are asked again."""
    resource, ends = ConfigResource(ResourceType.TOPIC, name), time.monotonic() + REACH_WITHIN_S
    while True:
        asked = admin.describe_configs([resource], request_timeout=ASK_AGAIN_AFTER_S)[resource]
        try:
            found: Mapping[str, ConfigEntry] = asked.result(2 * ASK_AGAIN_AFTER_S)
        except (KafkaException, TimeoutError) as error:
            may_pass = isinstance(error, TimeoutError) or timed_out(error)
            if not may_pass or time.monotonic() > ends:
                raise
        else:
            return found
