"""The benchmark's own S3 server, which makes its objects when they are asked for, as boto3 sees it."""

import boto3
import pytest
from botocore.config import Config


@pytest.fixture
def client(project, monkeypatch, tmp_path):
    """A boto3 client of a running server."""
    monkeypatch.syspath_prepend(str(project / "bench"))
    from sidebyside.world import made_objects

    with made_objects(tmp_path) as endpoint:
        yield boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",  # noqa: S106 - it lets everybody in
            config=Config(proxies={}),
        )


@pytest.fixture
def data(client):  # noqa: ARG001 - it puts the benchmark on the path
    """Eight objects of three lines, and what is listed of them."""
    from sidebyside.scenarios.small import small_objects

    return small_objects(8)


def test_a_listing_comes_in_pages_and_is_complete(client, data):
    """Page after page brings every object once, in order, with its size."""
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket="bench", Prefix=f"{data.name}/", PaginationConfig={"PageSize": 3}
    )
    listed = [found for page in pages for found in page["Contents"]]

    assert [found["Key"] for found in listed] == [f"{data.name}/{data.key(number)}" for number in range(8)]
    assert {found["Size"] for found in listed} == {len(data.body(0))}


def test_a_listing_may_begin_after_a_key(client, data):
    """What stands at or before the key is left out."""
    after = f"{data.name}/{data.key(5)}"
    page = client.list_objects_v2(Bucket="bench", Prefix=f"{data.name}/", StartAfter=after)

    assert [found["Key"][-8:] for found in page["Contents"]] == ["06.jsonl", "07.jsonl"]


def test_an_object_is_the_datasets(client, data):
    """Its bytes are those of the data set, under the etag that was listed, each time."""
    key = f"{data.name}/{data.key(4)}"
    listed = client.list_objects_v2(Bucket="bench", Prefix=f"{data.name}/")["Contents"][4]
    answers = [client.get_object(Bucket="bench", Key=key) for _ in range(2)]

    assert [answer["Body"].read() for answer in answers] == [data.body(4)] * 2
    assert {answer["ETag"] for answer in answers} == {listed["ETag"]}


def test_a_large_object_comes_whole_to_a_reader_that_is_behind(client):
    """What a socket cannot take at once follows, and the answer to the next request comes behind it."""
    from sidebyside.scenarios.lines import lines_of

    large = lines_of(1, 50_000)
    body = client.get_object(Bucket="bench", Key=f"{large.name}/{large.key(0)}")["Body"]
    begin = body.read(1)
    some = client.get_object(Bucket="bench", Key=f"{large.name}/{large.key(0)}", Range="bytes=1-9999999")["Body"]

    assert begin + some.read() == large.body(0)[:10_000_000]
    assert begin + body.read() == large.body(0)


def test_some_of_an_object_may_be_asked_for(client, data):
    """A range brings those bytes and says of how many; a HEAD says so without any."""
    key = f"{data.name}/{data.key(4)}"
    some = client.get_object(Bucket="bench", Key=key, Range="bytes=10-19")
    size = client.head_object(Bucket="bench", Key=key)["ContentLength"]

    assert some["Body"].read() == data.body(4)[10:20]
    assert some["ContentRange"] == f"bytes 10-19/{size}"
    assert size == len(data.body(4))


def test_what_is_no_object_is_not_there(client, data):
    """The folder's name is none, and below other names nothing is listed."""
    with pytest.raises(client.exceptions.ClientError, match="404"):
        client.head_object(Bucket="bench", Key=data.name)

    assert "Contents" not in client.list_objects_v2(Bucket="bench", Prefix=f"{data.name}/_spark_metadata/")
