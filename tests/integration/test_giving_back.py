"""Splits that move from one reader to another: each line exactly once, and who has read it."""

import json
import os
import signal
import threading
import uuid
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.record import SourceRecord
from headrace.framework.splits import Boundedness, SourceReader, Split, SplitEnumerator, SplitSerializer, SplitSource
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.key import OffsetManagerKey
from headrace.testing import create_topic, read_topic
from headrace.testing.engines import Engine

# Longer than the test: what ends a batch is what a reader does, and no clock.
NEVER_MS = "600000"
WITHIN_S = 60


@attrs.frozen
class Sheet(Split):
    """A file whose lines are records, or say what happens to the reader that comes there."""

    path: str

    @property
    @override
    def split_id(self):
        return Path(self.path).name

    @property
    @override
    def source_partition(self):
        return {"sheet": self.path}


class SheetSerializer(SplitSerializer):
    @override
    def serialize(self, split):
        return json.dumps(split.path).encode()

    @override
    def deserialize(self, version, data):
        return Sheet(json.loads(data))


class SheetSource(SplitSource):
    """The sheets of a folder; those that come back go to whom the enumerator of the framework chooses."""

    @override
    def configure(self, props):
        config = SourceCommonConfig.from_props(props)
        self.folder, self.settings = Path(props["sheets.folder"]), KafkaSettings.of(config)
        return config

    @property
    @override
    def boundedness(self):
        return Boundedness.BOUNDED

    @property
    @override
    def split_serializer(self):
        return SheetSerializer()

    @override
    def create_enumerator(self, context, state):
        return Sheets(context, self.folder)

    @override
    def create_reader(self, context):
        return SheetReader(context, self.settings)


class Sheets(SplitEnumerator):
    """Gives sheet 0 to reader 0, sheet 1 to reader 1, and so on; notes what comes back."""

    returned: ClassVar[list] = []

    def __init__(self, context, folder):
        self.context, self.folder = context, folder

    @override
    def start(self):
        for path in sorted(self.folder.glob("*.txt")):
            self.context.assign_split(Sheet(str(path)), int(path.stem) % self.context.current_parallelism())
        for reader_id in range(self.context.current_parallelism()):
            self.context.signal_no_more_splits(reader_id)

    @override
    def add_splits_back(self, splits, reader_id):
        Sheets.returned.append((reader_id, [split.split_id for split in splits]))
        super().add_splits_back(splits, reader_id)


class SheetReader(SourceReader):
    """Reads line by line, and does as the line says where it begins with `!` and names this task, or any by `*`."""

    def __init__(self, context, settings):
        self.context, self.settings = context, settings
        self.splits = []
        self.all_committed = threading.Event()
        self.all_committed.set()

    @override
    def add_splits(self, splits):
        self.splits.extend(splits)

    @override
    def snapshot(self):
        return tuple(self.splits)

    @override
    def poll(self):
        if not self.splits:
            return ()
        split, task = self.splits[0], self.context.task
        lines = Path(split.path).read_text().splitlines()
        entry = task.offsets.get_entry(OffsetManagerKey(split.source_partition), dict)
        at = entry["position"] if entry else 0
        while at < len(lines) and lines[at].startswith("!"):
            what, who = lines[at][1:].split()
            if who in {"*", str(task.task_id)} and self.happens(what, split):
                return ()
            at += 1
        if at == len(lines):
            self.context.split_finished(self.splits.pop(0).split_id)
            return ()
        self.all_committed.clear()
        return [
            SourceRecord(
                source_partition=split.source_partition,
                source_offset={"position": at + 1, "complete": at + 1 == len(lines)},
                topic=task.connector,
                value=f"{lines[at]} by {task.task_id}".encode(),
            )
        ]

    @override
    def committed(self):
        self.all_committed.set()

    def happens(self, what, split):
        """Whether nothing comes now; where this attempt is over, what was given before is committed by then."""
        if what in {"die", "die-once", "fence"}:
            assert self.all_committed.wait(WITHIN_S)
        once, marked = Path(f"{split.path}.{what}"), Path(split.path).with_name("marked")
        if what == "give-back":
            self.splits.remove(split)
            self.context.give_back([split.split_id])
            return True
        if what == "mark":
            marked.touch()
        if what == "await-mark" and not marked.exists():
            self.splits.append(self.splits.pop(0))
            return True
        if what == "die" or (what == "die-once" and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "fence":
            rival = TransactionalProducer(self.settings, self.context.task.task_id)
            rival.init()
            rival.close()
        return False


@attrs.define
class Sheeted:
    """A folder of sheets and a connector that reads it, with two tasks."""

    engine: Engine
    bootstrap_servers: str
    folder: Path
    name: str = attrs.field(factory=lambda: f"giving-back-{uuid.uuid4().hex[:8]}")

    def __attrs_post_init__(self):
        Sheets.returned.clear()
        create_topic(self.bootstrap_servers, self.name)

    def write(self, *sheets):
        for number, lines in enumerate(sheets):
            (self.folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))

    def run(self, **changes):
        return self.engine.run(self.props(**changes))

    def props(self, **changes):
        return {
            "name": self.name,
            "connector.class": f"{SheetSource.__module__}:{SheetSource.__qualname__}",
            "topic": self.name,
            "bootstrap.servers": self.bootstrap_servers,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.partitions": "2",
            "sheets.folder": str(self.folder),
            "tasks.max": "2",
            "batch.max.ms": NEVER_MS,
            # Each record is a transaction.
            "transaction.boundary.max.records": "1",
            **{key.replace("__", "."): value for key, value in changes.items()},
        }

    def values(self):
        return [message.value().decode() for message in read_topic(self.bootstrap_servers, self.name)]

    def values_of(self, sheet):
        return [value for value in self.values() if value.startswith(f"{sheet}-")]

    def claims(self):
        """How many claims the connector has seen."""
        config = SourceCommonConfig.from_props(self.props())
        return read_view(KafkaSettings.of(config)).generation.generation


