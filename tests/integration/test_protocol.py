"""The protocol on a real broker: each test holds one hole shut that was once open."""

import threading
import time
import uuid

import attrs
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from headrace.framework.errors import FencedError, NotCompactedError, OffsetsError, RetriableError, TakenOverError
from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.kafka import claim as claims
from headrace.offsets.kafka import identity
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.patience import Patience
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.records import generation_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey
from headrace.sinks.kafka.transactional import TransactionalKafkaWriter
from headrace.testing import create_topic, read_topic

PARTITIONS = 5


@pytest.fixture
def settings(kafka_bootstrap_servers):
    name = uuid.uuid4().hex[:8]
    made = KafkaSettings(
        bootstrap_servers=kafka_bootstrap_servers,
        connector=f"c-{name}",
        offsets_topic=f"offsets-{name}",
        offsets_partitions=PARTITIONS,
    )
    ensure_offsets_topic(made)
    create_topic(kafka_bootstrap_servers, topic_of(made))
    return made


def topic_of(settings):
    return f"records-{settings.connector}"


def claim_of(settings, tasks=2):
    return Claim.take(settings, partitions=PARTITIONS, tasks=tasks)


def writer_of(settings, claim, task_id=0, snapshot=None):
    return TransactionalKafkaWriter(
        settings=settings,
        task_id=task_id,
        generation=claim.generation,
        partitions=PARTITIONS,
        snapshot=snapshot or OffsetsSnapshot(),
    )


def key(name):
    return OffsetManagerKey({"bucket": "b", "objectKey": name})


def committed_values(settings):
    return [message.value() for message in read_topic(settings.bootstrap_servers, topic_of(settings))]


def fresh_view(settings):
    view = KafkaOffsetView(settings.connector)
    log = OffsetsLog(settings, view.take, dict.fromkeys(range(PARTITIONS), 0))
    log.read_to_high_watermark()
    log.close()
    return view


class TestTopics:
    @pytest.fixture
    def made_anew(self, settings, monkeypatch):
        """A claim on a topic that is deleted and made anew under it, and grows beyond what the claim has read."""
        monkeypatch.setattr(identity, "LOOK_EVERY_S", 0.05)
        claim = claim_of(settings)
        claim.follow()
        admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
        admin.delete_topics([settings.offsets_topic])[settings.offsets_topic].result(30)
        create_topic(settings.bootstrap_servers, settings.offsets_topic, partitions=PARTITIONS)
        producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
        for partition, position in claim.log.positions.items():
            for _ in range(position + 50):
                producer.produce(settings.offsets_topic, b"{}", b"another's", partition=partition)
        producer.flush(30)
        yield claim
        claim.close()

    def test_a_topic_that_was_made_anew_is_not_read_on(self, made_anew):
        """However far the new topic reaches, what is read to its end is refused: it is another one."""
        with pytest.raises(OffsetsError, match="deleted and made anew"):
            made_anew.log.read_to_high_watermark()

    def test_a_driver_that_follows_sees_it(self, made_anew):
        """A driver that only takes what comes learns of it within seconds."""

        def follow_for_s(longest_s):
            deadline = time.monotonic() + longest_s
            while time.monotonic() < deadline:
                made_anew.follow()
                time.sleep(0.02)

        with pytest.raises(OffsetsError, match="deleted and made anew"):
            follow_for_s(30)


