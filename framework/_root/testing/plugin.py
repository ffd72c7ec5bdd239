"""The pytest plugin: loaded by its entry point wherever headrace is installed; costs nothing until it is used."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka_bootstrap_servers", "redis_port", "s3_endpoint", "spark_on_cluster", "spark_on_threads"]


@pytest.fixture(scope="session")
def kafka_bootstrap_servers() -> Iterator[str]:
    """The `bootstrap.servers` of a real broker: an embedded one for this session.

    `HEADRACE_TEST_BOOTSTRAP` names an existing broker to use in its place. Topics stay until the session ends, so
    a test takes names of its own.
    """
    if existing := os.environ.get("HEADRACE_TEST_BOOTSTRAP"):
        yield existing
        return
    from headrace.testing.kafka import EmbeddedKafka  # noqa: PLC0415 - a plugin must not slow down other people's tests

    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The endpoint of an S3 server: an embedded one for this session, that takes any key pair.

    `HEADRACE_TEST_S3_ENDPOINT` names an existing one to use in its place. Buckets stay until the session ends, so a
    test takes names of its own.
    """
    if existing := os.environ.get("HEADRACE_TEST_S3_ENDPOINT"):
        yield existing
        return
    from headrace.testing.s3 import EmbeddedS3  # noqa: PLC0415 - a plugin must not slow down other people's tests

    with EmbeddedS3() as s3:
        yield s3.endpoint


@pytest.fixture(scope="session")
def redis_port() -> Iterator[int]:
    """The port of a Redis server on 127.0.0.1: an embedded one for this session, in memory.

    `HEADRACE_TEST_REDIS_PORT` names an existing one to use in its place. Streams stay until the session ends, so a
    test takes names of its own.
    """
    if existing := os.environ.get("HEADRACE_TEST_REDIS_PORT"):
        yield int(existing)
        return
    from headrace.testing.redis import EmbeddedRedis  # noqa: PLC0415 - a plugin must not slow down other people's tests

    with EmbeddedRedis() as redis:
        yield redis.port


@pytest.fixture(scope="module")
def spark_on_threads() -> "Iterator[SparkSession]":
    """A Spark session on two threads of one machine, for the tests of one module.

    A process has one session at a time, so a module cannot use this one and `spark_on_cluster`.
    """
    from headrace.framework.spark.session import session  # noqa: PLC0415 - as above

    with session(None, master="local[2]", name="headrace-tests") as spark:
        yield spark


@pytest.fixture(scope="module")
def spark_on_cluster() -> "Iterator[SparkSession]":
    """A Spark session on a standalone cluster of two workers, for the tests of one module."""
    from headrace.framework.spark.session import session  # noqa: PLC0415 - as above
    from headrace.testing.spark_cluster import SparkCluster  # noqa: PLC0415 - as above

    with (
        SparkCluster() as cluster,
        cluster.environment(),
        session(None, master=cluster.url, name="headrace-tests") as spark,
    ):
        yield spark
