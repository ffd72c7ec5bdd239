"""`headrace offsets migrate`: progress from Kafka Connect and back, with nothing read twice."""

import json

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.driver.migrating import migrate, migrate_back
from headrace.framework.errors import ConfigError, NotCompactedError, OffsetsError, TakenOverError
from headrace.framework.run import Run, on_threads
from headrace.framework.source_offsets import State
from headrace.offsets.codec import encode_key, key_spellings
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey
from headrace.testing.topics import create_topic, end_of_topic

LINES = b'{"n":1}\n{"n":2}\n{"n":3}\n'


def run(connector, **others):
    props = {**connector.props, **{key.replace("__", "."): value for key, value in others.items()}}
    summary = Run(props=props, bounded=True, engine=on_threads).go()
    assert summary.error is None
    return summary


def keys(connector, name):
    """Both orders of an object's key, ours first."""
    bucket = connector.props["aws.s3.bucket.name"]
    return list(key_spellings(connector.name, OffsetManagerKey({"bucket": bucket, "objectKey": name})))


def connect_wrote(connector, *records, topic=None):
    """Kafka Connect's producer's records, as the topic has them."""
    ensure_offsets_topic(connector.settings)
    producer = Producer(connector.settings.producer_config())
    for key, value in records:
        producer.produce(topic or connector.settings.offsets_topic, value if value is None else json.dumps(value), key)
    producer.flush()


def states(found):
    return {piece.name.rpartition("/")[2]: piece.state for piece in found.pieces}


@pytest.fixture
def begun(connector):
    """One object of each kind: all of it read, some of it, none, and one that is gone; some keys have a twin."""
    for name in ("all", "some", "none"):
        connector.put(name, LINES)
    connect_wrote(
        connector,
        (keys(connector, "all")[1], {"recordCount": 3}),
        (keys(connector, "some")[0], {"recordCount": 1}),
        (keys(connector, "some")[1], {"recordCount": 2}),
        (keys(connector, "gone")[1], {"recordCount": 5}),
    )
    return connector


