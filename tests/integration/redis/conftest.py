"""A server, a client of it, and streams of this test's own."""

import uuid

import pytest

from headrace.testing.split_harness import SplitHarness


@pytest.fixture
def client(redis_port):
    import redis

    with redis.Redis(host="127.0.0.1", port=redis_port, protocol=2) as client:
        yield client


@pytest.fixture
def stream(client):
    """The name of a stream that nobody else has."""
    name = f"s{uuid.uuid4().hex[:10]}"
    yield name
    for key in client.scan_iter(match=f"*{name}*"):
        client.delete(key)


@pytest.fixture
def harness(redis_port, stream):
    """Reads the field `v` of the stream as text."""
    return SplitHarness(
        {
            "connector.class": "redis",
            "redis.url": f"redis://127.0.0.1:{redis_port}",
            "redis.streams": stream,
            "redis.value.field": "v",
            "input.format": "text",
            "value.converter": "string",
        }
    )


@pytest.fixture
def add(client):
    """Adds entries of these values to a stream; their ids."""

    def add(stream, *values):
        return [client.xadd(stream, {"v": value}).decode() for value in values]

    return add
