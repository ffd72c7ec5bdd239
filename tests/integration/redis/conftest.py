"""Servers, a client of one, and streams of this test's own."""

import re
import shutil
import subprocess
import uuid

import pytest

from headrace.testing.redis import EmbeddedRedis
from headrace.testing.split_harness import SplitHarness


def servers():
    """The programs to run some of the tests on: Valkey's, and Redis' own where there is one that counts entries."""
    found = shutil.which("redis-server")
    if found is None:
        return ["valkey-server"]
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)", said)
    return ["valkey-server", "redis-server"] if version and int(version[1]) >= 7 else ["valkey-server"]


@pytest.fixture(params=servers())
def every_server(request):
    """Has a test run on each of the servers that are here."""
    return request.param


@pytest.fixture(scope="session")
def redis_server_port():
    """The port of Redis' own server, in memory."""
    with EmbeddedRedis(server="redis-server") as redis:
        yield redis.port


@pytest.fixture
def redis_port(request, redis_port):
    """The port of the server that the test is to run on."""
    wanted = request.getfixturevalue("every_server") if "every_server" in request.fixturenames else None
    return request.getfixturevalue("redis_server_port") if wanted == "redis-server" else redis_port


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
