"""The driver on a real broker: what it remembers, what it sends again, what it counts, and what it gives up."""

import json
import threading
import time
import uuid
from collections import deque

import attrs
import pytest

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver import stall
from headrace.framework.driver.coordinator import Coordinator
from headrace.framework.errors import RetriableError, SourceError
from headrace.framework.record import SourceRecord
from headrace.framework.spark import engine
from headrace.framework.splits import Boundedness, SourceReader, Split, SplitEnumerator, SplitSerializer, SplitSource
from headrace.framework.worker import runner
from headrace.framework.worker.plan import Ended, TaskReport
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.records import EndedWord, enumerator_key
from headrace.offsets.kafka.reset import reset
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.kafka.words import TaskWords
from headrace.offsets.key import OffsetManagerKey
from headrace.testing import Fail, create_topic, read_topic, scripted_task
from headrace.testing.engines import Engine
from headrace.testing.topics import await_records

LOCAL = Engine("local")


@attrs.frozen
class Piece(Split):
    """A list of the place, read from `start` on."""

    name: str
    start: int = 0

    @property
    @override
    def split_id(self):
        return self.name

    @property
    @override
    def source_partition(self):
        return {"piece": self.name}


class PieceSerializer(SplitSerializer):
    @override
    def serialize(self, split):
        return json.dumps(attrs.astuple(split)).encode()

    @override
    def deserialize(self, version, data):
        return Piece(*json.loads(data))


@attrs.define
class Place:
    """What there is to read: lists of values by name. `polled` is set when a reader first looks into one."""

    pieces: dict = attrs.field(factory=dict)
    polled: threading.Event = attrs.field(factory=threading.Event)


class PieceSource(SplitSource):
    """Reads a place; a subclass says how its splits are found."""

    place = None
    ends = True

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
        return PieceSerializer()

    @override
    def create_reader(self, context):
        return PieceReader(context, self.place, ends=self.ends)


class PieceReader(SourceReader):
    """Reads its pieces to their ends, and then asks for more; or waits there for what comes."""

    def __init__(self, context, place, *, ends):
        self.context, self.place, self.ends = context, place, ends
        self.splits = deque()

    @override
    def add_splits(self, splits):
        self.splits.extend(splits)

    @override
    def snapshot(self):
        return tuple(self.splits)

    @override
    def poll(self):
        split = self.splits[0]
        self.place.polled.set()
        entry = self.context.task.offsets.get_entry(OffsetManagerKey(split.source_partition), dict)
        at = entry["position"] if entry else split.start
        values = self.place.pieces[split.name]
        if at < len(values):
            return [
                SourceRecord(
                    source_partition=split.source_partition,
                    source_offset={"position": at + 1},
                    topic=self.context.task.connector,
                    value=values[at],
                )
            ]
        if self.ends:
            self.splits.popleft()
            self.context.split_finished(split.split_id)
            self.context.send_split_request()
        return ()


class OnRequest(SplitEnumerator):
    """Finds pieces by and by, and gives one to whoever asks."""

    def __init__(self, context, place):
        self.context, self.place = context, place
        self.known, self.waiting, self.listed = set(), deque(), False

    @override
    def start(self):
        every_s = None if self.context.bounded else 0.05
        self.context.call_async(lambda: list(self.place.pieces), self.take_in, every_s=every_s)

    def take_in(self, names):
        self.listed = True
        self.waiting.extend(name for name in names if name not in self.known)
        self.known.update(names)

    @override
    def handle_split_request(self, reader_id):
        if self.waiting:
            self.context.assign_split(Piece(self.waiting.popleft()), reader_id)
        elif self.context.bounded and self.listed:
            self.context.signal_no_more_splits(reader_id)


class OnRequestSource(PieceSource):
    @override
    def create_enumerator(self, context, state):
        return OnRequest(context, self.place)