@pytest.fixture
def sheeted(engine, kafka_bootstrap_servers, tmp_path):
    return Sheeted(engine, kafka_bootstrap_servers, tmp_path)


def by_task(summary):
    return {task.task: task.records for task in summary.tasks}


def test_what_a_reader_gives_back_goes_on_with_another(sheeted):
    """A reader that gives a sheet back in its middle keeps its other one; the rest is read by another reader, once.

    The other one has a sheet that waits for that: what is given back does not wait for its micro-batch.
    """
    sheeted.write(
        ["0-a", "!await-mark 0"],
        ["1-a", "1-b", "!give-back 1", "1-c", "!mark 0", "1-d"],
        ["2-a"],
        ["3-a", "3-b"],
    )

    summary = sheeted.run()

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert sheeted.values_of(1) == ["1-a by 1", "1-b by 1", "1-c by 0", "1-d by 0"]
    assert sheeted.values_of(3) == ["3-a by 1", "3-b by 1"]
    assert Sheets.returned == [(1, ["1.txt"])]
    assert by_task(summary) == {0: 4, 1: 4}
    assert sheeted.claims() == 2


@pytest.mark.parametrize(
    ("engine", "what"), [("local", "fence"), ("processes", "die"), ("spark", "die")], indirect=["engine"]
)
def test_what_a_lost_reader_leaves_goes_on_with_another(sheeted, what):
    """A reader that dies again and again at one place gives back all that it has, once; another one finishes it."""
    sheeted.write(["0-a"], ["1-a", "1-b", f"!{what} 1", "1-c", "1-d"], ["2-a"], ["3-a"])

    summary = sheeted.run()

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert sheeted.values_of(1) == ["1-a by 1", "1-b by 1", "1-c by 0", "1-d by 0"]
    assert sheeted.values_of(3) == ["3-a by 0"]
    assert Sheets.returned == [(1, ["1.txt", "3.txt"])]
    assert by_task(summary) == {0: 5, 1: 2}
    assert sheeted.claims() == 2


@pytest.mark.parametrize("engine", ["processes", "spark"], indirect=True)
def test_a_retry_moves_nothing(sheeted):
    """A process that dies once is replaced, and its sheet stays with the same task in the same generation."""
    sheeted.write(["0-a"], ["1-a", "!die-once 1", "1-b"])

    summary = sheeted.run()

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert sheeted.values_of(1) == ["1-a by 1", "1-b by 1"]
    assert (Sheets.returned, sheeted.claims()) == ([], 1)


@pytest.mark.parametrize("engine", ["local"], indirect=True)
class TestBounds:
    def test_nothing_is_given_to_and_fro_for_ever(self, sheeted):
        """A sheet that every reader gives back at the same place fails the run, with its name and the last reader."""
        sheeted.write(["0-a"], ["1-a", "!give-back *", "1-b"])

        summary = sheeted.run()

        assert summary.state == "FAILED"
        assert "split 1.txt was given back 6 times with nothing read of it in between" in summary.error
        assert sheeted.values_of(1) == ["1-a by 1"]
        assert [reader_id for reader_id, _ in Sheets.returned] == [1, 0, 1, 0, 1]

    def test_a_reader_that_gets_on_may_give_back_as_often_as_it_likes(self, sheeted):
        """A sheet of which something is read each time moves without end, and every line comes once."""
        moves = [(f"!give-back {1 - number % 2}", f"1-{number}") for number in range(8)]
        sheeted.write([], [line for move in moves for line in move])

        summary = sheeted.run()

        assert (summary.state, summary.error) == ("COMPLETED", None)
        assert sheeted.values() == [f"1-{number} by {number % 2}" for number in range(8)]
        assert len(Sheets.returned) == 8

    def test_the_only_reader_gets_its_own_back(self, sheeted):
        """Where there is no other reader, what is given back comes again to the one that there is."""
        sheeted.write(["0-a", "!give-back 0", "0-b"])

        summary = sheeted.run(tasks__max="1")

        assert summary.state == "FAILED"
        assert Sheets.returned == [(0, ["0.txt"])] * 5
        assert sheeted.values() == ["0-a by 0"]

    def test_a_whole_object_is_not_cut(self, sheeted):
        """With the boundary `object` what was read of a sheet is taken back with it, and comes as a whole."""
        sheeted.write(["0-a"], ["1-a", "!give-back 1", "1-b"], ["2-a"], ["3-a"])

        summary = sheeted.run(transaction__boundary="object")

        assert (summary.state, summary.error) == ("COMPLETED", None)
        assert sheeted.values_of(1) == ["1-a by 0", "1-b by 0"]
        assert sheeted.values_of(3) == ["3-a by 1"]
