"""Java's names for the settings of Kafka's clients, in librdkafka's words."""

import pytest
from confluent_kafka import Producer

from headrace.framework.client_settings import client_settings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def settings(props):
    """The settings of a producer with these overrides, which must be without faults."""
    made = client_settings("producer", {f"producer.override.{name}": value for name, value in props.items()})
    assert made.faults == ()
    return dict(made.settings)


def refused(props, client="producer"):
    """Key to message of the faults."""
    return {fault.key: fault.message for fault in client_settings(client, props).faults}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"linger.ms": "5", "batch.size": "1000"}, {"linger.ms": "5", "batch.size": "1000"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        ({"buffer.memory": "10"}, {"queue.buffering.max.kbytes": "1"}),
        ({"max.request.size": "5"}, {"message.max.bytes": "5"}),
        ({"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": "0"}),
        ({"receive.buffer.bytes": "65536"}, {"socket.receive.buffer.bytes": "65536"}),
        ({"fetch.max.wait.ms": "10"}, {"fetch.wait.max.ms": "10"}),
        ({"compression.gzip.level": "3"}, {"compression.level": "3"}),
        (
            {"partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
            {"partitioner": "murmur2_random"},
        ),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"something.new.in.librdkafka": "x"}, {"something.new.in.librdkafka": "x"}),
        (
            {"sasl.jaas.config": f"{PLAIN} required username=\"me\" password='a b\\'c' ;"},
            {"sasl.username": "me", "sasl.password": "a b'c"},
        ),
        (
            {"sasl.jaas.config": f'{KERBEROS} required useKeyTab=true keyTab="/etc/k" principal="p@R";'},
            {"sasl.kerberos.keytab": "/etc/k", "sasl.kerberos.principal": "p@R"},
        ),
        (
            {
                "sasl.jaas.config": f'{OAUTH} required clientId="i" clientSecret="s" scope="o";',
                "sasl.login.callback.handler.class": HANDLER,
                "sasl.oauthbearer.token.endpoint.url": "https://auth.example/token",
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "o",
                "sasl.oauthbearer.token.endpoint.url": "https://auth.example/token",
            },
        ),
        ({"ssl.truststore.location": "ca.pem"}, {"ssl.ca.location": "ca.pem"}),
        (
            {"ssl.truststore.location": "ca", "ssl.truststore.type": "pem", "ssl.truststore.password": "x"},
            {"ssl.ca.location": "ca"},
        ),
        ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
        ),
        (
            {"ssl.keystore.location": "me", "ssl.keystore.type": "PEM", "ssl.key.password": "x"},
            {"ssl.certificate.location": "me", "ssl.key.location": "me", "ssl.key.password": "x"},
        ),
        (
            {"ssl.keystore.key": "KEY", "ssl.keystore.certificate.chain": "CHAIN"},
            {"ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN"},
        ),
    ],
)
def test_translated(given, made):
    """What has an exact counterpart is translated; what librdkafka calls by the same name is passed on."""
    assert settings(given) == made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.truststore.location", "trust.jks"),
        ("ssl.truststore.location", "trust.p12"),
        ("ssl.keystore.location", "keys.jks"),
        ("ssl.engine.factory.class", "x.Y"),
        ("sasl.login.class", "x.Y"),
        ("sasl.client.callback.handler.class", "x.Y"),
        ("sasl.login.callback.handler.class", "x.IamHandler"),
        ("sasl.jaas.config", "software.amazon.msk.auth.iam.IAMLoginModule required;"),
        ("sasl.jaas.config", "nonsense"),
        ("sasl.jaas.config", f'{PLAIN} required username="me";'),
        ("sasl.jaas.config", f'{PLAIN} required username="me password="x";'),
        ("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"),
        ("buffer.memory", "lots"),
    ],
)
def test_refused(name, value):
    """What has none is refused with the reason, under the key that says it."""
    for prefix in ("producer.", "producer.override."):
        found = refused({prefix + name: value})
        assert list(found) == [prefix + name]
        assert value not in found[prefix + name]


@pytest.mark.parametrize(
    "name",
    ["acks", "transactional.id", "enable.idempotence", "bootstrap.servers", "max.block.ms", "interceptor.classes"],
)
def test_without_effect(name):
    """What Headrace decides itself, and what only Java has, is not passed on, and a warning says why."""
    made = client_settings("producer", {f"producer.override.{name}": "x"})
    assert (dict(made.settings), made.faults) == ({}, ())
    assert made.warnings[0].startswith(f"producer.override.{name} has no effect here: ")


def test_what_goes_over_what():
    """A connector's override goes over the worker's word for that client, and that over its word for all."""
    props = {"sasl.mechanism": "PLAIN", "security.protocol": "SSL", "ssl.ca.location": "a"}
    props |= {"producer.security.protocol": "SASL_SSL", "producer.ssl.ca.location": "b", "producer.retries": "3"}
    props |= {"producer.override.ssl.ca.location": "c", "consumer.override.ssl.ca.location": "d"}
    assert dict(client_settings("producer", props).settings) == {
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "c",
        "retries": "3",
    }
    assert client_settings("consumer", props).settings["ssl.ca.location"] == "d"
    assert client_settings("admin", props).settings["ssl.ca.location"] == "a"


def test_references_and_secrets(monkeypatch):
    """References are resolved in settings, and neither reprs nor faults show a password."""
    monkeypatch.setenv("KAFKA_PW", "hunter2")
    made = client_settings("producer", {"producer.override.sasl.password": "${env:KAFKA_PW}"})
    assert made.settings == {"sasl.password": "hunter2"}
    assert "hunter2" not in repr(made)
    jaas = f'{PLAIN} required username="me" password="hunter2" nonsense;'
    [fault] = client_settings("admin", {"admin.override.sasl.jaas.config": jaas}).faults
    assert fault.value == "[hidden]"
    assert "hunter2" not in fault.message
    [slip] = client_settings("admin", {"admin.override.sasl.pasword": "hunter2"}).faults
    assert (slip.value, slip.suggestion) == ("[hidden]", "admin.override.sasl.password")
    [gone] = client_settings("admin", {"admin.override.sasl.password": "${env:NOT_SET_ANYWHERE}"}).faults
    assert "NOT_SET_ANYWHERE" in gone.message


def test_librdkafka_takes_them():
    """A producer can be made with what a worker's word for all kinds of things becomes."""
    made = settings(
        {
            "linger.ms": "5",
            "buffer.memory": "33554432",
            "max.request.size": "1048576",
            "send.buffer.bytes": "-1",
            "compression.type": "zstd",
            "max.in.flight.requests.per.connection": "5",
            "partitioner.class": "DefaultPartitioner",
            "retries": "2147483647",
            "delivery.timeout.ms": "120000",
            "request.timeout.ms": "30000",
            "reconnect.backoff.max.ms": "1000",
            "client.dns.lookup": "use_all_dns_ips",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": 'x.ScramLoginModule required username="me" password="pw";',
        }
    )
    assert Producer(made | {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}) is not None