class Latest(SplitEnumerator):
    """Has the one piece read from where it ended when it was first looked at."""

    def __init__(self, context, state, place):
        self.context, self.place = context, place
        self.start_at = (state or {}).get("start")

    @override
    def start(self):
        self.context.call_async(lambda: len(self.place.pieces["stream"]), self.take_in)

    def take_in(self, end):
        if self.start_at is None:
            self.start_at = end
        if self.context.bounded:
            self.context.signal_no_more_splits(0)
        else:
            self.context.assign_split(Piece("stream", self.start_at), 0)

    @override
    def snapshot_state(self):
        return None if self.start_at is None else {"start": self.start_at}


class LatestSource(PieceSource):
    ends = False

    @override
    def create_enumerator(self, context, state):
        return Latest(context, state, self.place)


class Telling(SplitEnumerator):
    """Gives reader 0 a piece, and has something to tell it."""

    def __init__(self, context):
        self.context = context

    @override
    def start(self):
        self.context.assign_split(Piece("a"), 0)
        self.context.send_source_event(0, {"word": "hello"})


class TellingSource(PieceSource):
    @override
    def create_enumerator(self, context, state):
        return Telling(context)


class Through(Telling):
    """Finds that what was committed before meets the rule."""

    @override
    def start(self):
        super().start()
        self.context.rule_met()


class ThroughSource(PieceSource):
    @override
    def create_enumerator(self, context, state):
        return Through(context)


@attrs.define
class Connector:
    """A connector of a test's own: its name is its topic."""

    bootstrap_servers: str
    name: str = attrs.field(factory=lambda: f"driver-{uuid.uuid4().hex[:8]}")

    def __attrs_post_init__(self):
        create_topic(self.bootstrap_servers, self.name)

    def props(self, source, **changes):
        """The configuration of a run of this source class, with `changes` as the kit writes them."""
        plugin = f"{self.name.replace('-', '_')}:{source.__name__}"
        registry.remember(plugin, source)
        return {
            "name": self.name,
            "connector.class": plugin,
            "topic": self.name,
            "bootstrap.servers": self.bootstrap_servers,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.partitions": "2",
            "discovery.interval.ms": "50",
            **{key.replace("__", "."): value for key, value in changes.items()},
        }

    def coordinator(self, source, *, bounded=True, **changes):
        """The driver's part of a run, claimed, and started: the test is its engine."""
        props = self.props(source, **changes)
        config = SourceCommonConfig.from_props(props)
        settings = KafkaSettings.of(config)
        made = Coordinator(
            config=config,
            props=props,
            source=source(),
            claim=Claim.take(settings, partitions=ensure_offsets_topic(settings), tasks=config.tasks_max),
            bounded=bounded,
            exactly_once=True,
        )
        made.start()
        return made

    def values(self):
        return [message.value() for message in read_topic(self.bootstrap_servers, self.name)]

    def await_values(self, count):
        return [message.value() for message in await_records(self.bootstrap_servers, self.name, count)]

    def remembered(self):
        """What stands on the offsets topic as the enumerator's state, every version of it."""
        found = read_topic(self.bootstrap_servers, f"{self.name}-offsets")
        return [message.value() for message in found if message.key() == enumerator_key(self.name)]


@pytest.fixture
def connector(kafka_bootstrap_servers):
    return Connector(kafka_bootstrap_servers)


def source_of(kind, place):
    return type(kind.__name__, (kind,), {"place": place})


class TestRequests:
    def test_pieces_go_to_readers_that_ask_for_them(self, connector):
        """A bounded run of a source that gives on request reads every piece once, and ends."""
        place = Place({f"piece-{number}": [b"%d-a" % number, b"%d-b" % number] for number in range(5)})

        summary = LOCAL.run(connector.props(source_of(OnRequestSource, place), tasks__max="2"))

        assert (summary.state, summary.records) == ("COMPLETED", 10)
        assert sorted(connector.values()) == sorted(value for values in place.pieces.values() for value in values)

    def test_a_reader_that_asked_in_vain_gets_what_is_found_later(self, connector):
        """In a continuous run pieces are found after the readers have asked, and are read all the same."""
        place = Place()
        with LOCAL.running(connector.props(source_of(OnRequestSource, place))):
            for number in range(3):
                place.pieces = {**place.pieces, f"piece-{number}": [b"%d" % number]}
                values = connector.await_values(number + 1)

        assert values == [b"0", b"1", b"2"]


