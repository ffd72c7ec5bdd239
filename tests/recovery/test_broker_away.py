"""A broker that does not answer for a while: it is stopped like a process whose machine hangs, and goes on."""

import contextlib
import signal
import threading
import uuid

import pytest

from headrace.framework.errors import RetriableError
from headrace.framework.record import RecordBatch
from headrace.framework.worker.execute import task_runner
from headrace.framework.worker.plan import Ended, TaskPlan
from headrace.framework.worker.signals import TaskSignals
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.sinks.kafka import KafkaSink
from headrace.testing import EmbeddedKafka, S3Harness, create_topic
from headrace.testing.engines import Engine
from headrace.testing.faulty_s3 import Meanwhile, Pass
from headrace.testing.scripted import Block, scripted_task
from headrace.testing.trial import Trial, fresh_name

TOPIC = "scripted"
PARTITIONS = 2
IN_VAIN_S = 30.0
"""Less than a task waits for a broker if nobody stops it."""


@pytest.fixture(scope="module")
def kafka():
    with EmbeddedKafka() as kafka:
        create_topic(kafka.bootstrap_servers, TOPIC)
        yield kafka


@pytest.fixture
def paused(kafka):
    @contextlib.contextmanager
    def pause():
        kafka.process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            kafka.process.signal(signal.SIGCONT)

    return pause


class Connector:
    """A connector whose one task runs a script, with its claim and its topics on the broker."""

    def __init__(self, kafka, **props):
        name = f"away-{uuid.uuid4().hex[:8]}"
        self.props = {
            "name": name,
            "bootstrap.servers": kafka.bootstrap_servers,
            "topic": "scripted",
            "offset.storage.topic": f"{name}-offsets",
            "offset.storage.partitions": str(PARTITIONS),
            "transaction.boundary.interval.ms": "600000",
            "transaction.timeout.ms": "700000",
            **props,
        }
        self.signals, self.reports = TaskSignals(), []

    def start(self, task):
        """Run the task on a thread of its own."""
        props = {**self.props, "connector.class": f"{task.__module__}:{task.__qualname__}"}
        config = task().configure(props)
        sink = KafkaSink()
        sink.configure(config)
        plan = TaskPlan(
            connector=config.name,
            task_id=0,
            tasks_max=1,
            generation=self.claim.generation.generation,
            owner=self.claim.generation.owner,
            props=props,
            bounded=True,
            batch=1,
            batch_s=600,
            partitions=PARTITIONS,
        )
        runner = task_runner(task(), plan, writer=sink.writer(plan), signals=self.signals)
        thread = threading.Thread(target=lambda: self.reports.append(runner.run()), daemon=True)
        thread.start()
        return thread

    def __enter__(self):
        settings = KafkaSettings(
            bootstrap_servers=self.props["bootstrap.servers"],
            connector=self.props["name"],
            offsets_topic=self.props["offset.storage.topic"],
            offsets_partitions=PARTITIONS,
        )
        ensure_offsets_topic(settings)
        self.claim = Claim.take(settings, partitions=PARTITIONS, tasks=1)
        return self

    def __exit__(self, *_):
        self.claim.close()


@pytest.fixture(params=["enabled", "disabled"])
def exactly_once(request):
    return {"exactly.once.support": "requested" if request.param == "enabled" else "disabled"}


