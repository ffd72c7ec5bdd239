"""The keys that every source has in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from headrace.framework.config import Boundary, DataLoss, SourceCommonConfig, Support, Tolerance, integer, option
from headrace.framework.config_files import load
from headrace.framework.errors import ConfigError
from headrace.framework.registry import plugins

DATA = Path(__file__).parents[1] / "data"
LEAST = {"name": "orders", "connector.class": "s3", "bootstrap.servers": "broker:9092"}
JAVA_NAME = "io.aiven.kafka.connect.s3.source.S3SourceConnector"


@attrs.frozen(kw_only=True)
class NumbersConfig(SourceCommonConfig):
    INERT: ClassVar[Mapping[str, str]] = {"numbers.speed": "numbers come as they come"}

    count: int = option("numbers.count", integer(at_least=1), default=10, doc="How many there are.")


def faults(props, kind=SourceCommonConfig):
    """Key to message and suggestion of every fault."""
    with pytest.raises(ConfigError) as caught:
        kind.from_props(LEAST | props)
    return {fault.key: (fault.message, fault.suggestion) for fault in caught.value.faults}


def test_defaults():
    """Without more than the three required keys, every value is the one that is promised."""
    config = SourceCommonConfig.from_props(LEAST)
    values = attrs.asdict(config, filter=lambda field, _: field.name != "props")
    assert values == {
        "name": "orders",
        "connector_class": "s3",
        "tasks_max": 1,
        "topic": None,
        "bootstrap_servers": "broker:9092",
        "offset_storage_topic": "headrace-offsets",
        "offset_storage_partitions": 25,
        "offset_storage_replication_factor": None,
        "exactly_once_support": Support.REQUESTED,
        "transaction_boundary": Boundary.INTERVAL,
        "transaction_boundary_interval_ms": 1000,
        "transaction_boundary_max_records": 100_000,
        "transaction_timeout_ms": 30_000,
        "transactional_id_prefix": "headrace",
        "max_poll_records": 500,
        "batch_max_ms": 10_000,
        "discovery_interval_ms": 500,
        "stop_rule": None,
        "reconcile_interval_ms": 300_000,
        "rollup_min_entries": 100_000,
        "input_format": "bytes",
        "file_compression_type": "auto",
        "max_record_bytes": 67108864,
        "max_decompression_ratio": 1000,
        "transformer_max_buffer_size": 0,
        "file_name_template": ".*",
        "distribution_type": "balanced",
        "key_converter": "bytes",
        "value_converter": "bytes",
        "errors_tolerance": Tolerance.NONE,
        "dead_letter_topic": None,
        "dead_letter_replication_factor": None,
        "dead_letter_context": True,
        "errors_retry_timeout_ms": 0,
        "errors_retry_delay_max_ms": 60_000,
        "errors_log_enable": False,
        "errors_log_messages": False,
        "sink": "kafka",
        "data_loss": DataLoss.FAIL,
    }
    assert config.warnings() == []
    assert config.producer_overrides == config.consumer_overrides == config.admin_overrides == {}


def test_what_is_required():
    """Name, source and Kafka must be given; the fault says what each is for."""
    with pytest.raises(ConfigError) as caught:
        SourceCommonConfig.from_props({})
    assert [fault.key for fault in caught.value.faults] == ["name", "connector.class", "bootstrap.servers"]
    assert all(fault.message.startswith("is required: ") for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("format_", "converter"), [("bytes", "bytes"), ("text", "string"), ("jsonl", "json"), ("JSONL", "json")]
)
def test_the_value_converter_follows_the_format(format_, converter):
    """Bytes go out as bytes, text as strings, everything else as JSON, unless a converter is named."""
    assert SourceCommonConfig.from_props(LEAST | {"input.format": format_}).value_converter == converter
    named = LEAST | {"input.format": format_, "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    assert SourceCommonConfig.from_props(named).value_converter == "org.apache.kafka.connect.storage.StringConverter"


def test_the_java_name_is_the_source():
    """Aiven's class name is `s3`, with Aiven's size of a chunk of bytes."""
    config = SourceCommonConfig.from_props(LEAST | {"connector.class": JAVA_NAME})
    assert (config.source, config.transformer_max_buffer_size) == ("s3", 4096)
    assert SourceCommonConfig.from_props(LEAST).source == "s3"
    own = LEAST | {"connector.class": JAVA_NAME, "transformer.max.buffer.size": "100"}
    assert SourceCommonConfig.from_props(own).transformer_max_buffer_size == 100


def test_a_task_of_ones_own():
    """`module:Class` is a source without any packaging, and its keys pass undeclared."""
    props = LEAST | {"connector.class": "my.tasks:NumbersTask", "numbers.count": "4"}
    config = SourceCommonConfig.from_props(props)
    assert (config.source, config.value("numbers.count")) == ("my.tasks:NumbersTask", "4")


class TestTransactions:
    def test_the_time_out_follows_the_boundary(self):
        """An object may take as long as the broker allows; other transactions are short."""
        config = SourceCommonConfig.from_props(LEAST | {"transaction.boundary": "object"})
        assert config.transaction_timeout_ms == 900_000
        both = {"transaction.boundary": "object", "transaction.timeout.ms": "60000"}
        assert SourceCommonConfig.from_props(LEAST | both).transaction_timeout_ms == 60_000

    @pytest.mark.parametrize("word", ["connector", "Connector"])
    def test_the_connector_s_boundary_is_the_object(self, word):
        """Connect's `connector` means `object` here, and a warning says so."""
        props = LEAST | {"transaction.boundary": word}
        assert SourceCommonConfig.from_props(props).transaction_boundary is Boundary.OBJECT
        [warning] = SourceCommonConfig.warnings_for(props)
        assert "means object" in warning

    def test_an_interval_ends_before_the_time_out(self):
        """An interval that the broker would not wait for is a fault, with this boundary only."""
        found = faults({"transaction.boundary.interval.ms": "30000"})
        assert "transaction.timeout.ms" in found["transaction.boundary.interval.ms"][0]
        poll = {"transaction.boundary.interval.ms": "30000", "transaction.boundary": "poll"}
        assert SourceCommonConfig.from_props(LEAST | poll).transaction_boundary is Boundary.POLL

    def test_the_offsets_topic_of_the_connector_wins(self):
        """`offsets.storage.topic` of a connector goes before `offset.storage.topic` of its worker."""
        props = LEAST | {"offset.storage.topic": "worker", "offsets.storage.topic": "own"}
        assert SourceCommonConfig.from_props(props).offset_storage_topic == "own"


