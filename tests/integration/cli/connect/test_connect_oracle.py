"""Kafka Connect itself reads what we write, and writes what we read."""

import uuid

from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.driver.migrating import migrate, migrate_back
from headrace.framework.run import Run, on_threads
from headrace.offsets.codec import encode_key, encode_value
from headrace.offsets.hashing import partition_for
from headrace.offsets.kafka.altering import fence_connect
from headrace.testing import create_topic, read_topic

LINES = b"".join(b'{"n":%d}\n' % number for number in range(1, 5))
COMPACTED = {"cleanup.policy": "compact"}
AWKWARD = [
    "logs-0-00112.gz",
    "topics/logs/partition=5/logs+5+0002.avro",
    'quote"back\\slash\ttab\x1f\x7f',
    "a/b<>&'.json",
    "umlaut ü, euro €, clef \U0001d11e, line\u2028end",
]


def run(connector, **changes):
    props = connector.props | {key.replace("__", "."): value for key, value in changes.items()}
    summary = Run(props=props, bounded=True, engine=on_threads).go()
    assert summary.error is None
    return summary


def bucket_first(connector, key):
    return {"bucket": connector.props["aws.s3.bucket.name"], "objectKey": key}


def object_first(connector, key):
    return dict(reversed(bucket_first(connector, key).items()))


def written(bootstrap_servers, topic):
    """The last value and the partition of every raw key."""
    return {message.key(): (message.value(), message.partition()) for message in read_topic(bootstrap_servers, topic)}


class TestToConnect:
    def test_connect_reads_what_a_run_wrote(self, connector, kafka_connect):
        """What a run has stored is what Kafka Connect's reader finds, bucket first, and it knows of nothing else."""
        for key in AWKWARD:
            connector.put(key, LINES)
        run(connector)

        found, partitions = kafka_connect.read(
            connector.settings.offsets_topic, connector.name, [bucket_first(connector, key) for key in AWKWARD]
        )

        assert found == [connector.offsets()[key] for key in AWKWARD]
        assert [offset["recordCount"] for offset in found] == [4] * len(AWKWARD)
        assert sorted(map(str, partitions)) == sorted(str(bucket_first(connector, key)) for key in AWKWARD)

    def test_the_way_back_is_open(self, connector, kafka_connect):
        """After `--to-connect` it finds each object in either order of its names, without places it would not keep."""
        for key in AWKWARD:
            connector.put(key, LINES)
        run(connector)

        done = migrate_back(connector.props, apply=True)

        assert done.keys == 2 * len(AWKWARD)
        for order in (bucket_first, object_first):
            found, _ = kafka_connect.read(
                connector.settings.offsets_topic, connector.name, [order(connector, key) for key in AWKWARD]
            )
            assert [offset["recordCount"] for offset in found] == [4] * len(AWKWARD)
            assert all(not {"byteOffset", "line"} & offset.keys() for offset in found)

    def test_what_was_rolled_up_has_its_entries_again(self, connector, kafka_connect):
        """Kafka Connect finds an object that has no entry of its own any more, in either order, as read to its end."""
        for key in AWKWARD:
            connector.put(key, LINES)
        run(connector, offsets__rollup__min__entries="1")
        assert connector.view().entries == {}

        migrate_back(connector.props, apply=True)

        for order in (bucket_first, object_first):
            found, _ = kafka_connect.read(
                connector.settings.offsets_topic, connector.name, [order(connector, key) for key in AWKWARD]
            )
            assert all(offset["recordCount"] >= 4 for offset in found)

    def test_the_way_back_into_connects_own_topic(self, connector, kafka_connect):
        """With `--to-topic` it is Kafka Connect's topic that is written, and ours stays as it is."""
        connector.put("k", LINES)
        run(connector)
        theirs = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, theirs, partitions=25, config=COMPACTED)
        before = connector.view().entries

        migrate_back(connector.props, apply=True, to_topic=theirs)

        found, _ = kafka_connect.read(theirs, connector.name, [object_first(connector, "k")])
        assert found[0]["recordCount"] == 4
        assert connector.view().entries == before


