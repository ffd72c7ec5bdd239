"""A reader as a task: what it gives back."""

import attrs
import pytest

from headrace.framework.backoff import BackoffConfig
from headrace.framework.distribution import ObjectHashDistribution, TaskShare
from headrace.framework.errors import RetriableError
from headrace.framework.metrics import TaskMetrics
from headrace.framework.record import SourceRecord
from headrace.framework.splits import SourceReader, Split
from headrace.framework.task import TaskContext
from headrace.framework.worker.plan import TaskReport
from headrace.framework.worker.split_task import SplitSourceTask
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore


@attrs.frozen
class Piece(Split):
    name: str

    @property
    def split_id(self):
        return self.name

    @property
    def source_partition(self):
        return {"piece": self.name}


class Reader(SourceReader):
    """Yields a record of its first piece, gives that back, and fails if the source is to fail."""

    def __init__(self, context, *, fails):
        self.context, self.fails, self.splits = context, fails, []

    def add_splits(self, splits):
        self.splits.extend(splits)

    def snapshot(self):
        return tuple(self.splits)

    def poll(self):
        split = self.splits.pop(0)
        self.context.give_back([split.split_id])
        if self.fails:
            raise RetriableError("the source is away")
        return [SourceRecord(source_partition=split.source_partition, source_offset={}, topic="t", value=b"v")]


@attrs.define
class Source:
    """As much of a source as the task needs; it keeps its readers."""

    fails: bool = False
    readers: list = attrs.field(factory=list)

    def create_reader(self, context):
        self.readers.append(Reader(context, fails=self.fails))
        return self.readers[-1]


def task_of(source, left):
    task = SplitSourceTask(source, {name: Piece(name) for name in "ab"}, leave=lambda: left.append("left"))
    task.context = TaskContext(
        connector="c",
        task_id=0,
        tasks_max=1,
        offsets=OffsetManager(MemoryOffsetStore()),
        distribution=TaskShare(ObjectHashDistribution(), 0, 1),
        metrics=TaskMetrics(),
    )
    return task


def told(task):
    report = TaskReport(task_id=0)
    task.tell(report)
    return report.given_back


def test_what_came_with_it_is_the_last_that_is_taken():
    """What a reader returns while it gives a split back still goes out; then the task leaves, and asks no more."""
    left = []
    task = task_of(Source(), left)
    iterator = task.get_iterator(BackoffConfig())

    first = next(iterator)
    before = list(left)
    rest = list(iterator)

    assert first.source_partition == {"piece": "a"}
    assert (before, rest, left) == ([], [None], ["left"])
    assert told(task) == ["a"]


def test_it_stays_given_back_after_an_error():
    """A reader that is made anew after an error does not get what the one before it has given back."""
    left, source = [], Source(fails=True)
    task = task_of(source, left)
    with pytest.raises(RetriableError):
        next(task.get_iterator(BackoffConfig()))

    assert next(task.get_iterator(BackoffConfig())) is None
    assert [split.name for split in source.readers[1].snapshot()] == ["b"]
    assert (told(task), left) == (["a"], ["left"])