class OneByOne(SplitEnumerator):
    """Finds a piece with each look, one after the other; a name that is none is an error of the look."""

    def __init__(self, context, place):
        self.context, self.left = context, list(place.pieces)

    @override
    def start(self):
        self.look()

    def look(self):
        self.context.call_async(self.found, self.take_in)

    def found(self):
        if not self.left[0]:
            raise SourceError("nothing is called like that")
        return self.left.pop(0)

    def take_in(self, name):
        self.context.assign_split(Piece(name), 0)
        if self.left:
            self.look()
        else:
            self.context.signal_no_more_splits(0)


class OneByOneSource(PieceSource):
    @override
    def create_enumerator(self, context, state):
        return OneByOne(context, self.place)


class TestLookingAhead:
    """What an engine has done before the first tick, while it gets ready."""

    def test_what_is_found_before_the_first_tick_is_in_its_plans(self, connector):
        """Discovery goes on, look after look, and nothing of it waits for the engine."""
        place = Place({name: [b"value"] for name in ("a", "b", "c")})
        driver = connector.coordinator(source_of(OneByOneSource, place))
        while driver.progress().objects_known < 3:
            driver.wake.wait(60)
            driver.wake.clear()
            driver.look_ahead()

        [plan] = driver.tick()
        driver.finish()

        assert len(plan.splits) == 3
        assert plan.no_more_splits

    def test_a_failure_of_discovery_ends_the_run_with_the_first_tick(self, connector):
        """An error is kept for whoever drives the run: there are no plans, and it is over."""
        driver = connector.coordinator(source_of(OneByOneSource, Place({"": []})))
        while driver.error is None:
            driver.wake.wait(60)
            driver.wake.clear()
            driver.look_ahead()

        assert driver.tick() == []
        assert driver.is_over
        assert "nothing is called like that" in driver.finish().error


class TestMemory:
    def test_a_resolved_start_survives_the_restart_of_an_idle_source(self, connector):
        """What "latest" once meant is remembered, though nothing was read: what came between two runs is read."""
        place = Place({"stream": [b"old", b"older"]})
        props = connector.props(source_of(LatestSource, place))
        with LOCAL.running(props):
            assert place.polled.wait(60)
        place.pieces["stream"].append(b"while nobody ran")

        with LOCAL.running(props):
            connector.await_values(1)
            place.pieces["stream"].append(b"and after that")
            values = connector.await_values(2)

        assert values == [b"while nobody ran", b"and after that"]
        assert connector.remembered() == [b'{"version":1,"state":{"start":2}}']

    def test_a_run_that_found_nothing_to_do_remembers_it_too(self, connector):
        """A bounded run that ends with its discovery has stored where the next one is to begin."""
        place = Place({"stream": [b"old"]})
        props = connector.props(source_of(LatestSource, place))
        summary = LOCAL.run(props)
        place.pieces["stream"].append(b"since then")

        with LOCAL.running(props):
            values = connector.await_values(1)

        assert (summary.state, summary.records) == ("COMPLETED", 0)
        assert values == [b"since then"]

    def test_reset_forgets_it(self, connector):
        """After `offsets reset` a run begins as the first one did: at what is latest then."""
        place = Place({"stream": [b"old"]})
        props = connector.props(source_of(LatestSource, place))
        with LOCAL.running(props):
            assert place.polled.wait(60)
        place.pieces["stream"].append(b"between")
        place.polled.clear()
        reset(KafkaSettings.of(SourceCommonConfig.from_props(props)))

        with LOCAL.running(props):
            assert place.polled.wait(60)

        assert connector.remembered() == [
            b'{"version":1,"state":{"start":1}}',
            None,
            b'{"version":1,"state":{"start":2}}',
        ]

    def test_it_is_stored_before_a_reader_has_the_split(self, connector):
        """A driver that dies right after its first plan has left behind what the plan was made with."""
        driver = connector.coordinator(source_of(LatestSource, Place({"stream": [b"old"]})), bounded=False)
        while not (plans := driver.tick()):
            assert driver.wake.wait(60)
            driver.wake.clear()

        assert [plan.task_id for plan in plans] == [0]
        assert connector.remembered() == [b'{"version":1,"state":{"start":1}}']
        driver.finish()


