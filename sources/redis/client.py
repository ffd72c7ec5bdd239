"""The connection: one server, a cluster, or whoever Sentinel says is the master."""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import attrs

__all__ = ["Connection", "RedisClient", "connect", "servers_of"]

RedisClient = Any
"""A redis-py client; its own types promise less than what it does."""

PORT = 6379
SENTINEL_PORT = 26379
SCHEMES = frozenset({"redis", "rediss", "unix"})


@attrs.frozen(kw_only=True)
class Connection:
    """Where the server is, who asks, and how."""

    url: str = attrs.field(repr=False)
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    is_cluster: bool = False
    sentinel_master: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = attrs.field(default=None, repr=False)
    timeout_s: float = 5.0


def connect(connection: Connection) -> RedisClient:
    """A client that gives out bytes and tries nothing twice.

    It opens nothing yet, but for a cluster's map: call it within `redis_failures`.
    """
    import redis  # noqa: PLC0415 - comes with the extra
    from redis.sentinel import Sentinel  # noqa: PLC0415 - as above

    url = urlsplit(connection.url)
    options = _options(connection, url)
    if url.scheme == "unix":
        return redis.Redis(unix_socket_path=unquote(url.path), **options)
    if connection.is_cluster:
        nodes = [redis.cluster.ClusterNode(host, port) for host, port in servers_of(url)]
        cluster: RedisClient = redis.RedisCluster(startup_nodes=nodes, **_without(options, "db"))
        # redis-py before 6 goes by this number, and later ones by `retry`, which warn of the number as an argument.
        cluster.cluster_error_retry_attempts = 0
        return cluster
    if connection.sentinel_master is not None:
        sentinel = Sentinel(
            servers_of(url, SENTINEL_PORT), sentinel_kwargs=_sentinel_options(connection, options), **options
        )
        return sentinel.master_for(connection.sentinel_master)
    [(host, port)] = servers_of(url)
    return redis.Redis(host=host, port=port, **options)


def servers_of(url: SplitResult, port: int = PORT) -> list[tuple[str, int]]:
    """The servers that a URL names, by commas; `ValueError` for one that cannot be."""
    servers = []
    for server in url.netloc.rpartition("@")[2].split(","):
        parts = urlsplit(f"//{server}")
        servers.append((parts.hostname or "localhost", parts.port or port))
    return servers


def _options(connection: Connection, url: SplitResult) -> dict[str, Any]:
    from redis.backoff import NoBackoff  # noqa: PLC0415 - comes with the extra
    from redis.retry import Retry  # noqa: PLC0415 - as above

    user, _, password = url.netloc.rpartition("@")[0].partition(":")
    database = url.path.strip("/") if url.scheme != "unix" else ""
    options: dict[str, Any] = {
        "db": int(database or 0),
        "username": connection.username or unquote(user) or None,
        "password": connection.password or unquote(password) or None,
        "socket_timeout": connection.timeout_s,
        "socket_connect_timeout": connection.timeout_s,
        # An entry that was delivered to a group and got lost on the way must be asked for anew, not the next one.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if url.scheme == "rediss":
        options |= {
            "ssl": True,
            "ssl_ca_certs": connection.ca_file,
            "ssl_certfile": connection.certificate_file,
            "ssl_keyfile": connection.key_file,
        }
    return options


def _sentinel_options(connection: Connection, options: dict[str, Any]) -> dict[str, Any]:
    return {
        **_without(options, "db"),
        "username": connection.sentinel_username,
        "password": connection.sentinel_password,
    }


def _without(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}
