"""Claims that are overtaken by another one while they are under way."""

import threading
import uuid

import pytest

from headrace.framework.errors import TakenOverError
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey
from headrace.sinks.kafka.transactional import TransactionalKafkaWriter
from headrace.testing import EmbeddedKafka, create_topic, read_topic
from headrace.testing.kafka_proxy import INIT_PRODUCER_ID, KafkaProxy

PARTITIONS = 2
TASKS = 40
AT_ONCE = 16
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def proxied():
    with KafkaProxy() as proxy, EmbeddedKafka(port=proxy.broker_port, properties=proxy.broker_properties) as kafka:
        yield proxy, kafka


def as_sent(text):
    """A text with its length, as the protocol has it: an id that only begins in the same way is another one."""
    return bytes([len(text) + 1]) + text.encode()


def test_a_start_that_was_taken_over_leaves_the_newer_run_alone(proxied):
    """Overtaken among its fencing, an older start ends at once and fences none of the newer run's tasks after that."""
    proxy, kafka = proxied
    name = f"overtaken-{uuid.uuid4().hex[:8]}"
    settings = KafkaSettings(
        bootstrap_servers=kafka.bootstrap_servers, connector=name, offsets_topic=f"{name}-o", offsets_partitions=2
    )
    ensure_offsets_topic(settings)
    create_topic(kafka.bootstrap_servers, name)
    outcomes = []

    def claim():
        try:
            outcomes.append(Claim.take(settings, partitions=PARTITIONS, tasks=TASKS))
        except TakenOverError as error:
            outcomes.append(error)

    held = [
        proxy.hold(INIT_PRODUCER_ID, containing=as_sent(settings.transactional_id(task_id)))
        for task_id in range(AT_ONCE)
    ]
    older = threading.Thread(target=claim)
    older.start()
    assert all(one.reached.wait(WITHIN_S) for one in held)
    newer = Claim.take(settings, partitions=PARTITIONS, tasks=TASKS)
    last = TransactionalKafkaWriter(
        settings=settings,
        task_id=TASKS - 1,
        generation=newer.generation,
        partitions=PARTITIONS,
        snapshot=OffsetsSnapshot(),
    )
    last.open()
    last.write(name, None, [b"1"])
    for one in held:
        one.release.set()
    older.join()
    last.commit({OffsetManagerKey({"o": 1}): {"recordCount": 1}}, {})

    assert isinstance(outcomes[0], TakenOverError)
    assert [message.value() for message in read_topic(kafka.bootstrap_servers, name)] == [b"1"]
    last.close()
    newer.close()
