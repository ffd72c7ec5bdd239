"""Producers that a process keeps between micro-batches: used again where that is safe, and only there."""

import threading
import uuid

import attrs
import pytest

from headrace.framework.errors import FencedError, SinkError, TakenOverError
from headrace.framework.worker.kept import KEPT, Keeper, process_identity
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey
from headrace.sinks.kafka.transactional import TransactionalKafkaWriter
from headrace.testing import EmbeddedKafka, S3Harness, create_topic, read_topic
from headrace.testing.engines import Engine
from headrace.testing.kafka_proxy import INIT_PRODUCER_ID, KafkaProxy
from headrace.testing.trial import Trial, fresh_name

PARTITIONS = 2


@pytest.fixture(scope="module")
def proxied():
    with KafkaProxy() as proxy, EmbeddedKafka(port=proxy.broker_port, properties=proxy.broker_properties) as kafka:
        yield proxy, kafka.bootstrap_servers


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.close()
    yield
    KEPT.close()


class Inits:
    """Counts who takes a task's transactional id from now on."""

    def __init__(self, proxy, connector):
        self._held = [proxy.hold(INIT_PRODUCER_ID, containing=f"{connector}-0".encode()) for _ in range(10)]
        for held in self._held:
            held.release.set()

    @property
    def count(self):
        return sum(held.reached.is_set() for held in self._held)


class Task:
    """Task 0 of a connector, as attempts at it follow one another in this process."""

    def __init__(self, proxy, bootstrap_servers):
        name = f"kept-{uuid.uuid4().hex[:8]}"
        self.settings = KafkaSettings(
            bootstrap_servers=bootstrap_servers,
            connector=name,
            offsets_topic=f"{name}-offsets",
            offsets_partitions=PARTITIONS,
        )
        self.topic = f"{name}-records"
        ensure_offsets_topic(self.settings)
        create_topic(bootstrap_servers, self.topic)
        self.claim = self.claimed()
        self.inits = Inits(proxy, name)

    def claimed(self):
        return Claim.take(self.settings, partitions=PARTITIONS, tasks=1)

    def writer(self, *, was_last=True, claim=None):
        return TransactionalKafkaWriter(
            settings=self.settings,
            task_id=0,
            generation=(claim or self.claim).generation,
            partitions=PARTITIONS,
            snapshot=OffsetsSnapshot(),
            was_last=was_last,
        )

    def attempt(self, value, **how):
        """One micro-batch that goes well."""
        writer = self.writer(**how)
        try:
            writer.open()
            writer.write(self.topic, None, [value])
            writer.commit({OffsetManagerKey({"o": 1}): {"recordCount": 1}}, {"records": 1})
        finally:
            writer.close()

    def values(self):
        return [message.value() for message in read_topic(self.settings.bootstrap_servers, self.topic)]


@pytest.fixture
def task(proxied):
    made = Task(*proxied)
    yield made
    made.claim.close()


class TestGoesOn:
    def test_two_micro_batches_take_the_id_once(self, task):
        """A process that had the id last, and is named for that, goes on with its producer and inits no more."""
        task.attempt(b"one")
        task.attempt(b"two")
        task.attempt(b"three")

        assert task.inits.count == 1
        assert task.values() == [b"one", b"two", b"three"]
        task.claim.log.read_to_high_watermark()
        assert task.claim.view.counters(0).records == 3

    def test_what_was_left_open_is_aborted_first(self, task):
        """An attempt that ends in the middle takes back what it sent; the next one goes on with the same producer."""
        writer = task.writer()
        writer.open()
        writer.write(task.topic, None, [b"lost"])
        writer.close()

        task.attempt(b"kept")

        assert task.inits.count == 1
        assert task.values() == [b"kept"]


class TestBeginsAnew:
    def test_a_process_that_the_plan_does_not_name(self, task):
        """Where another process may have had the id since, the id is taken again."""
        task.attempt(b"one")
        task.attempt(b"two", was_last=False)

        assert task.inits.count == 2
        assert task.values() == [b"one", b"two"]

    def test_another_generation(self, task):
        """The producer of an older run serves no newer one, in the same process either."""
        task.attempt(b"one")
        newer = task.claimed()
        fenced = task.inits.count

        task.attempt(b"two", claim=newer)

        assert task.inits.count == fenced + 1
        assert task.values() == [b"one", b"two"]
        newer.close()

    def test_other_settings(self, task):
        """A producer that was made with other settings is not used again."""
        task.attempt(b"one")
        changed = task.writer()
        changed.settings = attrs.evolve(task.settings, producer={"linger.ms": "1"})

        changed.open()
        changed.close()

        assert task.inits.count == 2

    def test_after_an_error(self, task):
        """A producer that has failed at anything is not kept."""
        writer = task.writer()
        writer.open()
        with pytest.raises(SinkError):
            writer.write("no topic's name", None, [b"x" * 2_000_000])
        writer.close()

        task.attempt(b"one")

        assert task.inits.count == 2
        assert task.values() == [b"one"]