class TestCommits:
    def test_records_and_offsets_become_visible_together(self, settings):
        """After a commit the records are on the topic and the next attempt finds the offset."""
        claim = claim_of(settings)
        writer = writer_of(settings, claim)
        writer.open()
        writer.write(topic_of(settings), b"k", [b"1", b"2"])
        writer.commit({key("o"): {"recordCount": 2}}, {"records": 2, "bytes": 2, "objects": 0, "transactions": 1})
        writer.close()

        again = writer_of(settings, claim)
        store = again.open()
        found = store.get([key("o")])
        again.close()
        claim.follow()
        claim.log.read_to_high_watermark()

        assert committed_values(settings) == [b"1", b"2"]
        assert found == {key("o"): {"recordCount": 2}}
        assert claim.view.counters(0).records == 2
        claim.close()

    def test_an_aborted_transaction_leaves_nothing(self, settings):
        """Neither records nor offsets of an aborted transaction are seen, and the writer goes on."""
        claim = claim_of(settings)
        writer = writer_of(settings, claim)
        writer.open()
        writer.write(topic_of(settings), None, [b"lost"])
        writer.abort()
        writer.write(topic_of(settings), None, [b"kept"])
        writer.commit({key("o"): {"recordCount": 1}}, {})
        writer.close()
        claim.close()

        assert committed_values(settings) == [b"kept"]
        assert fresh_view(settings).get([key("o")]) == {key("o"): {"recordCount": 1}}

    def test_a_twin_under_the_other_order_is_tombstoned(self, settings):
        """Writing an entry removes what an older writer left under the other order of its key."""
        claim = claim_of(settings)
        twin = claim.view.raw_keys(key("o"))[1]
        producer = Producer(settings.producer_config())
        producer.produce(settings.offsets_topic, b'{"recordCount":7}', twin)
        producer.flush()
        writer = writer_of(settings, claim)

        seen_before = writer.open().get([key("o")])
        writer.commit({key("o"): {"recordCount": 8, "etag": "e"}}, {})
        writer.close()
        claim.close()

        view = fresh_view(settings)
        assert seen_before == {key("o"): {"recordCount": 7}}
        assert list(view.entries) == [view.raw_keys(key("o"))[0]]


class TestReading:
    def test_a_neighbours_open_transaction_hides_nothing(self, settings):
        """What is committed behind a neighbour's open transaction is read: reading waits for the high watermark."""
        claim = claim_of(settings)
        neighbour = Producer({**settings.producer_config(), "transactional.id": f"neighbour-{settings.connector}"})
        neighbour.init_transactions(30)
        neighbour.begin_transaction()
        for partition in range(PARTITIONS):
            neighbour.produce(settings.offsets_topic, b"{}", b'["other",{}]', partition)
        neighbour.flush()
        writer = writer_of(settings, claim)
        opened, release = threading.Event(), threading.Timer(1.0, lambda: neighbour.abort_transaction(30))

        ours = threading.Thread(target=lambda: (writer.open(), opened.set()))
        release.start()
        ours.start()
        ours.join()
        release.join()
        writer.commit({key("o"): {"recordCount": 200}}, {})
        neighbour.begin_transaction()
        for partition in range(PARTITIONS):
            neighbour.produce(settings.offsets_topic, b"{}", b'["other",{}]', partition)
        neighbour.flush()
        threading.Timer(1.0, lambda: neighbour.abort_transaction(30)).start()

        again = writer_of(settings, claim)
        found = again.open().get([key("o")])

        assert opened.is_set()
        assert found == {key("o"): {"recordCount": 200}}
        again.close()
        writer.close()
        claim.close()

    def test_a_reading_that_gets_on_is_not_given_up(self, settings, monkeypatch):
        """A long topic on a slow machine may take its time: only where nothing comes is there an end to waiting."""
        monkeypatch.setattr("headrace.offsets.kafka.log.BATCH", 1)
        claim = claim_of(settings)
        claim.put((f'["another",{{"n":{number}}}]'.encode(), b"{}") for number in range(40))
        claim.close()
        slowness, taken = threading.Event(), []

        def take_slowly(message):
            slowness.wait(0.1)
            taken.append(message.key())

        reader = OffsetsLog(settings, take_slowly, dict.fromkeys(range(PARTITIONS), 0))
        reader.patience = Patience(2.0)
        reader.read_to_high_watermark()
        assert len(taken) >= 40
        again = OffsetsLog(settings, take_slowly, dict.fromkeys(range(PARTITIONS), 0))
        with pytest.raises(RetriableError, match="was not reached within"):
            again.read_to_high_watermark(within_s=0.5)
        again.close()
        reader.close()

    def test_what_is_written_during_a_reading_is_part_of_it(self, settings, monkeypatch):
        """The shard of a roll-up that ran meanwhile is taken, though it stands behind what was the end at first."""
        monkeypatch.setattr("headrace.offsets.kafka.log.BATCH", 1)
        claim = claim_of(settings)
        claim.put([(b'["another",{"n":1}]', b"{}")])
        taken = []

        def roll_up_meanwhile(message):
            taken.append(message.key())
            if message.key() == b'["another",{"n":1}]':
                claim.put([(b'["another",{"n":2}]', b"{}")])

        reader = OffsetsLog(settings, roll_up_meanwhile, dict.fromkeys(range(PARTITIONS), 0))
        reader.read_to_high_watermark()

        assert b'["another",{"n":2}]' in taken
        reader.close()
        claim.close()

    def test_a_task_reads_on_from_where_the_driver_stood(self, settings):
        """Entries shipped with the plan and those written since make one view."""
        claim = claim_of(settings)
        writer = writer_of(settings, claim)
        writer.open()
        writer.commit({key("old"): {"recordCount": 1}}, {})
        claim.log.read_to_high_watermark()
        shipped = OffsetsSnapshot(
            entries={**claim.view.entries, **claim.view.beside}, positions=dict(claim.log.positions)
        )
        writer.commit({key("new"): {"recordCount": 2}}, {})
        writer.close()

        again = writer_of(settings, claim, snapshot=shipped)
        found = again.open().get([key("old"), key("new")])

        assert found == {key("old"): {"recordCount": 1}, key("new"): {"recordCount": 2}}
        again.close()
        claim.close()

    def test_an_uncompacted_topic_is_refused(self, kafka_bootstrap_servers):
        """A topic that would forget is refused, with its policy and what to do."""
        name = f"plain-{uuid.uuid4().hex[:8]}"
        create_topic(kafka_bootstrap_servers, name, config={"cleanup.policy": "delete"})

        with pytest.raises(NotCompactedError, match=r"cleanup\.policy=delete"):
            ensure_offsets_topic(
                KafkaSettings(bootstrap_servers=kafka_bootstrap_servers, connector="c", offsets_topic=name)
            )