class TestKnownKeys:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("transforms", "unwrap"),
            ("transforms.unwrap.type", "x"),
            ("predicates", "p"),
            ("value.converter", "avro"),
            ("value.converter", "io.confluent.connect.avro.AvroConverter"),
            ("key.converter", "Protobuf"),
            ("connector.class", "nats"),
            ("sink", "nats"),
            ("sink.nats.servers", "x"),
            ("timestamp.source", "lastModified"),
            ("headers.source.enable", "true"),
            ("topic.creation.default.partitions", "3"),
        ],
    )
    @pytest.mark.parametrize("kind", [SourceCommonConfig, NumbersConfig])
    def test_not_yet(self, key, value, kind):
        """What is known and does not work so far is refused with these words, whatever the source."""
        assert faults({key: value}, kind)[key][0].startswith("not yet: ")

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("transforms", ""),
            ("predicates", ""),
            ("headers.source.enable", "false"),
        ],
    )
    def test_not_asked_for(self, key, value):
        """A value that asks for nothing passes."""
        assert NumbersConfig.from_props(LEAST | {key: value}).count == 10

    @pytest.mark.parametrize(
        "key",
        [
            "rest.port",
            "plugin.path",
            "config.storage.topic",
            "status.storage.cleanup.policy",
            "offset.flush.interval.ms",
            "exactly.once.source.support",
            "offset.storage.file.filename",
            "config.providers.file.class",
            "tasks.max.enforce",
            "topic.creation.enable",
            "group.id",
            "key.converter.plugin.version",
            "header.converter",
            "metric.reporters",
        ],
    )
    @pytest.mark.parametrize("kind", [SourceCommonConfig, NumbersConfig])
    def test_without_effect(self, key, kind):
        """A worker's or a connector's key that Headrace has no use for is a warning that says why."""
        kind.from_props(LEAST | {key: "x"})
        [warning] = kind.warnings_for(LEAST | {key: "x"})
        assert warning.startswith(f"{key} has no effect here: ")

    @pytest.mark.parametrize(
        ("key", "meant"),
        [
            ("task.max", "tasks.max"),
            ("bootstrap.server", "bootstrap.servers"),
            ("offset.storage.partition", "offset.storage.partitions"),
            ("value.converter.schema.enable", "value.converter.schemas.enable"),
            ("producer.override.lingr.ms", "producer.override.linger.ms"),
            ("consumer.fetch.min.byte", "consumer.fetch.min.bytes"),
            ("security.protocal", "security.protocol"),
            ("error.tolerance", "errors.tolerance"),
        ],
    )
    @pytest.mark.parametrize("kind", [SourceCommonConfig, NumbersConfig])
    def test_a_slip(self, key, meant, kind):
        """A slip in a known key is a fault with that key, for a task that declares no keys, too."""
        assert faults({key: "x"}, kind) == {key: ("is unknown", meant)}

    def test_closed_and_open(self):
        """A class that declares keys has a closed set; without declarations keys of its own word pass."""
        assert faults({"numbers.start": "1", "well.depth": "3"}, NumbersConfig).keys() == {
            "numbers.start",
            "well.depth",
        }
        assert faults({"number.counts": "1"}, NumbersConfig)["number.counts"][1] == "numbers.count"
        own = LEAST | {"numbers.start": "1", "well.depth": "3"}
        assert SourceCommonConfig.from_props(own).value("well.depth") == "3"

    def test_no_known_key_is_a_slip_in_another(self):
        """Whatever is known passes the search for slips: each known key is refused as `not yet` or not at all."""
        for key in sorted(NumbersConfig.known() | SourceCommonConfig.known()):
            found = {}
            try:
                NumbersConfig.from_props(LEAST | {key: ""})
            except ConfigError as error:
                found = {fault.key: fault.message for fault in error.faults}
            assert "is unknown" not in found.get(key, ""), key


