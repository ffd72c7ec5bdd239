"""An S3 server, a bucket of its own for each test, and a proxy that breaks things in front of it."""

import uuid

import boto3
import pytest

from headrace.framework.backoff import BackoffConfig
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.client import Connection, make_client
from headrace.testing.faulty_s3 import FaultyS3

FAST = BackoffConfig(first_s=0.001, longest_s=0.01)


@pytest.fixture(scope="session")
def s3(s3_endpoint):
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - anybody may come in
    )
    yield client
    client.close()


@pytest.fixture
def bucket(s3):
    name = f"bucket-{uuid.uuid4()}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def faulty(s3_endpoint):
    with FaultyS3(s3_endpoint) as proxy:
        yield proxy


@pytest.fixture
def client(faulty):
    """The source's own client, through the proxy."""
    made = make_client(
        Connection(endpoint=faulty.endpoint, access_key_id="key", secret_access_key="secret")  # noqa: S106 - as above
    )
    yield made
    made.close()


@pytest.fixture
def attempts():
    """Attempts that do not wait for long."""
    return Attempts(config=FAST)
