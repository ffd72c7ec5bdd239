"""`headrace offsets list` and `reset`, on a real broker."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from headrace.framework.errors import TakenOverError
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.records import EnumeratorState, generation_key
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey


def put_raw(connector, records):
    """Write raw records, as whoever wrote the topic before us."""
    ensure_offsets_topic(connector.settings)
    producer = Producer(connector.settings.producer_config())
    for key, value in records.items():
        producer.produce(connector.settings.offsets_topic, value, key)
    producer.flush()


def claimed(connector):
    return Claim.take(
        connector.settings,
        partitions=connector.settings.offsets_partitions,
        tasks=connector.settings.offsets_partitions,
    )


def entries(connector):
    """One entry under both orders of its key, one under Connect's own, and another connector's."""
    return {
        f'["{connector.name}",{{"bucket":"b","objectKey":"x"}}]'.encode(): b'{"recordCount":5}',
        f'["{connector.name}",{{"objectKey":"x","bucket":"b"}}]'.encode(): b'{"recordCount":3}',
        f'["{connector.name}",{{"objectKey":"y","bucket":"b"}}]'.encode(): b'{"recordCount":1}',
        f'["{connector.name}-2",{{"bucket":"b","objectKey":"z"}}]'.encode(): b'{"recordCount":9}',
    }


class TestList:
    def test_the_body_is_that_of_kafka_connect(self, as_json, connector):
        """One entry for each source partition, whatever the order of its key, and no other connector's."""
        put_raw(connector, entries(connector))

        code, document = as_json("offsets", "list", connector.file)

        assert code == 0
        assert document.keys() == {"offsets"}
        assert document["offsets"] == [
            {"partition": {"bucket": "b", "objectKey": "x"}, "offset": {"recordCount": 5}},
            {"partition": {"bucket": "b", "objectKey": "y"}, "offset": {"recordCount": 1}},
        ]

    def test_people_get_a_table(self, headrace, connector):
        """Without --output json each entry is a line."""
        put_raw(connector, entries(connector))
        done = headrace("offsets", "list", connector.file)
        assert done.returncode == 0
        head, first, *_ = done.stdout.splitlines()
        assert head.split() == ["partition", "offset"]
        assert first.split() == ['{"bucket":"b","objectKey":"x"}', '{"recordCount":5}']

    def test_a_run_goes_on_undisturbed(self, as_json, connector):
        """Listing writes nothing and fences nobody."""
        put_raw(connector, entries(connector))
        claim = claimed(connector)

        as_json("offsets", "list", connector.file)

        claim.follow()
        claim.stopped()
        claim.close()

    def test_a_topic_that_is_not_there(self, headrace, connector):
        """No offsets topic means no entries, said on standard error; it is not made."""
        done = headrace("offsets", "list", connector.file, "--output", "json")
        assert (done.returncode, done.stdout) == (0, '{\n  "offsets": []\n}\n')
        assert connector.settings.offsets_topic in done.stderr
        admin = AdminClient({"bootstrap.servers": connector.settings.bootstrap_servers})
        assert connector.settings.offsets_topic not in admin.list_topics(timeout=30).topics


class TestReset:
    def test_a_stopped_connector_forgets_everything(self, as_json, connector):
        """Every raw key is removed, and the generation, which says stopped, and other connectors' entries stay."""
        put_raw(connector, entries(connector))
        claim = claimed(connector)
        claim.stopped()
        claim.close()

        code, document = as_json("offsets", "reset", connector.file)

        assert (code, document["keys"]) == (0, 3)
        assert document["message"] == "The offsets for this connector have been reset successfully"
        view = connector.view()
        assert view.entries == {}
        assert generation_key(connector.name) in view.beside
        assert view.generation.stopped
        assert view.generation.generation == claim.generation.generation + 1
        assert list(connector.view(f"{connector.name}-2").entries.values()) == [b'{"recordCount":9}']

    def test_a_running_connector_is_left_alone(self, as_json, connector):
        """A connector that is not stopped is refused in Kafka Connect's words, and its run goes on."""
        put_raw(connector, entries(connector))
        claim = claimed(connector)
        before = connector.view().entries

        code, document = as_json("offsets", "reset", connector.file)

        assert (code, document["state"]) == (1, "FAILED")
        assert "must be in the STOPPED state before their offsets can be modified" in document["error"]
        assert connector.view().entries == before
        claim.follow()
        claim.stopped()
        claim.close()

    def test_a_connector_of_our_name_forgets_nothing_of_others(self, headrace, connector):
        """One that is called headrace is reset, and who shares its topic keeps generation, roll-up and counters."""
        put_raw(connector, {b'["headrace",{"bucket":"b","objectKey":"x"}]': b'{"recordCount":5}'})
        claim = claimed(connector)
        claim.roll_up({OffsetManagerKey({"bucket": "b", "objectKey": "y"}): "version"})
        claim.remember(EnumeratorState(state={"watermark": "y"}))
        claim.stopped()
        claim.close()
        before = connector.view()

        done = headrace("offsets", "reset", connector.file, "--set", "name=headrace", "--force")

        assert (done.returncode, "1 keys removed" in done.stdout, "passed over" in done.stderr) == (0, True, False)
        assert connector.view("headrace").entries == {}
        after = connector.view()
        assert (len(after.rollup), after.beside) == (1, before.beside)

    def test_force_ends_a_run(self, as_json, connector):
        """With --force the run is taken over before anything is removed."""
        put_raw(connector, entries(connector))
        claim = claimed(connector)

        code, document = as_json("offsets", "reset", connector.file, "--force")

        assert (code, document["keys"]) == (0, 3)
        assert connector.view().entries == {}
        with pytest.raises(TakenOverError):
            claim.stopped()
        claim.close()

    def test_a_connector_of_kafka_connects(self, headrace, connector):
        """Where no run of ours was ever stopped the refusal says what to do about it."""
        put_raw(connector, entries(connector))
        done = headrace("offsets", "reset", connector.file)
        assert done.returncode == 1
        assert "if it runs in Kafka Connect, stop it there; then use --force" in done.stderr

    def test_a_topic_that_is_not_there(self, headrace, connector):
        """Where there is no offsets topic there is nothing to forget, and none is made."""
        done = headrace("offsets", "reset", connector.file)
        assert done.returncode == 0
        assert "0 keys removed" in done.stdout
        assert connector.settings.offsets_topic in done.stderr


def test_a_broker_that_is_not_there(as_json, connector):
    """A broker that cannot be reached is a failure within a minute that names it."""
    code, document = as_json("offsets", "list", connector.file, "--set", "bootstrap.servers=127.0.0.1:1")
    assert (code, document["state"]) == (1, "FAILED")
    assert "127.0.0.1:1" in document["error"]


@pytest.mark.parametrize("kind", ["generation", "enumerator"])
def test_a_record_of_ours_that_cannot_be_read(as_json, connector, kind):
    """A run names it, and what to do; once that is done, everything goes on."""
    key = f'["headrace",{{"connector":"{connector.name}"}},"{kind}"]'
    put_raw(connector, {key.encode(): b"{"})

    code, document = as_json("run", connector.file, "--available-now", "--engine", "local")

    assert (code, document["state"]) == (1, "FAILED")
    assert f"the record {key} of the offsets topic cannot be read" in document["error"]
    put_raw(connector, {key.encode(): None})
    code, document = as_json("run", connector.file, "--available-now", "--engine", "local")
    assert (code, document["state"]) == (0, "COMPLETED")
