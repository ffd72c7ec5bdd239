"""A bounded run whose micro-batches finish thousands of splits."""

import json

import attrs

from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.record import RecordBatch
from headrace.framework.splits import (
    Boundedness,
    SourceReader,
    Split,
    SplitEnumerator,
    SplitSerializer,
    SplitSource,
)
from headrace.framework.worker.execute import make_source
from headrace.offsets.key import OffsetManagerKey
from headrace.testing import create_topic, read_topic
from headrace.testing.engines import Engine
from headrace.testing.trial import fresh_name

MANY = 2000


@attrs.frozen
class Drop(Split):
    number: int

    @property
    def split_id(self):
        return f"drop-{self.number}"

    @property
    def source_partition(self):
        return {"drop": self.number}


class DropSerializer(SplitSerializer):
    version = 1

    def serialize(self, split):
        return json.dumps(split.number).encode()

    def deserialize(self, _version, data):
        return Drop(json.loads(data))


class DropEnumerator(SplitEnumerator):
    def __init__(self, context):
        self.context = context

    def start(self):
        self.context.call_async(lambda: [Drop(number) for number in range(MANY)], self.take_in)

    def take_in(self, drops):
        known = self.context.offsets.get([OffsetManagerKey(drop.source_partition) for drop in drops])
        readers = self.context.current_parallelism()
        for drop in drops:
            if OffsetManagerKey(drop.source_partition) not in known:
                self.context.assign_split(drop, drop.number % readers)
        for reader_id in range(readers):
            self.context.signal_no_more_splits(reader_id)

    def close(self):
        pass


class DropReader(SourceReader):
    def __init__(self, context):
        self.context = context
        self.left = []

    def start(self):
        pass

    def add_splits(self, splits):
        self.left += splits

    def poll(self):
        if not self.left:
            return ()
        drop = self.left.pop(0)
        self.context.split_finished(drop.split_id)
        return (
            RecordBatch(
                source_partition=drop.source_partition,
                source_offset={"recordCount": 1, "complete": True},
                topic=self.context.task.connector,
                values=(b"%d" % drop.number,),
            ),
        )

    def snapshot(self):
        return tuple(self.left)

    def close(self):
        pass


class DropSource(SplitSource):
    boundedness = Boundedness.BOUNDED
    split_serializer = DropSerializer()

    def configure(self, props):
        return SourceCommonConfig.from_props(props)

    def create_enumerator(self, context, _state):
        return DropEnumerator(context)

    def create_reader(self, context):
        return DropReader(context)


def test_two_thousand_finished_splits_end_a_bounded_run(kafka_bootstrap_servers):
    """The run ends by itself, its summary has counted every split once, and the next run finds nothing to do."""
    registry.remember("tests:Drops", DropSource)
    name = fresh_name("many-splits")
    create_topic(kafka_bootstrap_servers, name)
    props = {
        "name": name,
        "connector.class": "tests:Drops",
        "bootstrap.servers": kafka_bootstrap_servers,
        "topic": name,
        "offset.storage.topic": f"{name}-offsets",
        "offset.storage.partitions": "3",
        "tasks.max": "2",
        "transaction.boundary": "poll",
        "max.poll.records": "50",
    }
    assert isinstance(make_source(props)[0], DropSource)

    summary = Engine("local").run(props)
    again = Engine("local").run(props)

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert (summary.records, summary.objects, summary.skipped) == (MANY, MANY, 0)
    assert sorted(task.objects for task in summary.tasks) == [MANY // 2, MANY // 2]
    assert (again.state, again.records) == ("COMPLETED", 0)
    values = [int(message.value()) for message in read_topic(kafka_bootstrap_servers, name)]
    assert sorted(values) == list(range(MANY))