class TestEvents:
    def test_a_batch_that_failed_is_planned_again_with_its_events(self, connector):
        """What the enumerator sent goes with every plan until one of them is reported, and then no more."""
        driver = connector.coordinator(source_of(TellingSource, Place({"a": []})))
        (first,) = driver.tick()
        driver.take_in([])
        (second,) = driver.tick()
        driver.take_in([TaskReport(task_id=0, ended=Ended.FAILED, error=RetriableError("away"))])
        third = planned(driver)
        driver.take_in([TaskReport(task_id=0)])
        fourth = planned(driver)
        driver.finish()

        assert [list(plan.events) for plan in (first, second, third, fourth)] == [[{"word": "hello"}]] * 3 + [[]]
        assert [plan.splits for plan in (second, third, fourth)] == [first.splits] * 3


def test_a_rule_that_is_met_by_what_was_committed_before_ends_the_run(connector):
    """An enumerator that says so ends a continuous run before anything of what it has assigned is read."""
    driver = connector.coordinator(source_of(ThroughSource, Place({"a": [b"1"]})), bounded=False)

    plans, is_over, summary = driver.tick(), driver.is_over, driver.finish()

    assert (plans, is_over, summary.state, summary.records) == ([], True, "COMPLETED", 0)


def planned(driver):
    """The next plan, when the task's rest is over."""
    while not (plans := driver.tick()):
        driver.wake.wait(driver.pause_s())
        driver.wake.clear()
    (plan,) = plans
    return plan


class TestWords:
    """What a task on Spark says when it is through and its siblings are not."""

    @pytest.fixture
    def driver(self, connector):
        """The driver of a batch that runs: two readers with a piece each, and two more pieces that nobody has."""
        place = Place({name: [] for name in "abcd"})
        driver = connector.coordinator(source_of(OnRequestSource, place), tasks__max="2")
        while len(driver.tick()) < 2:
            driver.take_in([])
            driver.wake.wait(driver.pause_s())
            driver.wake.clear()
        yield driver
        driver.finish()

    @pytest.fixture
    def say(self, driver, eventually):
        """Says a word as task 0, and waits until the driver has it; whether that is to end the batch."""
        claim = driver.claim

        def say(**changes):
            ours = {"generation": claim.generation.generation, "owner": claim.generation.owner, "batch": driver._batch}
            word = EndedWord(**{**ours, **changes})
            TaskWords(claim.settings).tell(0, word)
            eventually(lambda: driver.look_up() or word.encode() in claim.view.beside.values())
            driver.look_up()
            eventually(lambda: driver._states[0].not_before <= time.monotonic())
            return driver.look_up()

        return say

    def test_work_for_a_task_that_is_through_ends_the_batch(self, driver, say):
        """A reader that is through and asks gets a piece at once, one, and the batch ends for it."""
        ends = say(exhausted=True, wants_splits=True)
        reports = [
            TaskReport(task_id=0, finished_splits=["a"], wants_splits=True),
            TaskReport(task_id=1, finished_splits=["b"], wants_splits=True, records=1),
        ]
        driver.take_in(reports)
        plans = {}
        while len(plans) < 2:
            plans |= {plan.task_id: [json.loads(data)[0] for _, data in plan.splits] for plan in driver.tick()}

        assert ends
        assert plans == {0: ["c"], 1: ["d"]}

    def test_a_task_that_is_through_has_no_work(self, say):
        """A reader that is through and asks for nothing ends no batch: what it has finished is no work for it."""
        assert not say(exhausted=True)

    @pytest.mark.parametrize("other", [{"batch": 99}, {"owner": "another"}, {"generation": 99}])
    def test_a_word_of_another_batch_or_run_is_no_word(self, say, other):
        """What is left on the topic of another batch or another run ends nothing."""
        assert not say(exhausted=True, wants_splits=True, **other)

    def test_an_error_that_ends_the_run_ends_the_batch(self, say):
        """A task that has failed for good does not wait for its siblings to be heard."""
        assert say(fatal=True)


