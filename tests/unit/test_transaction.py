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


def test_the_clock_commits_nothing_of_which_a_part_was_sent():
    """A transaction in which the sink has failed is not ended by its age, before or after the failure is dealt with."""
    kafka = MemoryKafka()
    writer = HalfWriter(kafka)
    transaction = TaskTransaction(
        Pipeline(BytesConverter(), BytesConverter(), writer),
        OffsetManager(kafka.offsets),
        BoundaryRule(interval_s=INTERVAL_S),
        TaskMetrics(),
        lambda: None,
        lambda: None,
        lambda: False,
    )
    transaction.add(batch(b"whole"))
    with pytest.raises(SinkError):
        transaction.add(batch(b"half", b"lost"))

    time.sleep(INTERVAL_S)
    transaction.commit_if_old()

    assert transaction.due_in_s() == 0
    assert kafka.values() == []
