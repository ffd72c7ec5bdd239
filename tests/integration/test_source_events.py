"""What enumerator and readers have to say to each other, on a real broker and on both engines."""

import uuid
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.record import SourceRecord
from headrace.framework.splits import Boundedness, SourceReader, Split, SplitEnumerator, SplitSerializer, SplitSource
from headrace.testing import create_topic, read_topic

# Longer than the test: what ends a batch is what is said.
NEVER_MS = "600000"


@attrs.frozen
class Turn(Split):
    """One turn of a talk; one that `stays` is never ended by its reader."""

    name: str
    stays: bool = False

    @property
    @override
    def split_id(self):
        return self.name

    @property
    @override
    def source_partition(self):
        return {"turn": self.name}

    @property
    @override
    def is_endless(self):
        return self.stays


class TurnSerializer(SplitSerializer):
    @override
    def serialize(self, split):
        return f"{split.name} {split.stays}".encode()

    @override
    def deserialize(self, version, data):
        name, endless = data.decode().split()
        return Turn(name, endless == "True")


class TalkSource(SplitSource):
    is_endless = False

    @override
    def configure(self, props):
        return SourceCommonConfig.from_props(props)

    @property
    @override
    def boundedness(self):
        return Boundedness.UNBOUNDED

    @property
    @override
    def split_serializer(self):
        return TurnSerializer()

    @override
    def create_enumerator(self, context, state):
        return Asker(context, is_endless=self.is_endless)

    @override
    def create_reader(self, context):
        return Answerer(context)


class EndlessTalkSource(TalkSource):
    is_endless = True


class Asker(SplitEnumerator):
    """Gives every reader a turn and a word; who answers to that is sent another one, and gets a last turn."""

    def __init__(self, context, *, is_endless):
        self.context, self.is_endless = context, is_endless

    @override
    def start(self):
        for reader_id in range(self.context.current_parallelism()):
            self.context.send_source_event(reader_id, {"word": "first"})
            self.context.assign_split(Turn(f"begin-{reader_id}", self.is_endless), reader_id)
        if self.is_endless:
            self.context.call_async(lambda: None, lambda _: self.say("second"), after_s=1.0)

    def say(self, word):
        for reader_id in range(self.context.current_parallelism()):
            self.context.send_source_event(reader_id, {"word": word})

    @override
    def handle_source_event(self, reader_id, event: Mapping[str, Any]):
        if event["heard"] == "first":
            self.context.send_source_event(reader_id, {"word": f"second after {event['by']}"})
            self.context.assign_split(Turn(f"end-{reader_id}"), reader_id)
            self.context.signal_no_more_splits(reader_id)


class Answerer(SourceReader):
    """A record of each word that it hears; an answer to each."""

    def __init__(self, context):
        self.context = context
        self.turns, self.words = [], []

    @override
    def add_splits(self, splits):
        self.turns.extend(splits)

    @override
    def handle_source_event(self, event):
        self.words.append(event["word"])

    @override
    def snapshot(self):
        return tuple(self.turns)

    @override
    def poll(self):
        if not self.turns:
            return ()
        task = self.context.task
        if self.turns[0].is_endless and not self.words:
            return ()
        turn = self.turns[0] if self.turns[0].is_endless else self.turns.pop(0)
        words, self.words = self.words, []
        for word in words:
            self.context.send_source_event({"heard": word, "by": task.task_id})
        if not turn.is_endless:
            self.context.split_finished(turn.split_id)
        return [
            SourceRecord(
                source_partition=turn.source_partition,
                source_offset={"position": number},
                topic=task.connector,
                value=f"{task.task_id} heard {word}".encode(),
            )
            for number, word in enumerate(words, start=1)
        ]


@pytest.fixture
def props(kafka_bootstrap_servers):
    name = f"events-{uuid.uuid4().hex[:8]}"
    create_topic(kafka_bootstrap_servers, name)

    def of(source):
        return {
            "name": name,
            "connector.class": f"{source.__module__}:{source.__qualname__}",
            "topic": name,
            "bootstrap.servers": kafka_bootstrap_servers,
            "offset.storage.topic": f"{name}-offsets",
            "offset.storage.partitions": "2",
            "tasks.max": "2",
            "batch.max.ms": NEVER_MS,
        }

    return of


def heard(props):
    return sorted(message.value().decode() for message in read_topic(props["bootstrap.servers"], props["name"]))


def test_words_go_both_ways_and_a_run_ends_when_all_are_told(engine, props):
    """Each reader hears its enumerator, which hears its answer and sends another; the run ends with the last split.

    It ends by itself, also without `--available-now`, because every reader has been told that there are no more.
    """
    talk = props(TalkSource)
    with engine.running(talk) as running:
        summary = running.ended()

    assert (summary.state, summary.error) == ("COMPLETED", None)
    assert heard(talk) == ["0 heard first", "0 heard second after 0", "1 heard first", "1 heard second after 1"]


def test_a_reader_that_is_never_idle_hears_at_once(engine, props, eventually):
    """A word for a reader whose split never ends does not wait for the end of its micro-batch."""
    talk = props(EndlessTalkSource)
    with engine.running(talk) as running:
        eventually(lambda: {"0 heard second", "1 heard second"} <= set(heard(talk)))
        assert running.stop().error is None