class TestStalls:
    @pytest.fixture(autouse=True)
    def quickly(self, monkeypatch):
        monkeypatch.setattr(runner, "STALLED_S", 0.2)
        monkeypatch.setattr(stall, "SAY_AFTER_S", 0.4)

    def test_a_task_that_only_stumbles_is_shown(self, connector, eventually):
        """A run whose source is away goes on, and says in its status and once in its summary since when and why."""
        task = scripted_task(Fail(RetriableError("the source is away")))
        with LOCAL.running(connector.props(task)) as running:
            (word,) = eventually(running.handle.status).stalled or eventually(lambda: running.handle.status().stalled)
            is_active = running.handle.status().is_active
            summary = running.stop()

        assert "task 0 stalled since" in word
        assert "task 0: the source is away" in word
        assert is_active
        assert (summary.state, summary.warnings) == ("COMPLETED", (word,))

    def test_a_bounded_run_fails_when_its_patience_is_over(self, connector):
        """With errors.retry.timeout a run that gets nowhere for that long fails with what it was trying again."""
        task = scripted_task(b"first", Fail(RetriableError("the source is away")))

        summary = LOCAL.run(connector.props(task, errors__retry__timeout="1500", topic="scripted"))

        assert summary.state == "FAILED"
        assert "task 0: the source is away" in summary.error
        assert len([word for word in summary.warnings if "stalled since" in word]) == 1
        assert summary.records == 1


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now

    def time(self):
        return self.now


class TestReports:
    def test_progress_is_no_failure_to_get_on(self, connector, monkeypatch):
        """A task whose attempts fail is given up when it has got nowhere for its time, not when it gets on slowly."""
        clock = Clock()
        monkeypatch.setattr("headrace.framework.driver.stall.time", clock)
        driver = connector.coordinator(scripted_task())
        errors = []
        for clock.now, records in [(0, 0), (100, 5), (200, 0), (219, 0), (221, 0)]:
            report = TaskReport(task_id=0, ended=Ended.FAILED, error=RetriableError("away"), records=records)
            driver.take_in([report])
            errors.append(driver.error)
        driver.finish()

        assert errors[:-1] == [None] * 4
        assert errors[-1] is not None

    def test_what_is_left_out_again_counts_once(self, connector):
        """An object that was left out by an attempt that failed, and by the next one, is one object and one warning."""
        driver = connector.coordinator(scripted_task())
        word = "s3://b/k was deleted before it was read to its end"
        failed = RetriableError("away")
        driver.take_in([TaskReport(task_id=0, error=failed, left_out=[word], warnings=[word, word])])
        driver.take_in([TaskReport(task_id=0, left_out=[word, "another"], warnings=[word])])

        summary = driver.finish()

        assert (summary.skipped, summary.warnings) == (2, (word,))

    def test_a_run_that_is_done_is_not_failed_by_its_last_look(self, connector, monkeypatch):
        """If the topic does not answer any more at the end, the totals are what was reported, with a warning."""
        driver = connector.coordinator(scripted_task())
        driver.take_in([TaskReport(task_id=0, records=7, bytes=70, objects=1, transactions=2)])

        def away(_):
            raise RetriableError("the ends cannot be had from Kafka")

        monkeypatch.setattr(OffsetsLog, "read_to_high_watermark", away)
        summary = driver.finish()

        assert (summary.state, summary.records, summary.transactions, summary.error) == ("COMPLETED", 7, 2, None)
        assert "could not be checked" in summary.warnings[0]
        assert "the ends cannot be had from Kafka" in summary.warnings[0]