class TestFromKafkaConnect:
    def test_a_worker_and_a_connector_side_by_side(self, monkeypatch):
        """A worker's file and a connector's, as they run in Kafka Connect, are one valid configuration."""
        monkeypatch.chdir(DATA)
        props = load(["connect-distributed.properties", "s3-source-connector.json"])
        config = SourceCommonConfig.from_props(props)
        assert config.source == "s3"
        assert config.name == "s3-orders"
        assert config.tasks_max == 4
        assert config.bootstrap_servers == "broker-1.example:9093,broker-2.example:9093,broker-3.example:9093"
        assert config.offset_storage_topic == "connect-offsets-orders"
        assert config.transaction_boundary is Boundary.OBJECT
        assert config.value_converter == "org.apache.kafka.connect.json.JsonConverter"

    def test_its_clients(self):
        """The clients sign in as the worker's do, and what the connector overrides goes over it."""
        props = load([DATA / "connect-distributed.properties", DATA / "s3-source-connector.json"])
        config = SourceCommonConfig.from_props(props)
        common = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "connect",
            "ssl.ca.location": "/etc/kafka/ca.pem",
            "ssl.endpoint.identification.algorithm": "https",
        }
        assert config.admin_overrides == common | {"sasl.password": "worker-pw"}
        assert config.consumer_overrides == common | {"sasl.password": "worker-pw", "fetch.wait.max.ms": "250"}
        assert config.producer_overrides == common | {
            "sasl.password": "producer-pw",
            "linger.ms": "20",
            "batch.size": "262144",
            "queue.buffering.max.kbytes": "65536",
            "compression.type": "zstd",
            "message.max.bytes": "2097152",
        }

    def test_every_key_without_effect_is_said(self):
        """Nothing is dropped in silence: what is neither an option nor passed on is in a warning; no secret is."""
        props = load([DATA / "connect-distributed.properties", DATA / "s3-source-connector.json"])
        warnings = SourceCommonConfig.warnings_for(props)
        warned = {warning.split()[0] for warning in warnings if "has no effect here" in warning}
        assert {"group.id", "plugin.path", "listeners", "consumer.max.poll.records", "producer.acks"} <= warned
        assert "offset.storage.topic" in warned
        assert len(warnings) == len(set(warnings))
        assert "producer-pw" not in " ".join(warnings)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("connector.class", "sources"),
        ("input.format", "transformers"),
        ("value.converter", "converters"),
        ("key.converter", "converters"),
        ("sink", "sinks"),
        ("distribution.type", "distributions"),
    ],
)
def test_the_words_are_the_registry_s(key, kind):
    """The names that a plugin's option shows are those of the plugins that Headrace brings, none more and none less."""
    [declared] = [declared for declared in SourceCommonConfig.options() if declared.key == key]
    built_in = {plugin.name for plugin in plugins(kind) if plugin.distribution == "headrace"}
    assert set(declared.parser.words) == built_in


class TestFormats:
    """The keys of formats."""

    def test_keys_of_the_format_pass(self):
        """The keys of the format that is named are known, for sources with and without keys of their own."""
        for kind in (SourceCommonConfig, NumbersConfig):
            config = kind.from_props({**LEAST, "input.format": "csv", "csv.delimiter": ";"})
            assert config.warnings() == []

    def test_keys_of_another_format_have_no_effect(self):
        """A key of a format that is not named is no fault, and a warning says that it has no effect."""
        config = NumbersConfig.from_props({**LEAST, "input.format": "jsonl", "csv.delimiter": ";"})
        assert config.warnings() == ["csv.delimiter has no effect: it is for another input.format"]

    def test_a_slip_in_a_formats_key(self):
        """A slip in a format's key is a fault with the key that was meant."""
        assert faults({**LEAST, "input.format": "csv", "csv.delimeter": ";"})["csv.delimeter"][1] == "csv.delimiter"

    def test_parquet_is_compressed_already(self):
        """A compression of whole objects is refused with Parquet; where Kafka Connect ignores it, a warning says so."""
        props = {"input.format": "parquet", "file.compression.type": "gzip"}
        assert "compresses by itself" in faults({**LEAST, **props})["file.compression.type"][0]
        assert "file.compression.type" not in faults({**props, "tasks.max": "0", "file.compression.type": "none"})

        java = {**LEAST, **props, "connector.class": JAVA_NAME}
        assert "file.compression.type has no effect: the format compresses by itself" in (
            SourceCommonConfig.from_props(java).warnings()
        )