class TestStops:
    def test_a_stop_ends_a_task_that_is_opening(self, kafka, paused, exactly_once):
        """A task that waits for the broker before its first record ends with a stop, and not with the broker."""
        with Connector(kafka, **exactly_once) as connector, paused():
            running = connector.start(scripted_task(b"never"))
            connector.signals.ask_stop()
            running.join(IN_VAIN_S)

            assert not running.is_alive()
            assert isinstance(connector.reports[0].error, RetriableError)

    def test_a_stop_ends_a_task_that_has_something_to_commit(self, kafka, paused, exactly_once):
        """What cannot be committed because the broker is away is given up after a stop, for the next run to read."""
        block = Block()
        with Connector(kafka, **exactly_once) as connector:
            running = connector.start(scripted_task(b"one", block))
            assert block.reached.wait(IN_VAIN_S)
            with paused():
                connector.signals.ask_stop()
                running.join(IN_VAIN_S)

                assert not running.is_alive()
                assert connector.reports[0].ended is Ended.FAILED
                assert isinstance(connector.reports[0].error, RetriableError)

    def test_a_stop_ends_a_task_whose_records_have_no_room(self, kafka, paused, exactly_once):
        """A task that waits for room in the full queue of its producer ends with a stop."""
        full = {"producer.override.queue.buffering.max.messages": "10"}
        block, passed = Block(), Block()
        passed.release.set()
        many = RecordBatch(
            source_partition={"script": "script"}, source_offset={"position": 4}, topic=TOPIC, values=[b"more"] * 1000
        )
        with Connector(kafka, **exactly_once, **full) as connector:
            running = connector.start(scripted_task(b"one", block, passed, many))
            assert block.reached.wait(IN_VAIN_S)
            with paused():
                block.release.set()
                assert passed.reached.wait(IN_VAIN_S)
                connector.signals.ask_stop()
                running.join(IN_VAIN_S)

                assert not running.is_alive()
                assert isinstance(connector.reports[0].error, RetriableError)


def in_the_middle(trial):
    """Have the source wait in the middle of its objects; set the second to have it go on."""
    reached, go_on = threading.Event(), threading.Event()

    def wait():
        reached.set()
        go_on.wait()

    trial.harness.faulty.script(*[Pass()] * 4, Meanwhile(wait))
    return reached, go_on


class TestPauses:
    @pytest.fixture
    def trial(self, kafka, s3_endpoint, request):
        with S3Harness(s3_endpoint) as harness:
            trial = Trial(
                harness=harness,
                engine=Engine("local"),
                bootstrap_servers=kafka.bootstrap_servers,
                name=fresh_name(request.function.__name__.removeprefix("test_")),
            )
            for number in range(8):
                trial.add(f"piece-{number}", 50)
            yield trial

    @pytest.mark.parametrize(("boundary", "pause_s"), [("interval", 1.0), ("interval", 4.0), ("object", 1.0)])
    def test_a_broker_that_pauses_in_the_middle_loses_and_doubles_nothing(self, trial, paused, boundary, pause_s):
        """Whether the pause is shorter than the open transaction may be or longer, each record is there once."""
        reached, go_on = in_the_middle(trial)
        summaries = []
        running = threading.Thread(
            target=lambda: summaries.append(
                trial.attempt(
                    transaction__boundary=boundary,
                    transaction__boundary__interval__ms="1900",
                    transaction__timeout__ms="2000",
                )
            )
        )
        running.start()
        try:
            assert reached.wait(IN_VAIN_S)
            with paused():
                go_on.set()
                threading.Event().wait(pause_s)
        finally:
            go_on.set()
            running.join()

        assert (summaries[0].state, summaries[0].error) == ("COMPLETED", None)
        assert sorted(trial.values()) == sorted(trial.everything())
        assert trial.run().records == 0

    def test_a_run_that_is_stopped_while_the_broker_is_away_ends(self, trial, paused):
        """A run of which nothing can be committed ends after a stop all the same, and the next one does the rest."""
        reached, go_on = in_the_middle(trial)
        long = {"transaction__boundary__interval__ms": "600000", "transaction__timeout__ms": "700000"}
        with trial.running(**long) as run:
            assert reached.wait(IN_VAIN_S)
            with paused():
                run.handle.ask_stop()
                ended = run.handle.await_termination(IN_VAIN_S)
            go_on.set()

        assert ended is not None
        trial.run()
        assert sorted(trial.values()) == sorted(trial.everything())
