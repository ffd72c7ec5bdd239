"""What Kafka's Java clients call their settings, and what librdkafka calls them.

A setting that neither table here names is passed on as it is: most names are the same on both sides, and librdkafka
refuses what it does not know when a client is made.
"""

from collections.abc import Mapping

__all__ = ["COMMON", "LIBRDKAFKA", "OURS", "RENAMED", "WITHOUT_EFFECT"]

COMMON = ("sasl.", "security.protocol", "ssl.")
"""What a worker says without a prefix, for all its connections."""

RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
}
"""Java's name to librdkafka's, where the value stays as it is."""

OURS: Mapping[str, str] = {
    "acks": "delivery to Kafka is always acknowledged by all in-sync replicas",
    "auto.offset.reset": "Headrace says itself where it reads its offsets",
    "bootstrap.servers": "records and offsets share one transaction: bootstrap.servers alone names their Kafka",
    "delivery.report.only.error": "Headrace asks for the reports that it needs",
    "enable.auto.commit": "offsets are committed together with their records",
    "enable.auto.offset.store": "offsets are committed together with their records",
    "enable.idempotence": "Headrace's producers are idempotent",
    "enable.partition.eof": "Headrace says itself where it reads its offsets",
    "group.id": "Headrace's consumers are in no group",
    "isolation.level": "Headrace reads committed offsets only",
    "key.deserializer": "keys are read as bytes",
    "key.serializer": "key.converter makes the bytes",
    "transaction.timeout.ms": "say it without the prefix",
    "transactional.id": "the ids are made of transactional.id.prefix, the connector's name and the task's number",
    "value.deserializer": "values are read as bytes",
    "value.serializer": "value.converter makes the bytes",
}
"""What the framework decides, whatever a configuration says."""

JAVA = "librdkafka has nothing like it"

WITHOUT_EFFECT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter",
            "compression.lz4.level",
            "compression.zstd.level",
            "config.providers",
            "default.api.timeout.ms",
            "exclude.internal.topics",
            "interceptor.classes",
            "max.block.ms",
            "metadata.max.idle.ms",
            "metric.reporters",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "partitioner.ignore.keys",
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
            "security.providers",
            "socket.connection.setup.timeout.max.ms",
            "ssl.enabled.protocols",
            "ssl.keymanager.algorithm",
            "ssl.protocol",
            "ssl.provider",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
        JAVA,
    ),
    "max.poll.records": "librdkafka hands out what it has fetched",
}
"""What can be left out without a connection being refused or a record being lost."""

KNOWN = """
    acks allow.auto.create.topics api.version.request auto.commit.interval.ms auto.offset.reset
    batch.num.messages batch.size broker.address.family broker.address.ttl buffer.memory check.crcs
    client.dns.lookup client.id client.rack compression.codec compression.gzip.level compression.level
    compression.type connections.max.idle.ms coordinator.query.interval.ms debug delivery.timeout.ms
    enable.auto.commit enable.idempotence enable.metrics.push enable.ssl.certificate.verification
    fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol heartbeat.interval.ms isolation.level linger.ms
    log_level max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy partitioner partitioner.class
    plugin.library.paths queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
    receive.buffer.bytes receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.required.acks request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.keytab sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name
    sasl.login.callback.handler.class sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol
    send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable
    socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location
    ssl.curves.list ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.location
    ssl.key.password ssl.key.pem ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
    ssl.keystore.password ssl.keystore.type ssl.providers ssl.sigalgs.list ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type statistics.interval.ms
    sticky.partitioning.linger.ms topic.metadata.refresh.interval.ms
"""

LIBRDKAFKA = frozenset(KNOWN.split())
"""Names that are known, of librdkafka and of the Java clients: a slip in one of them is found before a client is
made."""
