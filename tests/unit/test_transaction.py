"""The open transaction of a task, by itself."""

import time

import attrs
import pytest

from headrace.converters.bytes import BytesConverter
from headrace.framework.errors import SinkError
from headrace.framework.metrics import TaskMetrics
from headrace.framework.record import RecordBatch
from headrace.framework.worker.boundary import BoundaryRule
from headrace.framework.worker.pipeline import Pipeline
from headrace.framework.worker.transaction import TaskTransaction
from headrace.offsets.manager import OffsetManager
from headrace.testing.memory import MemoryKafka, MemoryWriter

INTERVAL_S = 0.05


@attrs.define
class HalfWriter(MemoryWriter):
    """Takes the first record of a batch of several, and fails."""

    def write(self, topic, key, values, **options):
        super().write(topic, key, values[:1], **options)
        if len(values) > 1:
            raise SinkError("half of it was taken")


def batch(*values):
    return RecordBatch(source_partition={"o": 1}, source_offset={"position": len(values)}, topic="t", values=values)


def transaction_with(rule, writer, kafka, changed=lambda: None):
    return TaskTransaction(
        Pipeline(BytesConverter(), BytesConverter(), writer),
        OffsetManager(kafka.offsets),
        rule,
        TaskMetrics(),
        changed,
        lambda: None,
        lambda: False,
    )


def test_what_a_source_has_last_is_not_kept_waiting_for_more():
    """Where the source has nothing right now, the transaction is due soon after its first record; the clock is told."""
    kafka, told = MemoryKafka(), []
    rule = BoundaryRule(interval_s=3600, dry_s=60)
    transaction = transaction_with(rule, MemoryWriter(kafka), kafka, lambda: told.append(transaction.due_in_s()))

    transaction.add(batch(b"last"))
    transaction.nothing_right_now()
    transaction.nothing_right_now()

    begun, dry = told
    assert begun > 60 >= dry > 0
    assert kafka.values() == []


def test_the_interval_is_the_longest_wait_also_of_a_source_with_nothing():
    """An interval that is shorter than the wait of a source that has nothing right now holds for that one, too."""
    assert BoundaryRule(interval_s=0.01, dry_s=60).longest_s(dry=True) == 0.01


def test_the_clock_commits_nothing_of_which_a_part_was_sent():
    """A transaction in which the sink has failed is not ended by its age, before or after the failure is dealt with."""
    kafka = MemoryKafka()
    writer = HalfWriter(kafka)
    transaction = transaction_with(BoundaryRule(interval_s=INTERVAL_S), writer, kafka)
    transaction.add(batch(b"whole"))
    with pytest.raises(SinkError):
        transaction.add(batch(b"half", b"lost"))

    time.sleep(INTERVAL_S)
    transaction.commit_if_due()

    assert transaction.due_in_s() == 0
    assert kafka.values() == []


def test_a_full_transaction_is_ended_by_the_clock():
    """It is due at once, whatever its interval, and the clock is told; what made it full is in it."""
    kafka, told = MemoryKafka(), []
    rule = BoundaryRule(interval_s=3600, max_records=2)
    transaction = transaction_with(rule, MemoryWriter(kafka), kafka, lambda: told.append(transaction.due_in_s()))

    transaction.add(batch(b"first", b"second"))
    assert (transaction.is_full, told[-1], kafka.values()) == (True, 0, [])
    transaction.commit_if_due()

    assert (transaction.is_full, kafka.values()) == (False, [b"first", b"second"])


def test_a_full_transaction_takes_nothing_more():
    """Who comes before the clock ends it himself: what he brings is in the next one."""
    kafka = MemoryKafka()
    transaction = transaction_with(BoundaryRule(interval_s=3600, max_records=2), MemoryWriter(kafka), kafka)

    transaction.add(batch(b"first", b"second"))
    transaction.add(batch(b"third"))

    assert kafka.values() == [b"first", b"second"]
