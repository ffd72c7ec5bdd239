"""Every key of Aiven's S3 source is live, or said to have no effect, or refused; none is dropped in silence."""

import pickle
import threading

import pytest

from headrace.framework.errors import ConfigError, RetriableError
from headrace.sources.s3.client import Connection, Role
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import OverwritePolicy

BASE = {
    "name": "logs",
    "connector.class": "io.aiven.kafka.connect.s3.source.S3SourceConnector",
    "bootstrap.servers": "localhost:9092",
    "aws.s3.bucket.name": "my-bucket",
}

AIVEN = [
    "aws.access.key.id",
    "aws.credentials.provider",
    "aws.s3.backoff.delay.ms",
    "aws.s3.backoff.max.delay.ms",
    "aws.s3.backoff.max.retries",
    "aws.s3.bucket.name",
    "aws.s3.endpoint",
    "aws.s3.fetch.buffer.size",
    "aws.s3.fetch.page.size",
    "aws.s3.part.size.bytes",
    "aws.s3.prefix",
    "aws.s3.region",
    "aws.s3.sse.algorithm",
    "aws.secret.access.key",
    "aws.sts.config.endpoint",
    "aws.sts.role.arn",
    "aws.sts.role.external.id",
    "aws.sts.role.session.duration",
    "aws.sts.role.session.name",
    "aws_access_key_id",
    "aws_s3_bucket",
    "aws_s3_endpoint",
    "aws_s3_prefix",
    "aws_s3_region",
    "aws_secret_access_key",
    "distribution.type",
    "errors.tolerance",
    "file.compression.type",
    "file.max.records",
    "file.name.template",
    "file.name.timestamp.source",
    "file.name.timestamp.timezone",
    "file.prefix.template",
    "input.format",
    "kafka.retry.backoff.ms",
    "max.poll.records",
    "native.start.key",
    "output_compression",
    "output_fields",
    "ring.buffer.size",
    "schema.registry.url",
    "task.id",
    "tasks.max",
    "topic",
    "transformer.max.buffer.size",
    "value.converter.schema.registry.url",
]


def config(**more):
    """A configuration from keys whose dots are written as __."""
    return S3Config.from_props({**BASE, **{key.replace("__", "."): value for key, value in more.items()}})


def faults(**more):
    """The faults of such a configuration: message by key."""
    with pytest.raises(ConfigError) as caught:
        config(**more)
    return {fault.key: fault.message for fault in caught.value.faults}


def test_the_defaults_are_aivens_but_for_the_page_size():
    """A minimal configuration asks Amazon, waits as Aiven's does, and lists 1000 objects a page."""
    made = config()
    assert made.connection() == Connection(region="us-east-1")
    assert (made.page_size, made.max_retries, made.backoff_delay_ms, made.backoff_max_delay_ms) == (1000, 3, 100, 20000)
    assert made.overwrite_policy is OverwritePolicy.REREAD
    assert made.warnings() == []


@pytest.mark.parametrize("key", AIVEN)
def test_finding_7_every_key_of_aivens_is_known(key):
    """Finding 7: no key of Aiven's source is unknown here; what is wrong with a value is said of the value."""
    assert "unknown" not in str(faults(**{key: "no such value", "tasks.max": "none"}))


@pytest.mark.parametrize(
    "key",
    [
        "aws.s3.fetch.buffer.size",
        "aws.s3.part.size.bytes",
        "aws.s3.sse.algorithm",
        "file.max.records",
        "file.name.timestamp.source",
        "file.name.timestamp.timezone",
        "file.prefix.template",
        "kafka.retry.backoff.ms",
        "output_compression",
        "ring.buffer.size",
        "schema.registry.url",
        "task.id",
    ],
)
def test_finding_7_a_key_without_effect_is_said_to_have_none(key):
    """Finding 7: what Aiven's source takes in silence and does not use is a warning here that says why."""
    assert [warning.partition(":")[0] for warning in config(**{key: "1"}).warnings()] == [f"{key} has no effect here"]


def test_finding_7_backoff_settings_hold_with_an_endpoint_of_ones_own():
    """Finding 7: the settings of retries come out the same with and without an endpoint."""
    stopping = threading.Event()
    for more in ({}, {"aws.s3.endpoint": "http://localhost:9000"}):
        attempts = config(
            **{"aws.s3.backoff.delay.ms": "7", "aws.s3.backoff.max.delay.ms": "70", "aws.s3.backoff.max.retries": "9"},
            **more,
        ).attempts(stopping)
        assert (attempts.retries, attempts.config.first_s, attempts.config.longest_s) == (9, 0.007, 0.07)


def test_no_wait_is_longer_than_a_stop_may_take():
    """Waits are cut at 5 seconds, whatever is asked for."""
    waits = config(**{"aws.s3.backoff.delay.ms": "60000"}).attempts(threading.Event()).config
    assert (waits.first_s, waits.longest_s) == (5.0, 5.0)


def test_old_names_work_and_are_said_to_be_old():
    """The underscore names of old set what they say, with a warning each."""
    old = {
        "aws_s3_region": "eu-central-1",
        "aws_s3_prefix": "logs/",
        "aws_s3_endpoint": "localhost:9000",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "pair",
    }
    made = config(**old)
    assert made.prefix == "logs/"
    assert made.connection() == Connection(
        region="eu-central-1",
        endpoint="https://localhost:9000",
        access_key_id="key",
        secret_access_key="pair",  # noqa: S106 - nobody's
    )
    assert len(made.warnings()) == len(old)