class TestOthers:
    def test_the_generation_is_asked_for_all_the_same(self, task):
        """An attempt with a kept producer stops before it produces where a newer run has claimed the connector."""
        task.attempt(b"one")
        newer = task.claimed()

        with pytest.raises(TakenOverError, match="generation 2"):
            task.attempt(b"late")

        assert task.values() == [b"one"]
        newer.close()

    def test_a_producer_that_was_fenced_meanwhile_adds_nothing(self, task):
        """Where another attempt had the id unknown to the driver, the kept producer fails, and the next begins anew."""
        task.attempt(b"one")
        mine = KEPT.take(next(iter(KEPT._things)))
        task.attempt(b"elsewhere", was_last=False)
        KEPT.close()
        KEPT.keep((task.settings.bootstrap_servers, task.settings.transactional_id(0)), mine)

        with pytest.raises(FencedError):
            task.attempt(b"stale")
        task.attempt(b"two")

        assert task.values() == [b"one", b"elsewhere", b"two"]

    def test_an_attempt_that_nobody_knows_of_is_ended(self, task):
        """A transaction that a lost attempt has left open holds up the next one for a moment, not for its time-out."""
        task.attempt(b"one")
        mine = KEPT.take(next(iter(KEPT._things)))
        lost = task.writer(was_last=False)
        lost.open()
        lost.write(task.topic, None, [b"lost"])
        lost._producer.write(task.settings.offsets_topic, b'["other",{}]', [b"{}"])
        lost._producer.flush()
        KEPT.keep((task.settings.bootstrap_servers, task.settings.transactional_id(0)), mine)

        task.attempt(b"two")

        assert task.inits.count >= 3  # the one that ends a transaction is told to ask again
        assert task.values() == [b"one", b"two"]
        lost.close()


class TestRuns:
    @pytest.fixture
    def trial(self, proxied, s3_endpoint):
        with S3Harness(s3_endpoint) as harness:
            yield Trial(
                harness=harness, engine=Engine("local"), bootstrap_servers=proxied[1], name=fresh_name("kept-runs")
            )

    def test_a_continuous_run_takes_each_id_once(self, trial, proxied):
        """Micro-batch after micro-batch a run on threads goes on with one producer, and lets go of it at its end."""
        trial.add("one", 3)
        inits = Inits(proxied[0], trial.name)
        with trial.running(discovery__interval__ms="50") as run:
            trial.await_values(3)
            trial.add("two", 3)
            trial.await_values(6)
            trial.add("three", 3)
            trial.await_values(9)
            ended = run.stop()

        assert ended.transactions >= 3
        assert inits.count == 2  # the claim's fencing, and the task
        assert KEPT._things == {}

    @pytest.mark.slow
    def test_a_worker_of_spark_goes_on(self, trial, proxied, spark_on_threads):
        """A Python worker that Spark chooses again goes on with the producer of its last micro-batch."""
        trial.engine = Engine("spark", spark=spark_on_threads)
        trial.add("one", 3)
        inits = Inits(proxied[0], trial.name)
        with trial.running(discovery__interval__ms="50") as run:
            trial.await_values(3)
            for number, piece in enumerate(("two", "three", "four", "five"), start=2):
                trial.add(piece, 3)
                trial.await_values(3 * number)
            ended = run.stop()

        assert ended.transactions >= 5
        assert inits.count < 1 + 5  # the claim's fencing, and an init for each micro-batch that had data


class Thing:
    def __init__(self):
        self.closed = threading.Event()

    def close(self):
        self.closed.set()


class TestKeeper:
    def test_a_thing_has_one_user(self):
        """Whoever takes a thing has it alone until he gives it back."""
        keeper, thing = Keeper(), Thing()
        keeper.keep("key", thing)

        assert keeper.take("key") is thing
        assert keeper.take("key") is None
        assert not thing.closed.is_set()

    def test_a_place_has_room_for_one(self):
        """What stands in the place of a newer thing is closed, and the end closes the rest."""
        keeper, old, new = Keeper(), Thing(), Thing()
        keeper.keep("key", old)
        keeper.keep("key", new)
        assert old.closed.is_set()
        assert not new.closed.is_set()

        keeper.close()

        assert new.closed.is_set()
        assert keeper.take("key") is None

    def test_what_nobody_takes_goes(self, monkeypatch):
        """A thing that stands idle for too long is closed when the process next takes or keeps anything."""
        keeper, forgotten = Keeper(), Thing()
        keeper.keep("key", forgotten)
        monkeypatch.setattr("headrace.framework.worker.kept.IDLE_S", -1.0)

        assert keeper.take("other") is None

        assert forgotten.closed.is_set()

    def test_a_process_is_itself(self):
        """The identity of a process is the same each time that it is asked for."""
        assert process_identity() == process_identity()