class TestFromConnect:
    def test_without_apply_it_is_only_printed(self, begun):
        """What was begun, unseen, and known to the offsets only; nothing is written, nobody is fenced."""
        before = end_of_topic(begun.settings.bootstrap_servers, begun.settings.offsets_topic)

        found = migrate(begun.props)

        assert states(found) == {
            "all": State.PARTIAL,
            "some": State.PARTIAL,
            "none": State.UNSEEN,
            "gone": State.OFFSETS_ONLY,
        }
        assert not found.applied
        assert end_of_topic(begun.settings.bootstrap_servers, begun.settings.offsets_topic) == before

    def test_afterwards_nothing_is_read_again(self, begun):
        """A run sends what Kafka Connect had not; each object has one key, with its version, and is complete."""
        found = migrate(begun.props, apply=True)

        assert (found.applied, found.twins) == (True, 1)
        assert set(begun.view().entries) == {keys(begun, name)[0] for name in ("all", "some", "gone")}
        assert begun.view().generation.stopped
        assert begun.offsets()["gone"] == {"recordCount": 5}
        assert begun.offsets()["some"].keys() == {"recordCount", "etag", "size", "lastModified"}
        assert run(begun).records == 1 + 3
        assert sorted(begun.values()) == sorted([b'{"n":3}', *LINES.splitlines()])
        assert run(begun).records == 0
        assert [begun.offsets()[name]["complete"] for name in ("all", "some", "none")] == [True] * 3

    def test_it_may_be_done_again(self, begun):
        """A second time the same is found and the same is there; after a run everything is complete."""
        first, second = migrate(begun.props, apply=True), migrate(begun.props, apply=True)
        assert states(first) == states(second)
        assert second.twins == 0
        run(begun)
        assert set(states(migrate(begun.props)).values()) == {State.COMPLETE, State.OFFSETS_ONLY}

    def test_ends_are_found_by_looking(self, begun):
        """With `count` what was begun is opened: at its end it is complete, and no run opens it again."""
        found = migrate(begun.props, apply=True, count=True)

        assert states(found) == {
            "all": State.COMPLETE,
            "some": State.PARTIAL,
            "none": State.UNSEEN,
            "gone": State.OFFSETS_ONLY,
        }
        assert begun.offsets()["all"].items() >= {"recordCount": 3, "size": len(LINES), "complete": True}.items()
        summary = run(begun)
        assert (summary.records, summary.objects) == (4, 2)

    def test_ends_of_many(self, connector):
        """Complete and partial objects in turn, and one with a bad record among them, are told apart."""
        names = [f"{number}{kind}" for number in range(4) for kind in ("all", "some")]
        for name in names:
            connector.put(name, LINES)
        connector.put("1bad", b'{"n":1}\noops\n')
        counts = {name: 3 if name.endswith("all") else 1 for name in [*names, "1bad"]}
        connect_wrote(connector, *((keys(connector, name)[1], {"recordCount": n}) for name, n in counts.items()))

        found = states(migrate(connector.props, apply=True, count=True))

        assert found == {n: State.COMPLETE if n.endswith("all") else State.PARTIAL for n in [*names, "1bad"]}
        complete = {name for name, offset in connector.offsets().items() if offset.get("complete")}
        assert complete == {name for name in names if name.endswith("all")}

    def test_a_bad_record_behind_is_not_an_end(self, connector):
        """An object whose next record is bad is not complete, and its looking at is no failure."""
        connector.put("bad", b'{"n":1}\noops\n')
        connect_wrote(connector, (keys(connector, "bad")[1], {"recordCount": 1}))
        assert states(migrate(connector.props, count=True)) == {"bad": State.PARTIAL}

    def test_an_entry_with_an_etag_is_ours(self, connector):
        """One with an etag is believed over one without, whatever they count; of the others the larger count."""
        connector.put("a", LINES)
        etag = connector.s3.head_object(Bucket=connector.props["aws.s3.bucket.name"], Key="a")["ETag"].strip('"')
        connect_wrote(
            connector,
            (keys(connector, "a")[0], {"recordCount": 1, "etag": etag}),
            (keys(connector, "a")[1], {"recordCount": 3}),
        )
        migrate(connector.props, apply=True)
        assert connector.offsets()["a"]["recordCount"] == 1
        assert set(connector.view().entries) == {keys(connector, "a")[0]}

    def test_a_tombstone_is_honoured(self, connector):
        """What Kafka Connect has forgotten under both orders of its key is unseen."""
        connector.put("a", LINES)
        for key in keys(connector, "a"):
            connect_wrote(connector, (key, {"recordCount": 2}), (key, None))
        assert states(migrate(connector.props, apply=True)) == {"a": State.UNSEEN}
        assert connector.view().entries == {}

    def test_objects_that_a_run_leaves_out(self, connector):
        """An object that is there and that a run does not read keeps its entry, and is not said to be gone."""
        connector.put("a.csv", LINES)
        connector.put("a.jsonl", LINES)
        connect_wrote(connector, (keys(connector, "a.csv")[1], {"recordCount": 2}))
        props = {**connector.props, "file.name.template": r"\.jsonl$"}
        assert states(migrate(props, apply=True)) == {"a.csv": State.LEFT_OUT, "a.jsonl": State.UNSEEN}
        assert set(connector.view().entries) == {keys(connector, "a.csv")[0]}

    def test_an_object_that_was_overwritten_since(self, connector):
        """One whose etag is known to be another's is not stamped with the new one: the policy decides about it."""
        connector.put("a", LINES)
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 2, "etag": "old"}))
        assert states(migrate(connector.props, apply=True)) == {"a": State.CHANGED}
        assert connector.offsets()["a"] == {"recordCount": 2, "etag": "old"}
        assert run(connector).records == 3

    def test_chunks_are_not_whole_objects(self, connector):
        """Where Kafka Connect counted chunks and an object is one record here, nothing is migrated."""
        connector.put("a", LINES)
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 1}))
        with pytest.raises(ConfigError, match=r"transformer\.max\.buffer\.size: must be what Kafka Connect's"):
            migrate({**connector.props, "input.format": "bytes"}, apply=True)
        props = {**connector.props, "input.format": "bytes", "transformer.max.buffer.size": "10"}
        assert states(migrate(props, apply=True)) == {"a": State.PARTIAL}
        assert run(connector, input__format="bytes", transformer__max__buffer__size="10").records == 2

    def test_the_connectors_own_configuration(self, connector, tmp_path, as_json):
        """A worker's properties and a connector's JSON, as they are: its topic, its class, its chunks of 4096 bytes."""
        connector.put("a", b"x" * 10_000)
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 2}))
        worker = tmp_path / "worker.properties"
        worker.write_text(
            f"bootstrap.servers={connector.settings.bootstrap_servers}\ngroup.id=connect\n"
            f"offset.storage.topic={connector.settings.offsets_topic}\noffset.storage.replication.factor=1\n"
            "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
            "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
        )
        ours = {"bootstrap.servers", "offset.storage.topic", "offset.storage.partitions", "input.format"}
        config = {key: value for key, value in connector.props.items() if key not in ours}
        config["connector.class"] = "io.aiven.kafka.connect.s3.source.S3SourceConnector"
        own = tmp_path / "own.json"
        own.write_text(json.dumps({"name": connector.name, "config": config}))

        code, document = as_json("offsets", "migrate", str(worker), str(own), "--apply")

        assert (code, document["totals"]["partial"], document["to_topic"]) == (0, 1, connector.settings.offsets_topic)
        code, document = as_json("run", str(worker), str(own), "--available-now", "--engine", "local")
        assert (code, document["records"]) == (0, 1)
        assert connector.values() == [b"x" * (10_000 - 2 * 4096)]

    def test_what_cannot_be_read_is_not_passed_over(self, connector):
        """A nested value is named, and nothing is written before somebody says what it is; strange keys are named."""
        connector.put("a", LINES)
        key = keys(connector, "a")[1]
        connect_wrote(
            connector,
            (key, {"recordCount": {"nested": 1}}),
            (f'["{connector.name}",["no","map"]]'.encode(), {"recordCount": 1}),
        )
        found = migrate(connector.props)
        assert len(found.warnings) == 2
        assert "second element, not an object" in found.warnings[0]
        assert "'objectKey': 'a'" in found.warnings[1]
        before = connector.view().entries
        with pytest.raises(OffsetsError, match="headrace offsets set what it is, or null to have it read anew"):
            migrate(connector.props, apply=True)
        assert connector.view().entries == before
        assert connector.view().generation.stopped

    @pytest.mark.parametrize(
        ("offset", "reason"),
        [({"recordCount": -1}, "recordCount=-1 is less than 0"), ({"recordCount": "x"}, "is not an integer")],
    )
    def test_what_cannot_be_is_refused(self, connector, offset, reason):
        """A count that cannot be is named, of what is in the bucket and of what is not, and nothing is written."""
        connector.put("a", LINES)
        connect_wrote(connector, (keys(connector, "gone")[1], offset))
        assert reason in "".join(migrate(connector.props).warnings)
        connect_wrote(connector, (keys(connector, "a")[1], offset))
        with pytest.raises(OffsetsError, match=rf"s3://.*/a: .*{reason}.*headrace offsets set"):
            migrate(connector.props)
        before = connector.view().entries
        with pytest.raises(OffsetsError, match=rf"{reason}.*\(2 such in all\).*headrace offsets set"):
            migrate(connector.props, apply=True)
        assert connector.view().entries == before

    def test_a_topic_of_kafka_connects_own(self, connector):
        """With `--from-topic` that topic is only read, ours has what was found in both, and ours is made if need be."""
        connector.put("a", LINES)
        theirs = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, theirs, config={"cleanup.policy": "compact"})
        producer = Producer(connector.settings.producer_config())
        producer.produce(theirs, b'{"recordCount":2}', keys(connector, "a")[1])
        producer.flush()
        before = end_of_topic(connector.settings.bootstrap_servers, theirs)

        migrate(connector.props, apply=True, from_topic=theirs)

        assert end_of_topic(connector.settings.bootstrap_servers, theirs) == before
        assert run(connector).records == 1

    def test_what_was_rolled_up_since_stays_finished(self, connector):
        """Where Kafka Connect's topic still has its old count of what is rolled up here, nothing is read again."""
        connector.put("a", LINES)
        theirs = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, theirs, config={"cleanup.policy": "compact"})
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 1}), topic=theirs)
        migrate(connector.props, apply=True, from_topic=theirs)
        assert run(connector, offsets__rollup__min__entries="1").records == 2
        assert (connector.view().entries, len(connector.view().rollup)) == ({}, 1)

        again = migrate(connector.props, apply=True, from_topic=theirs)

        assert (states(again), again.keys) == ({"a": State.COMPLETE}, 0)
        assert run(connector).records == 0
        assert connector.values() == LINES.splitlines()[1:]

    @pytest.mark.parametrize("order", [0, 1])
    def test_what_is_written_without_a_version_after_a_roll_up_is_not_believed(self, connector, order):
        """An entry of Kafka Connect's in the same topic takes nothing from a roll-up, and is forgotten by a run."""
        connector.put("a", LINES)
        run(connector, offsets__rollup__min__entries="1")
        connect_wrote(connector, (keys(connector, "a")[order], {"recordCount": 1}))

        assert states(migrate(connector.props, apply=True)) == {"a": State.COMPLETE}
        assert run(connector).records == 0
        assert connector.view().entries == {}

        connect_wrote(connector, (keys(connector, "a")[order], {"recordCount": 1}))
        connector.put("a", b'{"n":4}\n{"n":5}\n')
        assert run(connector).records == 2
        assert connector.offsets()["a"]["recordCount"] == 2

    def test_who_sets_an_offset_back_is_obeyed_after_a_roll_up(self, connector):
        """`offsets set` takes the object out of the roll-up, so that what it says counts, with or without a version."""
        connector.put("a", LINES)
        run(connector, offsets__rollup__min__entries="1")
        bucket = connector.props["aws.s3.bucket.name"]
        opened = OpenedConnector.of(connector.props)
        opened.alter([({"bucket": bucket, "objectKey": "a"}, {"recordCount": 1})], force=False)
        assert states(migrate(connector.props)) == {"a": State.PARTIAL}
        assert run(connector).records == 2

    def test_the_workers_topic_beside_the_connectors_own(self, connector):
        """Where the configuration names both, the one that was not looked at is named; with it, both count."""
        connector.put("a", LINES)
        connector.put("b", LINES)
        worker = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, worker, config={"cleanup.policy": "compact"})
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 2}))
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 1}), topic=worker)
        connect_wrote(connector, (keys(connector, "b")[1], {"recordCount": 2}), topic=worker)
        own = connector.settings.offsets_topic
        props = {**connector.props, "offset.storage.topic": worker, "offsets.storage.topic": own}

        found = migrate(props)
        assert states(found) == {"a": State.PARTIAL, "b": State.UNSEEN}
        assert f"--from-topic {worker} has both taken into account" in "".join(found.warnings)

        found = migrate(props, from_topic=worker, apply=True)
        assert (found.to_topic, states(found)) == (own, {"a": State.PARTIAL, "b": State.PARTIAL})
        assert "taken into account" not in "".join(found.warnings)
        assert run(connector).records == 2

    def test_a_topic_that_forgets(self, connector):
        """Where Kafka Connect's own topic is not compacted, it is said that some of it may be gone."""
        connector.put("a", LINES)
        theirs = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, theirs, config={"cleanup.policy": "delete"})
        connect_wrote(connector, (keys(connector, "a")[1], {"recordCount": 1}), topic=theirs)
        for apply in (False, True):
            found = migrate(connector.props, from_topic=theirs, apply=apply)
            assert states(found) == {"a": State.PARTIAL}
            assert f"{theirs} has cleanup.policy=delete: what it has forgotten" in "".join(found.warnings)
        assert migrate(connector.props).warnings == []

    def test_a_topic_that_is_not_there(self, connector):
        """Without a topic there is nothing to migrate, the error says how to name it, and none is made."""
        for apply in (False, True):
            with pytest.raises(OffsetsError, match=r"there is no topic .*--from-topic"):
                migrate(connector.props, apply=apply)
        admin = AdminClient({"bootstrap.servers": connector.settings.bootstrap_servers})
        assert connector.settings.offsets_topic not in admin.list_topics(timeout=30).topics

    def test_a_running_connector_is_left_alone(self, begun):
        """Kafka Connect's rule holds here, too: a run of ours is not migrated under, unless it is ended by force."""
        claim = Claim.take(begun.settings, partitions=3, tasks=1)
        with pytest.raises(OffsetsError, match="must be in the STOPPED state"):
            migrate(begun.props, apply=True)
        claim.follow()
        assert migrate(begun.props, apply=True, force=True).applied
        with pytest.raises(TakenOverError):
            claim.stopped()
        claim.close()

    def test_connects_exactly_once_tasks_are_fenced_first(self, begun):
        """What such a task has open is aborted and not counted, and it can commit nothing afterwards."""
        task = Producer(
            {**begun.settings.producer_config(), "transactional.id": f"my-group-{begun.name}-1", "log_level": 0}
        )
        task.init_transactions(30)
        task.begin_transaction()
        task.produce(begun.settings.offsets_topic, b'{"recordCount":3}', keys(begun, "some")[1])
        task.flush()

        found = migrate(begun.props, apply=True, connect_group="my-group")

        assert list(found.fenced) == [f"my-group-{begun.name}-0", f"my-group-{begun.name}-1"]
        assert begun.offsets()["some"]["recordCount"] == 2
        with pytest.raises(KafkaException):
            task.commit_transaction(30)
        task.purge()

    def test_a_look_fences_nobody(self, begun):
        """Without `apply` a task of Kafka Connect's goes on, whatever group is named."""
        task = Producer({**begun.settings.producer_config(), "transactional.id": f"my-group-{begun.name}-0"})
        task.init_transactions(30)

        assert list(migrate(begun.props, connect_group="my-group").fenced) == []

        task.begin_transaction()
        task.produce(begun.settings.offsets_topic, b'{"recordCount":3}', keys(begun, "some")[1])
        task.commit_transaction(30)
        assert begun.offsets()["some"]["recordCount"] == 3

    def test_tasks_that_are_no_longer_configured_are_fenced_too(self, begun):
        """Kafka Connect may have run more tasks than there are here: as many as one says are fenced, and no fewer."""
        ids = [f"my-group-{begun.name}-{task}" for task in range(5)]
        tasks = [
            Producer({**begun.settings.producer_config(), "transactional.id": name, "log_level": 0}) for name in ids
        ]
        for task in tasks:
            task.init_transactions(30)
            task.begin_transaction()
            task.produce(begun.settings.offsets_topic, b'{"recordCount":3}', keys(begun, "some")[1])
            task.flush()

        found = migrate(begun.props, apply=True, connect_group="my-group", connect_tasks=5)

        assert list(found.fenced) == ids
        assert begun.offsets()["some"]["recordCount"] == 2
        for task in tasks:
            with pytest.raises(KafkaException):
                task.commit_transaction(30)
            task.purge()
        assert len(migrate(begun.props, apply=True, connect_group="my-group", connect_tasks=1).fenced) == 2


