"""What finished objects take on the broker's disk once its cleaner has run: it is let run, and looked at."""

import hashlib
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.rollup import RollUp
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.cleaning import CLEANED_SOON, TURNS_AFTER_S
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.records import Counters, counter_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.sources.s3 import S3Source
from headrace.sources.s3.entry import S3OffsetEntry
from headrace.sources.s3.objects import S3Object, version_name
from headrace.testing import EmbeddedKafka

pytestmark = pytest.mark.slow

OBJECTS = 100_000
IN_A_TRANSACTION = 5_000
PER_OBJECT = 8
OF_THE_TOPIC = 1_500_000
"""1024 shards with their keys, and six small files for each of 25 partitions, a block of the disk each."""
WITHIN_S = 60

QUICK_CLEANER = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "1"}
TIME_IS_OVER = {"segment.ms": "1", "max.compaction.lag.ms": "1", "delete.retention.ms": "1"}

PROPS = {
    "name": "orders",
    "connector.class": "s3",
    "topic": "orders",
    "tasks.max": "2",
    "aws.s3.bucket.name": "bucket",
    "offset.storage.topic": "orders-offsets",
}


@pytest.fixture
def kafka():
    with EmbeddedKafka(properties=QUICK_CLEANER) as broker:
        yield broker


class Clock:
    """Shows the time that it is set to."""

    now = 0.0

    def __call__(self):
        return self.now


def found(number):
    etag = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
    return S3Object(bucket="bucket", key=f"in/2026/{number:09d}.jsonl", etag=etag, size=8, last_modified=1_767_225_600)


def write_entries(settings, task_id, numbers):
    """Finish these objects, as the transactions of a task do."""
    producer, view = TransactionalProducer(settings, task_id), KafkaOffsetView(settings.connector)
    producer.init()
    for start in range(0, len(numbers), IN_A_TRANSACTION):
        entries = [S3OffsetEntry.for_object(found(number)) for number in numbers[start : start + IN_A_TRANSACTION]]
        offsets = {entry.get_manager_key(): entry.finished().get_properties() for entry in entries}
        for key, value in view.records_for(offsets):
            producer.write(settings.offsets_topic, key, [value])
        producer.write(settings.offsets_topic, counter_key(settings.connector, task_id), [Counters().encode()])
        producer.commit()
    producer.close()


def let_time_pass(settings):
    """From now on everything on the topic is as old as it has to be; nothing else of its settings is changed."""
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in TIME_IS_OVER.items()
    ]
    wanted = ConfigResource(ResourceType.TOPIC, settings.offsets_topic, incremental_configs=entries)
    admin.incremental_alter_configs([wanted])[wanted].result(30)


def await_at_most(kafka, topic, limit):
    deadline, pause = time.monotonic() + WITHIN_S, threading.Event()
    while (size := kafka.bytes_on_disk(topic)) > limit:
        assert time.monotonic() < deadline, f"{topic} takes {size} bytes, and is to take {limit}"
        pause.wait(0.1)


def test_finished_objects_take_eight_bytes_each_once_the_cleaner_has_run(kafka):
    """Of their entries, and of the tombstones, nothing stays on the disk; every question has its answer as before."""
    props = PROPS | {"bootstrap.servers": kafka.bootstrap_servers}
    settings = KafkaSettings.of(SourceCommonConfig.from_props(props))
    partitions = ensure_offsets_topic(settings)
    for task_id in (0, 1):
        write_entries(settings, task_id, range(task_id, OBJECTS, 2))
    source, clock = S3Source(), Clock()
    source.configure(props)
    claim = Claim.take(settings, partitions=partitions, tasks=2)
    assert len(claim.view.entries) == OBJECTS
    housekeeping = RollUp(source, claim, min_entries=OBJECTS, clock=clock)
    host = EnumeratorHost("orders", 2, claim.view, bounded=False)
    clock.now = 60.0
    housekeeping.look(host)
    rolled_up_at = clock.now
    assert claim.view.entries == {}
    assert kafka.bytes_on_disk(settings.offsets_topic) > 100 * OBJECTS

    let_time_pass(settings)
    entries_gone, tombstones_gone = OF_THE_TOPIC + 40 * OBJECTS, OF_THE_TOPIC + PER_OBJECT * OBJECTS
    for after, limit in zip(TURNS_AFTER_S, (entries_gone, tombstones_gone), strict=True):
        clock.now = rolled_up_at + after
        housekeeping.look(host)
        await_at_most(kafka, settings.offsets_topic, limit)
    claim.close()

    view = read_view(settings)
    pieces = [found(number) for number in range(OBJECTS + 1000)]
    standings = [
        view.rolled_up(S3OffsetEntry.for_object(one).get_manager_key(), version_name(one.etag, one.size))
        for one in pieces
    ]
    assert standings == [True] * OBJECTS + [None] * 1000
    first = S3OffsetEntry.for_object(pieces[0]).get_manager_key()
    assert view.rolled_up(first, version_name("another", 8)) is False
    assert (view.entries, view.generation.generation) == ({}, claim.generation.generation)


def test_a_start_beside_a_roll_up_has_the_cleaner_go_on(kafka):
    """A run that ended right after its roll-up leaves the cleaning to the next one, which begins it as it starts."""
    props = PROPS | {"bootstrap.servers": kafka.bootstrap_servers}
    settings = KafkaSettings.of(SourceCommonConfig.from_props(props))
    partitions = ensure_offsets_topic(settings)
    write_entries(settings, 0, range(20_000))
    source, clock = S3Source(), Clock()
    source.configure(props)
    for at_end, limit in ((True, None), (False, OF_THE_TOPIC + 40 * 20_000)):
        claim = Claim.take(settings, partitions=partitions, tasks=2)
        host = EnumeratorHost("orders", 2, claim.view, bounded=False)
        housekeeping = RollUp(source, claim, min_entries=1, clock=clock)
        clock.now += 60.0
        housekeeping.look(host, is_end=at_end)
        claim.close()
        if limit is None:
            assert kafka.bytes_on_disk(settings.offsets_topic) > 100 * 20_000
            let_time_pass(settings)
        else:
            await_at_most(kafka, settings.offsets_topic, limit)


def test_the_topic_is_created_with_what_the_cleaner_needs(kafka):
    """A topic of ours has the settings that the cleaning is built on, tombstones that go after an hour among them."""
    settings = KafkaSettings.of(SourceCommonConfig.from_props(PROPS | {"bootstrap.servers": kafka.bootstrap_servers}))
    ensure_offsets_topic(settings)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, settings.offsets_topic)
    told = admin.describe_configs([resource])[resource].result(30)
    wanted = {
        "cleanup.policy": "compact",
        "segment.ms": "600000",
        "segment.bytes": "16777216",
        "min.cleanable.dirty.ratio": "0.1",
        "max.compaction.lag.ms": "600000",
        "delete.retention.ms": "3600000",
    }
    assert {name: told[name].value for name in wanted} == wanted == dict(CLEANED_SOON)
    first, second = TURNS_AFTER_S
    assert first > int(wanted["segment.ms"]) / 1000
    assert second >= 2 * first + int(wanted["delete.retention.ms"]) / 1000
