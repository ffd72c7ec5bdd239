"""The configuration that every source has in common."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal

import attrs

from headrace.framework import connect_keys
from headrace.framework.choices import Boundary, DataLoss, Support
from headrace.framework.client_names import COMMON, LIBRDKAFKA
from headrace.framework.client_settings import Client, client_settings
from headrace.framework.compat import override
from headrace.framework.error_options import ErrorOptions
from headrace.framework.errors import Fault
from headrace.framework.format_keys import compresses_by_itself, format_keys, keys_without_effect
from headrace.framework.limits import max_decompression_ratio, max_record_bytes
from headrace.framework.options import Option, Options, derived, option
from headrace.framework.parsers import (
    INT_MAX,
    JAVA_JSON,
    Parser,
    boolean,
    choice,
    converter,
    decimal,
    integer,
    member,
    milliseconds,
    name_template,
    names,
    plugin,
    secret,
    servers,
    text,
    topic_name,
)
from headrace.framework.secrets import Secret
from headrace.framework.stop_rule import StopKind, StopRule
from headrace.framework.tolerance import Tolerance

__all__ = [
    "Boundary",
    "DataLoss",
    "Option",
    "Options",
    "Secret",
    "SourceCommonConfig",
    "Support",
    "Tolerance",
    "boolean",
    "choice",
    "decimal",
    "derived",
    "integer",
    "member",
    "milliseconds",
    "names",
    "option",
    "plugin",
    "secret",
    "text",
]

JAVA_SOURCES = {"io.aiven.kafka.connect.s3.source.S3SourceConnector": "s3"}
CLIENTS: tuple[Client, ...] = ("producer", "consumer", "admin")
OBJECT_TIMEOUT_MS = 900_000
TIMEOUT_MS = 30_000
JAVA_BUFFER = 4096


def _default_timeout(config: "SourceCommonConfig") -> int:
    return OBJECT_TIMEOUT_MS if config.transaction_boundary is Boundary.OBJECT else TIMEOUT_MS


def _default_converter(config: "SourceCommonConfig") -> str:
    return {"bytes": "bytes", "text": "string"}.get(config.input_format, "json")


def _default_buffer(config: "SourceCommonConfig") -> int:
    return JAVA_BUFFER if config.connector_class in JAVA_SOURCES else 0


def _compressed_twice(props: Mapping[str, str]) -> bool:
    given = props.get("file.compression.type", "auto").strip().lower()
    return given not in {"auto", "none"} and compresses_by_itself(props.get("input.format", "").strip().lower())


@attrs.frozen(kw_only=True)
class SourceCommonConfig(ErrorOptions):
    """What the framework reads of every configuration; a source's own configuration extends it.

    For a subclass the set of keys is closed: an unknown one is a fault. This class itself lets the keys of a task pass
    that declares none, and only a slip in a known key is a fault; read them from `props`, or with `value`.
    """

    INERT: ClassVar[Mapping[str, str]] = connect_keys.INERT
    NOT_YET: ClassVar[Mapping[str, str]] = connect_keys.NOT_YET
    NEUTRAL: ClassVar[Mapping[str, str]] = connect_keys.NEUTRAL
    STOP_RULES: ClassVar[frozenset[StopKind]] = frozenset({StopKind.SNAPSHOT, StopKind.COUNT, StopKind.IDLE})
    """The kinds of `stop.rule` that a run of the source can end by."""

    PASSED_ON: ClassVar[tuple[str, ...]] = connect_keys.PASSED_ON

    name: str = option(
        "name",
        text(r"[^\x00-\x1f\x7f-\x9f]+", what="must not be empty, nor contain control characters"),
        doc="The connector's name; the first element of every offset key.",
    )
    connector_class: str = option(
        "connector.class",
        plugin("sources", "s3", "files", "redis", also=tuple(JAVA_SOURCES), not_yet=("amps", "flink", "nats")),
        doc="The source: its name, `module:Class`, or the Java class name of the same.",
    )
    tasks_max: int = option("tasks.max", integer(at_least=1), default=1, doc="How many source tasks there are.")
    topic: str | None = option(
        "topic", topic_name(), default=None, doc="The target topic; without it, the object's name gives it."
    )
    bootstrap_servers: str = option("bootstrap.servers", servers(), doc="The Kafka of the records and of the offsets.")
    offset_storage_topic: str = option(
        "offset.storage.topic",
        topic_name(),
        default="headrace-offsets",
        over=("offsets.storage.topic",),
        doc="The topic of the offsets, created compacted if it is missing.",
    )
    offset_storage_partitions: int = option(
        "offset.storage.partitions", integer(at_least=1), default=25, doc="Its partitions, where it is created."
    )
    offset_storage_replication_factor: int | None = option(
        "offset.storage.replication.factor",
        integer(at_least=1, at_most=32767),
        default=derived(lambda _: None, "3, or the number of brokers if fewer"),
        doc="Its replicas, where it is created.",
    )
    exactly_once_support: Support = option(
        "exactly.once.support",
        member(Support),
        default=Support.REQUESTED,
        doc="`required` refuses at start what cannot be exactly once; `requested` says so.",
    )
    transaction_boundary: Boundary = option(
        "transaction.boundary",
        member(Boundary, other_names={"connector": Boundary.OBJECT}),
        default=Boundary.INTERVAL,
        doc="Where a transaction may end.",
    )
    transaction_boundary_interval_ms: int = option(
        "transaction.boundary.interval.ms",
        milliseconds(at_least=1),
        default=1000,
        doc="How long a transaction is open with the boundary `interval`; at the end of what there is, not so long.",
    )
    transaction_boundary_max_records: int = option(
        "transaction.boundary.max.records",
        integer(at_least=1),
        default=100_000,
        doc="How many records a transaction has at most, with the boundary `interval`.",
    )
    transaction_timeout_ms: int = option(
        "transaction.timeout.ms",
        milliseconds(at_least=1000, at_most=INT_MAX),
        default=derived(_default_timeout, "30000; with the boundary `object` 900000"),
        doc="After how long the broker ends an open transaction.",
    )
    transactional_id_prefix: str = option(
        "transactional.id.prefix", text(), default="headrace", doc="What every transactional id begins with."
    )
    max_poll_records: int = option(
        "max.poll.records", integer(at_least=1), default=500, doc="How many records one poll takes at most."
    )
    batch_max_ms: int = option(
        "batch.max.ms",
        milliseconds(at_least=1),
        default=10_000,
        doc="How long one micro-batch of a continuous run lasts at most.",
    )
    discovery_interval_ms: int = option(
        "discovery.interval.ms", milliseconds(at_least=1), default=500, doc="How often the driver looks for new work."
    )
    stop_rule: StopRule | None = option(
        "stop.rule",
        Parser("stop rule", StopRule.parse, "`snapshot`, `position:…`, `time:…`, `count:…` or `idle:…`"),
        default=None,
        doc="What ends the run, for the whole source; without one it goes on until it is stopped.",
    )
    reconcile_interval_ms: int = option(
        "reconcile.interval.ms",
        milliseconds(at_least=1),
        default=300_000,
        doc="How often the whole of a large source is listed; in between, only what is behind the last name seen.",
    )
    rollup_min_entries: int = option(
        "offsets.rollup.min.entries",
        integer(at_least=0),
        default=100_000,
        doc="With so many entries, those of what is finished are rolled up; 0 never rolls up.",
    )
    input_format: str = option(
        "input.format",
        plugin("transformers", "avro", "bytes", "csv", "json", "jsonl", "parquet", "text"),
        default="bytes",
        doc="How the bytes of an object become values.",
    )
    file_compression_type: str = option(
        "file.compression.type",
        choice("auto", "none", "gzip", "snappy", "zstd", "lz4", "bz2", "xz"),
        default="auto",
        doc="How objects are compressed; `auto` looks at the name and at the first bytes.",
    )
    max_record_bytes: int = max_record_bytes()
    max_decompression_ratio: int = max_decompression_ratio()
    transformer_max_buffer_size: int = option(
        "transformer.max.buffer.size",
        integer(at_least=0),
        default=derived(_default_buffer, "0: the whole object; 4096 under the Java class name"),
        doc="The size of a record in bytes, with the format `bytes`.",
    )
    file_name_template: str = option(
        "file.name.template",
        name_template(),
        default=".*",
        doc="A regular expression for the names of objects to read, with `{{topic}}`, `{{partition}}`, "
        "`{{start_offset}}` and `{{timestamp}}`.",
    )
    distribution_type: str = option(
        "distribution.type",
        plugin("distributions", "balanced", "object_hash", "partition"),
        default="balanced",
        doc="Which task reads an object.",
    )
    key_converter: str = option("key.converter", converter(), default="bytes", doc="How keys become bytes.")
    value_converter: str = option(
        "value.converter",
        converter(),
        default=derived(_default_converter, "`bytes` for the format `bytes`, `string` for `text`, else `json`"),
        doc="How values become bytes.",
    )
    sink: str = option("sink", plugin("sinks", "kafka", not_yet=("iggy", "nats")), default="kafka", doc="Where to.")
    data_loss: DataLoss = option(
        "data.loss",
        member(DataLoss),
        default=DataLoss.FAIL,
        doc="What becomes of a run whose source has lost something unread.",
    )

    @classmethod
    @override
    def is_open(cls) -> bool:
        return cls is SourceCommonConfig

    @classmethod
    @override
    def known(cls) -> frozenset[str]:
        converters = {f"{side}.converter.{key}" for side in ("key", "value") for key in connect_keys.JSON_CONVERTER}
        return super().known() | converters | {name for name in LIBRDKAFKA if name.startswith(COMMON)}

    @classmethod
    @override
    def keys_of_others(cls, props: Mapping[str, str]) -> frozenset[str]:
        return super().keys_of_others(props) | format_keys(props)

    @classmethod
    @override
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:
        yield from super().notes(props)
        if props.get("transaction.boundary", "").strip().lower() == "connector":
            yield "transaction.boundary=connector means object here: an object becomes visible as a whole"
        for key in keys_without_effect(props):
            yield f"{key} has no effect: it is for another input.format"
        if props.get("connector.class") in JAVA_SOURCES and _compressed_twice(props):
            yield "file.compression.type has no effect: the format compresses by itself"
        yield from dict.fromkeys(warning for client in CLIENTS for warning in client_settings(client, props).warnings)

    @override
    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        yield from self._transaction_faults()
        yield from self._dead_letter_faults()
        if self.stop_rule is not None and self.stop_rule.kind not in self.STOP_RULES:
            known = ", ".join(sorted(self.STOP_RULES))
            yield self.fault("stop.rule", f"is not for this source: this source knows {known}")
        if self.connector_class not in JAVA_SOURCES and _compressed_twice(self.props):
            yield self.fault("file.compression.type", f"{self.input_format} compresses by itself: take it out")
        yield from dict.fromkeys(fault for client in CLIENTS for fault in client_settings(client, self.props).faults)

    def _transaction_faults(self) -> Iterator[Fault]:
        interval = self.transaction_boundary_interval_ms
        if self.transaction_boundary is Boundary.INTERVAL and interval >= self.transaction_timeout_ms:
            yield self.fault(
                "transaction.boundary.interval.ms",
                "must be less than transaction.timeout.ms, after which the broker ends the transaction",
            )

    def _dead_letter_faults(self) -> Iterator[Fault]:
        others = {self.topic: "the records", self.offset_storage_topic: "the offsets"}
        if self.dead_letter_topic is not None and self.dead_letter_topic in others:
            message = f"is the topic of {others[self.dead_letter_topic]}: dead letters need one of their own"
            yield self.fault("errors.deadletterqueue.topic.name", message)

    @property
    def source(self) -> str:
        """The source's name in Headrace: `connector.class` without Java's way of saying it."""
        return JAVA_SOURCES.get(self.connector_class, self.connector_class)

    def converter_props(self, side: Literal["key", "value"]) -> dict[str, str]:
        """What the converter of keys, or of values, is configured with: its own keys, without their beginning.

        Under its Java class name, Connect's JSON converter writes schemas unless it is told not to; under the name
        `json` it writes none unless it is told to.
        """
        own = self.under(f"{side}.converter.")
        name = self.key_converter if side == "key" else self.value_converter
        return {"schemas.enable": "true"} | own if name == JAVA_JSON else own

    @property
    def producer_overrides(self) -> dict[str, str]:
        """What the configuration says of producers, in librdkafka's words. It holds secrets: do not print it."""
        return dict(client_settings("producer", self.props).settings)

    @property
    def consumer_overrides(self) -> dict[str, str]:
        """The same of consumers."""
        return dict(client_settings("consumer", self.props).settings)

    @property
    def admin_overrides(self) -> dict[str, str]:
        """The same of admin clients."""
        return dict(client_settings("admin", self.props).settings)