class TestLosses:
    """Readers that are lost, as an engine or their own reports say it."""

    @pytest.fixture
    def driver(self, connector):
        """The driver of two readers with a piece each, in the middle of a batch."""
        place = Place({"a": [], "b": []})
        driver = connector.coordinator(source_of(OnRequestSource, place), tasks__max="2")
        while len(driver.tick()) < 2:
            driver.take_in([])
            driver.wake.wait(driver.pause_s())
            driver.wake.clear()
        yield driver
        driver.finish()

    def test_what_a_lost_reader_had_is_planned_for_another_under_a_new_claim(self, driver):
        """The plans after a loss are of a newer generation, of the same run, and have the piece with the other one."""
        before = driver.claim.generation
        driver.note_lost({0}, SourceError("its worker dies"))
        driver.take_in([])

        (plan,) = driver.tick()

        assert [json.loads(data)[0] for _, data in plan.splits] == ["b", "a"]
        assert (plan.task_id, plan.owner, plan.generation) == (1, before.owner, before.generation + 1)

    def test_where_all_are_lost_nothing_moves(self, driver):
        """A micro-batch in which no reader is left is planned again as it was, in the same generation."""
        before = driver.claim.generation
        driver.note_lost({0, 1}, SourceError("the worker of both dies"))
        driver.take_in([])

        plans = driver.tick()

        assert [[json.loads(data)[0] for _, data in plan.splits] for plan in plans] == [["a"], ["b"]]
        assert driver.claim.generation == before

    def generations(self, driver, sibling):
        """Has task 0 fail as a whole, four times in a row, beside this report; the generations of the next plans."""
        found = []
        for _ in range(4):
            failed = TaskReport(task_id=0, ended=Ended.FAILED, error=RetriableError("its own fault"))
            driver.take_in([failed, sibling])
            while not (plans := driver.tick()):
                driver.wake.wait(driver.pause_s())
                driver.wake.clear()
            found.append(plans[0].generation)
        return found

    def test_a_reader_that_fails_alone_is_lost(self, driver):
        """A task that fails three times in a row while the other gets on is lost, and is so once."""
        sibling = TaskReport(task_id=1, ended=Ended.TIME)
        assert self.generations(driver, sibling) == [1, 1, 2, 2]

    def test_readers_that_fail_together_are_not_lost(self, driver):
        """Where nobody gets on it is no reader's fault, and nothing moves."""
        sibling = TaskReport(task_id=1, ended=Ended.FAILED, error=RetriableError("away"))
        assert self.generations(driver, sibling) == [1, 1, 1, 1]


class Session:
    """As much of a Spark session as it takes to cancel a job; it counts how often that is done."""

    def __init__(self):
        self.sparkContext, self.cancelled = self, []

    def cancelJobGroup(self, group):  # noqa: N802 - Spark's name
        self.cancelled.append(group)


class SlowToDie:
    """A job that is done when it has been asked for a while."""

    def __init__(self, looks):
        self.looks = looks

    def done(self):
        self.looks -= 1
        return self.looks < 0


def test_tasks_that_do_not_stop_are_cancelled_once(connector, monkeypatch):
    """A job whose tasks do not stop in time is cancelled, and not again while it takes its time to die."""
    for name in ("STOP_WITHIN_S", "KILLED_WITHIN_S", "LOOK_UP_EVERY_S"):
        monkeypatch.setattr(engine, name, 0.0)
    driver = connector.coordinator(scripted_task())
    driver.ask_stop()
    session = Session()

    engine.SparkEngine(driver, session)._watch(SlowToDie(20), "the group")
    driver.finish()

    assert session.cancelled == ["the group"]