class TestToConnect:
    def test_nothing_is_given_to_a_topic_that_forgets(self, begun):
        """Where Kafka Connect's own topic is not compacted, the error says what to do, and nothing is written."""
        migrate(begun.props, apply=True)
        theirs, servers = f"connect-{begun.name}", begun.settings.bootstrap_servers
        create_topic(servers, theirs, config={"cleanup.policy": "delete"})
        for apply in (False, True):
            with pytest.raises(NotCompactedError, match=rf"{theirs} has cleanup\.policy=delete .*--to-topic"):
                migrate_back(begun.props, apply=apply, to_topic=theirs)
        assert end_of_topic(servers, theirs) == 0

    def test_both_orders_are_written(self, begun):
        """Each object under both orders of its key, in Kafka Connect's words; without apply nothing is written."""
        migrate(begun.props, apply=True)
        run(begun)
        before = begun.view().entries

        found = migrate_back(begun.props)
        assert (found.keys, begun.view().entries) == (8, before)

        assert migrate_back(begun.props, apply=True).applied
        stored = begun.view().entries
        assert set(stored) == {key for name in ("all", "some", "none", "gone") for key in keys(begun, name)}
        assert [json.loads(stored[key])["recordCount"] for key in keys(begun, "none")] == [3, 3]
        assert not any(b"byteOffset" in value for value in stored.values())

    def test_there_and_back_again(self, begun):
        """There, what Kafka Connect then adds in one order of a key, and back again: nothing is read twice."""
        migrate(begun.props, apply=True)
        migrate_back(begun.props, apply=True)
        kept = json.loads(begun.view().entries[keys(begun, "some")[1]])
        connect_wrote(begun, (keys(begun, "some")[1], {**kept, "recordCount": 3}))

        migrate(begun.props, apply=True)

        assert run(begun).records == 3
        assert sorted(begun.values()) == sorted(LINES.splitlines())

    def test_whole_objects_become_chunks(self, connector):
        """An object that was one record is as many as Kafka Connect would have made of it."""
        connector.put("a", b"x" * 10_000)
        props = {**connector.props, "input.format": "bytes"}
        assert Run(props=props, bounded=True, engine=on_threads).go().records == 1
        migrate_back(props, apply=True)
        assert [connector.offsets()["a"]["recordCount"]] == [3]

    def test_a_connector_that_runs(self, begun):
        """A run that goes on is not given away."""
        claim = Claim.take(begun.settings, partitions=3, tasks=1)
        with pytest.raises(OffsetsError, match="must be in the STOPPED state"):
            migrate_back(begun.props, apply=True)
        claim.follow()
        claim.stopped()
        claim.close()