class TestClaims:
    def test_generations_count_up(self, settings):
        """Each claim is a generation of its own, and the newest one's record stands on the topic."""
        first = claim_of(settings)
        second = claim_of(settings)

        assert (first.generation.generation, second.generation.generation) == (1, 2)
        assert fresh_view(settings).generation == second.generation
        first.close()
        second.close()

    def test_the_older_driver_learns_of_its_end_at_its_next_tick(self, settings):
        """An idle driver is never fenced, so it reads the record: the older of two stops and says so."""
        first = claim_of(settings)
        second = claim_of(settings)

        first.log.read_to_high_watermark()
        with pytest.raises(TakenOverError, match="taken over: generation 2"):
            first.follow()
        second.follow()
        first.close()
        second.close()

    def test_an_attempt_that_was_running_is_fenced(self, settings):
        """A writer of the older run cannot commit after the newer claim, and says that it was taken over."""
        first = claim_of(settings)
        writer = writer_of(settings, first)
        writer.open()
        writer.write(topic_of(settings), None, [b"late"])
        second = claim_of(settings)

        with pytest.raises(TakenOverError) as caught:
            writer.commit({key("o"): {"recordCount": 1}}, {})

        assert not isinstance(caught.value, FencedError)
        assert committed_values(settings) == []
        for one in (writer, first, second):
            one.close()

    def test_an_attempt_that_inits_after_the_fencing_stops_before_it_produces(self, settings):
        """A late attempt of the older run takes the id, sees the newer generation, and stops."""
        first = claim_of(settings)
        second = claim_of(settings)
        late = writer_of(settings, first)

        with pytest.raises(TakenOverError, match="generation 2"):
            late.open()

        late.close()
        first.close()
        second.close()

    def test_a_second_attempt_in_one_generation_fences_the_first(self, settings):
        """Of two attempts at one task the older gets FencedError, which is Spark's to handle."""
        claim = claim_of(settings)
        one, two = writer_of(settings, claim), writer_of(settings, claim)
        one.open()
        one.write(topic_of(settings), None, [b"one"])
        two.open()
        two.write(topic_of(settings), None, [b"two"])
        two.commit({key("o"): {"recordCount": 1}}, {})

        with pytest.raises(FencedError):
            one.commit({key("o"): {"recordCount": 1}}, {})

        assert committed_values(settings) == [b"two"]
        for part in (one, two, claim):
            part.close()

    def test_a_claim_for_fewer_tasks_fences_the_ids_of_the_larger_run(self, settings):
        """Fewer tasks than before: the old run's highest ids are fenced as well."""
        first = claim_of(settings, tasks=4)
        highest = writer_of(settings, first, task_id=3)
        highest.open()
        highest.write(topic_of(settings), None, [b"late"])
        second = claim_of(settings, tasks=1)

        with pytest.raises(TakenOverError):
            highest.commit({key("o"): {"recordCount": 1}}, {})

        assert second.generation.tasks == 1
        assert committed_values(settings) == []
        for one in (highest, first, second):
            one.close()

    def test_a_crash_between_claim_and_fencing_leaves_every_id_named(self, settings, monkeypatch):
        """A driver that died after its claim, with fewer tasks, left a record by which the next one fences them all."""
        first = claim_of(settings, tasks=4)
        highest = writer_of(settings, first, task_id=3)
        highest.open()
        highest.write(topic_of(settings), None, [b"late"])
        with monkeypatch.context() as patch:
            patch.setattr(claims, "_fence", dies)
            with pytest.raises(KeyboardInterrupt):
                claim_of(settings, tasks=1)
        left = fresh_view(settings).generation

        third = claim_of(settings, tasks=1)
        with pytest.raises(TakenOverError):
            highest.commit({key("o"): {"recordCount": 1}}, {})

        assert left.tasks == 4
        assert committed_values(settings) == []
        for one in (highest, first, third):
            one.close()

    def test_another_prefix_fences_the_ids_of_the_former(self, settings):
        """A start with another transactional.id.prefix ends the tasks and the driver that run under the old one."""
        first = claim_of(settings)
        writer = writer_of(settings, first, task_id=1)
        writer.open()
        writer.write(topic_of(settings), None, [b"late"])
        second = claim_of(attrs.evolve(settings, id_prefix="renamed"))

        with pytest.raises(TakenOverError):
            writer.commit({key("o"): {"recordCount": 1}}, {})
        with pytest.raises(TakenOverError):
            first.stopped()

        assert second.generation.prefixes == ["renamed"]
        assert fresh_view(settings).generation == second.generation
        assert committed_values(settings) == []
        for one in (writer, first, second):
            one.close()

    def test_a_crash_before_the_fencing_leaves_both_prefixes_named(self, settings, monkeypatch):
        """A driver with another prefix that died after its claim left a record by which the next one fences both."""
        first = claim_of(settings)
        writer = writer_of(settings, first)
        writer.open()
        writer.write(topic_of(settings), None, [b"late"])
        with monkeypatch.context() as patch:
            patch.setattr("headrace.offsets.kafka.claim._fence", dies)
            with pytest.raises(KeyboardInterrupt):
                claim_of(attrs.evolve(settings, id_prefix="renamed"))

        third = claim_of(attrs.evolve(settings, id_prefix="again"))
        with pytest.raises(TakenOverError):
            writer.commit({key("o"): {"recordCount": 1}}, {})

        assert third.generation.prefixes == ["again"]
        assert committed_values(settings) == []
        for one in (writer, first, third):
            one.close()

    def test_what_a_newer_version_has_put_into_the_record_survives(self, settings):
        """A claim keeps the fields of the generation record that it does not know; a record of old means one prefix."""
        producer = Producer(settings.producer_config())
        stored = b'{"generation":4,"owner":"o","tasks":3,"stopped":true,"colour":"blue"}'
        producer.produce(settings.offsets_topic, stored, generation_key(settings.connector))
        producer.flush()
        before = fresh_view(settings).generation

        claim = claim_of(settings)

        assert before.prefixes == ["headrace"]
        assert claim.generation.generation == 5
        assert b'"colour":"blue"' in fresh_view(settings).beside[generation_key(settings.connector)]
        claim.close()

    def test_a_number_alone_is_no_claim(self, settings):
        """An attempt of a run that has the same generation number, and another owner, stops before it produces."""
        claim = claim_of(settings)
        twin = TransactionalKafkaWriter(
            settings=settings,
            task_id=0,
            generation=attrs.evolve(claim.generation, owner="another run"),
            partitions=PARTITIONS,
            snapshot=OffsetsSnapshot(),
        )

        with pytest.raises(TakenOverError):
            twin.open()

        twin.close()
        claim.close()

    def test_a_claim_that_is_overtaken_before_its_fencing_stops(self, settings, monkeypatch):
        """A rival claims between our claim and our fencing: ours fails, and the rival's attempts go on."""
        rivals, fence = [], claims._fence

        def overtaken(*arguments):
            monkeypatch.setattr(claims, "_fence", fence)
            rivals.append(claim_of(settings))
            fence(*arguments)

        monkeypatch.setattr(claims, "_fence", overtaken)
        with pytest.raises(TakenOverError, match="generation 2 of another run"):
            claim_of(settings)
        (rival,) = rivals
        writer = writer_of(settings, rival)
        writer.open()
        writer.write(topic_of(settings), None, [b"kept"])
        writer.commit({key("o"): {"recordCount": 1}}, {})

        assert committed_values(settings) == [b"kept"]
        assert fresh_view(settings).generation == rival.generation
        for one in (writer, rival):
            one.close()

    def test_of_two_claims_at_once_one_owner_remains(self, settings):
        """However two drivers' claims interleave, exactly one of them owns the connector afterwards."""
        outcomes = []

        def claim():
            try:
                outcomes.append(claim_of(settings))
            except TakenOverError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=claim) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        owner = fresh_view(settings).generation
        claims = [outcome for outcome in outcomes if isinstance(outcome, Claim)]
        assert [one.generation.is_same_run(owner) for one in claims].count(True) == 1
        for one in claims:
            one.close()