def test_an_endpoint_without_a_scheme_is_https():
    """An endpoint that names no scheme is asked by https, one that does by that."""
    assert config(aws__s3__endpoint="s3.example.com:9000").connection().endpoint == "https://s3.example.com:9000"
    assert config(aws__s3__endpoint="http://[::1]:9000").connection().endpoint == "http://[::1]:9000"


@pytest.mark.parametrize(
    ("more", "key", "message"),
    [
        ({"aws.s3.bucket.name": "Not_A_Name"}, "aws.s3.bucket.name", "must be a bucket's name"),
        ({"aws.s3.bucket.name": "a..b"}, "aws.s3.bucket.name", "must be a bucket's name"),
        ({"aws.s3.endpoint": "ftp://example.com"}, "aws.s3.endpoint", "must be a URL"),
        ({"aws.s3.endpoint": "http://"}, "aws.s3.endpoint", "must be a URL"),
        ({"aws.s3.region": "nowhere"}, "aws.s3.region", "is no region of Amazon's"),
        ({"aws.s3.region": "us east"}, "aws.s3.region", "must be a region's name"),
        ({"aws.access.key.id": "key"}, "aws.secret.access.key", "is required with aws.access.key.id"),
        ({"aws.secret.access.key": "pair"}, "aws.access.key.id", "is required with aws.secret.access.key"),
        (
            {"aws.access.key.id": "key", "aws.secret.access.key": "pair", "aws.profile": "me"},
            "aws.profile",
            "stands beside a key pair",
        ),
        ({"aws.sts.role.arn": "arn:aws:iam::1:role/r"}, "aws.sts.role.session.name", "is required with"),
        ({"aws.sts.role.external.id": "id"}, "aws.sts.role.external.id", "is of no use without aws.sts.role.arn"),
        ({"aws.sts.role.session.duration": "60"}, "aws.sts.role.session.duration", "must be a whole number"),
        ({"aws.sts.config.endpoint": "https://sts.eu-west-1.amazonaws.com"}, "aws.s3.region", "is required with an"),
        ({"aws.s3.prefix": "logs/{{timestamp:unit=YYYY}}/"}, "aws.s3.prefix", "is a sink's"),
        ({"aws.s3.fetch.page.size": "0"}, "aws.s3.fetch.page.size", "must be a whole number"),
        ({"aws.s3.backoff.max.retries": "31"}, "aws.s3.backoff.max.retries", "must be a whole number"),
        ({"s3.overwrite.policy": "maybe"}, "s3.overwrite.policy", "must be reread | ignore | fail"),
        ({"aws.s3.bukket.name": "b"}, "aws.s3.bukket.name", "is unknown"),
    ],
)
def test_what_is_wrong_is_a_fault_with_its_key(more, key, message):
    """Every rule of the S3 keys names the key that breaks it and says what is allowed."""
    assert faults(**more)[key].startswith(message)


def test_another_server_may_call_its_region_anything():
    """With an endpoint of one's own the region is a name and nothing more."""
    assert config(**{"aws.s3.endpoint": "http://localhost:9000", "aws.s3.region": "garage"}).region == "garage"


@pytest.mark.parametrize(
    "name",
    [
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
    ],
)
def test_the_default_credentials_provider_is_known_by_javas_names(name):
    """Both names of Java's default chain are taken; boto3's own chain is what they mean."""
    assert config(aws__credentials__provider=name).connection() == Connection(region="us-east-1")


def test_other_credentials_providers_are_refused_with_the_way_out():
    """A Java class that Python cannot run is a fault that says what there is in its place."""
    found = faults(**{"aws.credentials.provider": "com.example.VaultCredentialsProvider"})
    assert "aws.profile chooses a profile" in found["aws.credentials.provider"]


def test_a_role_comes_with_all_that_it_needs():
    """The STS keys make a role with its session, external id, duration and endpoint."""
    made = config(
        **{
            "aws.sts.role.arn": "arn:aws:iam::1:role/r",
            "aws.sts.role.session.name": "headrace",
            "aws.sts.role.external.id": "id",
            "aws.sts.role.session.duration": "900",
            "aws.sts.config.endpoint": "sts.amazonaws.com",
        }
    )
    assert made.connection().role == Role(
        arn="arn:aws:iam::1:role/r",
        session_name="headrace",
        external_id="id",
        duration_s=900,
        endpoint="https://sts.amazonaws.com",
    )


def test_secrets_are_not_printed():
    """Neither the configuration nor the connection shows the secret key."""
    made = config(**{"aws.access.key.id": "open", "aws.secret.access.key": "sesame"})
    assert "sesame" not in f"{made} {made.connection()}"


def test_the_configuration_travels():
    """A configuration and a connection reach an executor by pickle unchanged."""
    made = config(**{"aws.access.key.id": "key", "aws.secret.access.key": "pair"})
    for thing in (made, made.connection()):
        assert pickle.loads(pickle.dumps(thing)) == thing  # noqa: S301 - our own bytes


def test_attempts_stop_with_the_task():
    """The attempts of a configuration end when the task that they are for is to stop."""
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(RetriableError, match="task is to stop"):
        config().attempts(stopping).failed(RetriableError("no"))
