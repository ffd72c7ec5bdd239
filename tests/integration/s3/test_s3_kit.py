"""The kit's S3 server and the proxy in front of it do what they say."""

import urllib.request
from urllib.error import URLError

import boto3
import pytest

from headrace.sources.s3.client import make_client
from headrace.sources.s3.config import S3Config
from headrace.testing.faulty_s3 import Answer, FaultyS3, Meanwhile, Pass, everything
from headrace.testing.s3 import EmbeddedS3


def test_an_embedded_server_serves_until_it_is_stopped():
    """It takes objects and gives them back; once it is stopped nobody answers, and its files are gone."""
    with EmbeddedS3() as server:
        client = server.client()
        client.create_bucket(Bucket="some-bucket")
        client.put_object(Bucket="some-bucket", Key="key", Body=b"content")
        assert client.get_object(Bucket="some-bucket", Key="key")["Body"].read() == b"content"
        client.close()
        folder, endpoint = server.process.log.parent, server.endpoint
    assert not folder.exists()
    with pytest.raises(URLError):
        urllib.request.urlopen(endpoint)  # noqa: S310 - http, and ours


def test_two_embedded_servers_know_nothing_of_each_other(s3_endpoint):
    """A second server takes a port of its own and begins empty."""
    with EmbeddedS3() as server:
        client = server.client()
        assert server.endpoint != s3_endpoint
        assert client.list_buckets()["Buckets"] == []
        client.close()


def test_its_properties_are_a_connectors():
    """The properties of a server are those that the source's configuration takes."""
    with EmbeddedS3() as server:
        base = {"name": "n", "connector.class": "s3", "bootstrap.servers": "h:1", "aws.s3.bucket.name": "some-bucket"}
        client = make_client(S3Config.from_props({**base, **server.properties}).connection())
        client.create_bucket(Bucket="some-bucket")
        assert client.list_objects_v2(Bucket="some-bucket")["KeyCount"] == 0
        client.close()


@pytest.fixture
def through(faulty):
    """boto3's own client, through the proxy."""
    client = boto3.client(
        "s3",
        endpoint_url=faulty.endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - anybody may come in
    )
    yield client
    client.close()


def test_without_a_script_the_proxy_passes_everything_on(through, bucket, faulty):
    """Objects go in and out, and the record says what was asked and how many bytes were sent."""
    through.put_object(Bucket=bucket, Key="a key", Body=b"x" * 100_000)
    assert through.get_object(Bucket=bucket, Key="a key", Range="bytes=10-")["Body"].read() == b"x" * 99_990
    assert through.head_object(Bucket=bucket, Key="a key")["ContentLength"] == 100_000
    assert through.list_objects_v2(Bucket=bucket, Prefix="a ")["KeyCount"] == 1
    assert [request.method for request in faulty.requests] == ["PUT", "GET", "HEAD", "GET"]
    (get,), (page,) = faulty.gets, faulty.lists
    assert (get.sent, get.headers["range"], page.query["prefix"]) == (99_990, "bytes=10-", "a ")


def test_a_script_is_played_in_order_to_those_that_it_is_for(through, s3, bucket, faulty):
    """Each request takes the first fault that is meant for it; the rest of the script waits for others."""
    s3.put_object(Bucket=bucket, Key="key", Body=b"content")
    done = []
    faulty.script(Pass(), Answer(404, "NoSuchKey"), Meanwhile(lambda: done.append(1)), Answer(409, "X", on=everything))
    assert through.get_object(Bucket=bucket, Key="key")["Body"].read() == b"content"
    with pytest.raises(through.exceptions.NoSuchKey):
        through.get_object(Bucket=bucket, Key="key")
    with pytest.raises(through.exceptions.ClientError, match="X"):
        through.list_objects_v2(Bucket=bucket)
    through.get_object(Bucket=bucket, Key="key")["Body"].read()
    assert done == [1]


def test_what_a_script_has_left_can_be_forgotten(through, s3, bucket, faulty):
    """After `forget` requests are passed on again."""
    s3.put_object(Bucket=bucket, Key="key", Body=b"content")
    faulty.script(Answer(404, "NoSuchKey"))
    faulty.forget()
    assert through.get_object(Bucket=bucket, Key="key")["Body"].read() == b"content"


def test_the_proxy_goes_with_its_block(s3_endpoint):
    """After the block nobody listens."""
    with FaultyS3(s3_endpoint) as faulty:
        endpoint = faulty.endpoint
        urllib.request.urlopen(endpoint).close()  # noqa: S310 - http, and ours
    with pytest.raises(URLError):
        urllib.request.urlopen(endpoint)  # noqa: S310 - as above