class TestOnTheCommandLine:
    def test_people_get_the_honest_answer(self, headrace, begun):
        """Counts and what they mean, what Kafka Connect does not say, and that nothing was written."""
        done = headrace("offsets", "migrate", begun.file)
        assert done.returncode == 0
        assert "2 partial: a run passes over these records" in done.stdout
        assert "of 2 it is not known" in done.stdout
        assert "1 offsets only: not in the bucket any more" in done.stdout
        assert "nothing was written, --apply writes" in done.stdout.splitlines()[-1]

    def test_programs_get_one_document(self, as_json, begun):
        """The document has the totals, each object with its state, and whether it was applied."""
        code, document = as_json("offsets", "migrate", begun.file, "--apply", "--count")
        assert (code, document["applied"], document["ends_looked_for"]) == (0, True, True)
        assert {"complete": 1, "partial": 1, "unseen": 1, "offsets_only": 1}.items() <= document["totals"].items()
        assert {one["state"] for one in document["objects"]} == {"complete", "partial", "unseen", "offsets_only"}
        code, document = as_json("offsets", "migrate", begun.file, "--to-connect")
        assert (code, document["direction"], document["applied"]) == (0, "to_connect", False)

    def test_options_that_do_not_go_together(self, headrace, begun):
        """The way back takes no options of the way there."""
        done = headrace("offsets", "migrate", begun.file, "--to-connect", "--connect-group", "g")
        assert done.returncode == 2
        assert "--to-connect goes with --to-topic" in done.stderr


def test_the_ids_of_keys_are_ours(begun):
    """A migrated key has the bytes that a run writes, so that neither leaves the other behind."""
    migrate(begun.props, apply=True)
    before = set(begun.view().entries)
    run(begun)
    bucket = begun.props["aws.s3.bucket.name"]
    assert set(begun.view().entries) == before | {encode_key(begun.name, {"bucket": bucket, "objectKey": "none"})}