class TestRenewals:
    """A run claims again, for itself, before splits go to other tasks."""

    def test_an_attempt_that_was_running_is_fenced(self, settings):
        """A writer of the generation before cannot commit what it has open, and says that it was taken over."""
        claim = claim_of(settings)
        writer = writer_of(settings, claim, task_id=1)
        writer.open()
        writer.write(topic_of(settings), None, [b"late"])
        claim.renew()

        with pytest.raises(TakenOverError, match="generation 2") as caught:
            writer.commit({key("o"): {"recordCount": 1}}, {})

        assert not isinstance(caught.value, FencedError)
        assert committed_values(settings) == []
        for one in (writer, claim):
            one.close()

    def test_an_attempt_that_inits_afterwards_stops_before_it_produces(self, settings):
        """A late attempt at a plan of the generation before sees the newer one and stops; one at a new plan goes on."""
        claim = claim_of(settings)
        late = writer_of(settings, claim)
        claim.renew()
        now = writer_of(settings, claim)

        with pytest.raises(TakenOverError, match="generation 2"):
            late.open()
        now.open()
        now.write(topic_of(settings), None, [b"now"])
        now.commit({key("o"): {"recordCount": 1}}, {})

        assert committed_values(settings) == [b"now"]
        for one in (late, now, claim):
            one.close()

    def test_what_was_committed_before_is_in_the_view(self, settings):
        """The view is read on, not anew: it has what it had, and all that the fenced attempts have committed."""
        claim = claim_of(settings)
        claim.view.take_raw(b'["%s",{"had":1}]' % settings.connector.encode(), b"{}")
        writer = writer_of(settings, claim)
        writer.open()
        writer.commit({key("o"): {"recordCount": 7}}, {"records": 7})

        claim.renew()

        had = OffsetManagerKey({"had": 1})
        assert claim.view.get([key("o"), had]) == {key("o"): {"recordCount": 7}, had: {}}
        assert claim.view.counters(0).records == 7
        assert (claim.generation.generation, claim.generation.tasks) == (2, 2)
        assert fresh_view(settings).generation == claim.generation
        claim.follow()
        for one in (writer, claim):
            one.close()

    def test_a_run_that_was_taken_over_claims_nothing(self, settings):
        """After another run's claim there is nothing to renew: the older one says so, and leaves the record alone."""
        first = claim_of(settings)
        second = claim_of(settings)

        with pytest.raises(TakenOverError):
            first.renew()

        assert fresh_view(settings).generation == second.generation
        for one in (first, second):
            one.close()

    @pytest.mark.parametrize("committed", [False, True], ids=["forgotten", "in-doubt"])
    def test_a_commit_that_did_not_answer_is_made_again(self, settings, monkeypatch, committed):
        """Whether the record was written nobody knows: a new producer writes it, and does not take it for a rival's."""
        claim = claim_of(settings)
        failures = [RetriableError("no answer")]
        commit = TransactionalProducer.commit

        def unanswered(producer):
            if committed or not failures:
                commit(producer)
            if failures:
                raise failures.pop()

        monkeypatch.setattr(TransactionalProducer, "commit", unanswered)
        claim.renew()

        assert fresh_view(settings).generation == claim.generation
        assert (claim.generation.generation, failures) == (2, [])
        claim.close()


def dies(*_):
    raise KeyboardInterrupt
