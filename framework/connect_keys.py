"""The keys of Kafka Connect 4.3 that Headrace knows without obeying them, each with the reason.

They are here so that a worker's properties file and a connector's JSON can be passed as they are: what has no effect
is said in a warning, what would be missed is refused, and nothing is dropped in silence.
"""

from collections.abc import Mapping

__all__ = ["INERT", "JSON_CONVERTER", "NEUTRAL", "NOT_YET", "PASSED_ON"]


def _for(reason: str, *keys: str) -> dict[str, str]:
    return dict.fromkeys(keys, reason)


JSON_CONVERTER = (
    "converter.encoding",
    "converter.type",
    "decimal.format",
    "replace.null.with.default",
    "schema.registry.url",
    "schemas.cache.size",
    "schemas.enable",
)
"""What may stand under `key.converter.` and `value.converter.`."""

INERT: Mapping[str, str] = {
    **_for(
        "a run has no REST server",
        "access.control.allow.methods",
        "access.control.allow.origin",
        "admin.listeners",
        "listeners",
        "listeners.https.*",
        "response.http.headers.config",
        "rest.advertised.host.name",
        "rest.advertised.listener",
        "rest.advertised.port",
        "rest.extension.classes",
        "rest.host.name",
        "rest.port",
    ),
    **_for(
        "a run belongs to no group of workers; a new run of a connector takes over from an older one",
        "connect.protocol",
        "group.id",
        "heartbeat.interval.ms",
        "inter.worker.key.generation.algorithm",
        "inter.worker.key.size",
        "inter.worker.key.ttl.ms",
        "inter.worker.signature.algorithm",
        "inter.worker.verification.algorithms",
        "rebalance.timeout.ms",
        "scheduled.rebalance.max.delay.ms",
        "session.timeout.ms",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
    ),
    **_for(
        "the configuration is in files, not in topics",
        "config.storage.*",
        "config.storage.replication.factor",
        "config.storage.topic",
    ),
    **_for(
        "the state of a run is in the offsets topic and in its summary",
        "status.storage.*",
        "status.storage.partitions",
        "status.storage.replication.factor",
        "status.storage.topic",
    ),
    **_for("the settings of the offsets topic are fixed", "offset.storage.*"),
    **_for("progress is in Kafka: see offset.storage.topic", "offset.storage.file.filename"),
    **_for(
        "offsets are committed together with their records: see transaction.boundary",
        "offset.flush.interval.ms",
        "offset.flush.timeout.ms",
    ),
    **_for("exactly.once.support of the connector decides", "exactly.once.source.support"),
    **_for("tasks have 5 seconds to close", "task.shutdown.graceful.timeout.ms"),
    **_for(
        "plugins are Python packages, found by their entry points",
        "connector.plugin.version",
        "header.converter.plugin.version",
        "key.converter.plugin.version",
        "plugin.discovery",
        "plugin.path",
        "value.converter.plugin.version",
    ),
    **_for("${env:NAME} and ${file:PATH:KEY} are always looked up", "config.providers", "config.providers.*"),
    **_for("a connector may always override the settings of its clients", "connector.client.config.override.policy"),
    **_for("a changed configuration is read when a run starts", "config.action.reload"),
    **_for("a run never has more tasks than tasks.max", "tasks.max.enforce"),
    **_for("the source has no objects that can be split", "split.size.bytes"),
    **_for("topics are not tracked", "topic.tracking.allow.reset", "topic.tracking.enable"),
    **_for("missing topics are created only if the broker does so", "topic.creation.enable"),
    **_for("headers are sent as the bytes that they are", "header.converter", "header.converter.*"),
    **_for("Kafka Connect itself has dropped it", "internal.key.converter", "internal.key.converter.*"),
    **_for("Kafka Connect itself has dropped it", "internal.value.converter", "internal.value.converter.*"),
    **_for(
        "it is Java's",
        "auto.include.jmx.reporter",
        "metric.reporters",
        "metrics.context.*",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "security.providers",
    ),
    **_for(
        "it is for the connection of a worker; what is for a client stands under producer.override., "
        "consumer.override. or admin.override.",
        "client.dns.lookup",
        "client.id",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    ),
}

NOT_YET: Mapping[str, str] = {
    **_for("single-message transforms do not work so far; take them out", "transforms", "transforms.*"),
    **_for("predicates do not work so far; take them out", "predicates", "predicates.*"),
    **_for(
        "topics are not created by these rules so far; create the topic and take them out",
        "topic.creation.*",
        "topic.creation.groups",
    ),
    **_for("records carry no headers of Headrace's so far; take it out", "headers.source.enable"),
    **_for("records carry no timestamp so far; take it out", "timestamp.source"),
    **_for("there is no sink but Kafka so far", "sink.iggy.*", "sink.nats.*"),
}

NEUTRAL: Mapping[str, str] = {
    "headers.source.enable": "false",
}
"""Values with which a key of `NOT_YET` asks for nothing; the empty text always does."""

PASSED_ON = (
    "admin.",
    "consumer.",
    "key.converter.",
    "producer.",
    "sasl.",
    "security.protocol",
    "sink.",
    "ssl.",
    "value.converter.",
)
"""Beginnings of keys that Kafka's clients, converters and sinks read."""