class TestFromConnect:
    def test_what_connect_wrote_is_not_read_again(self, connector, kafka_connect):
        """Both orders, the larger count, a partial object, a tombstone: a run goes on where Kafka Connect was."""
        for key in ("all", "half", "new", "rewound", *AWKWARD):
            connector.put(key, LINES)
        topic = connector.settings.offsets_topic
        create_topic(connector.settings.bootstrap_servers, topic, partitions=3, config=COMPACTED)
        kafka_connect.write(
            topic,
            connector.name,
            (object_first(connector, "all"), {"recordCount": 4}),
            (bucket_first(connector, "all"), {"recordCount": 2}),
            (object_first(connector, "half"), {"recordCount": 1}),
            (object_first(connector, "rewound"), {"recordCount": 3}),
            (object_first(connector, "rewound"), None),
            *((object_first(connector, key), {"recordCount": 4}) for key in AWKWARD),
        )

        found = migrate(connector.props, apply=True)

        assert {state: count for state, count in found.totals.items() if count} == {
            "partial": 2 + len(AWKWARD),
            "unseen": 2,
        }
        raw_keys = connector.view().entries
        assert set(raw_keys) == {
            encode_key(connector.name, bucket_first(connector, key)) for key in ("all", "half", *AWKWARD)
        }
        assert run(connector).records == 3 + 4 + 4
        assert sorted(connector.values()) == sorted([*LINES.splitlines()[1:], *LINES.splitlines() * 2])
        assert all(offset["complete"] for offset in connector.offsets().values())
        assert run(connector).records == 0

    def test_from_a_topic_of_its_own(self, connector, kafka_connect):
        """With `--from-topic` Kafka Connect's topic is only read; ours is made, and has what was found there."""
        connector.put("all", LINES)
        theirs = f"connect-{connector.name}"
        create_topic(connector.settings.bootstrap_servers, theirs, partitions=25, config=COMPACTED)
        kafka_connect.write(theirs, connector.name, (object_first(connector, "all"), {"recordCount": 4}))
        before = written(connector.settings.bootstrap_servers, theirs)

        migrate(connector.props, apply=True, from_topic=theirs, count=True)

        assert written(connector.settings.bootstrap_servers, theirs) == before
        assert connector.offsets()["all"]["complete"] is True
        assert run(connector).records == 0

    def test_both_place_a_key_alike(self, connector, kafka_connect, kafka_bootstrap_servers):
        """A key lies in the partition in which Kafka Connect's producer puts it, and values have the same bytes."""
        topic = f"placement-{uuid.uuid4().hex[:8]}"
        create_topic(kafka_bootstrap_servers, topic, partitions=25, config=COMPACTED)
        value = {"recordCount": 3, "etag": "a\u0001ü\U0001d11e", "complete": True, "ratio": 0.0001, "none": None}
        entries = [(order(connector, key), value) for key in AWKWARD for order in (bucket_first, object_first)]

        kafka_connect.write(topic, connector.name, *entries)

        expected = {
            (raw := encode_key(connector.name, partition)): (encode_value(offset), partition_for(raw, 25))
            for partition, offset in entries
        }
        assert written(kafka_bootstrap_servers, topic) == expected
        ours = {**connector.props, "offset.storage.topic": topic}
        OpenedConnector.of(ours).alter([(partition, {"recordCount": 5}) for partition, _ in entries[::2]], force=True)
        placed = written(kafka_bootstrap_servers, topic)
        assert {raw: placed[raw][1] for raw in expected} == {raw: place for raw, (_, place) in expected.items()}


def test_the_ids_that_are_fenced_are_connects(connector, kafka_connect):
    """The transactional ids that `--connect-group` fences are those of Kafka Connect's own tasks."""
    assert fence_connect(connector.settings, "my-group", 2) == [
        kafka_connect.transactional_id("my-group", connector.name, task) for task in range(2)
    ]
