"""Making the client: where the server is, and who asks."""

import functools
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import attrs

from headrace import __version__
from headrace.framework.errors import SourceError, Where
from headrace.framework.stage import Stage
from headrace.framework.worker.kept import KEPT
from headrace.sources.s3.failures import s3_failures

__all__ = ["ClientPlace", "Connection", "Role", "S3Client", "make_client"]

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 30
LIVES_S = 60.0


def _with_scheme(url: str | None) -> str | None:
    if not url:
        return None
    return url if "://" in url else f"https://{url}"


def _is_loopback(url: str | None) -> bool:
    host = urlsplit(url).hostname if url else None
    return host is not None and (host in {"localhost", "::1"} or host.startswith("127."))


class S3Client(Protocol):
    """What is used of boto3's client."""

    def list_objects_v2(self, **request: Any) -> Mapping[str, Any]:
        """One page of a listing."""
        ...

    def get_object(self, **request: Any) -> Mapping[str, Any]:
        """An object's bytes, as a stream, and what the server says of it."""
        ...

    def head_object(self, **request: Any) -> Mapping[str, Any]:
        """What the server says of an object."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


@attrs.frozen(kw_only=True)
class Role:
    """A role to assume by STS; its credentials last for `duration_s` and are fetched anew before they end."""

    arn: str
    session_name: str
    external_id: str | None = None
    duration_s: int = 3600
    endpoint: str | None = attrs.field(default=None, converter=_with_scheme)

    def request(self) -> dict[str, Any]:
        """What to ask STS for."""
        request: dict[str, Any] = {
            "RoleArn": self.arn,
            "RoleSessionName": self.session_name,
            "DurationSeconds": self.duration_s,
        }
        return request if self.external_id is None else {**request, "ExternalId": self.external_id}


@attrs.frozen(kw_only=True)
class Connection:
    """Where the server is and who asks.

    An `endpoint` of one's own (https where it names no scheme) means keys in the path. The one who asks is the key
    pair, or else the profile, or else whoever boto3's own chain finds; with a `role`, that one assumes it.
    """

    region: str = "us-east-1"
    endpoint: str | None = attrs.field(default=None, converter=_with_scheme)
    access_key_id: str | None = None
    secret_access_key: str | None = attrs.field(default=None, repr=False)
    profile: str | None = None
    role: Role | None = None


def make_client(connection: Connection) -> S3Client:
    """A client for `connection`; nothing is asked of the server yet. It may be used by many threads.

    It tries everything once: `Attempts` does the rest.
    """
    try:
        import botocore  # noqa: PLC0415 - heavy, and comes with the extra
        from botocore.config import Config  # noqa: PLC0415 - as above
    except ImportError as error:
        raise SourceError("the S3 source needs boto3: pip install 'headrace[s3]'", _WHERE) from error

    with s3_failures(_WHERE):
        # What boto3 puts around it are transfers of files, which take as long to import as all the rest.
        client: S3Client = _session(connection).create_client(
            "s3",
            endpoint_url=connection.endpoint,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 1},
                connect_timeout=CONNECT_TIMEOUT_S,
                read_timeout=READ_TIMEOUT_S,
                # In place of botocore's own, which it puts together for every request: an eighth of the price of one.
                user_agent=f"headrace/{__version__} botocore/{botocore.__version__}",
                # A part of an object has no checksum of its own, and other servers than Amazon's get them wrong.
                response_checksum_validation="when_required",
                s3={"addressing_style": "path" if connection.endpoint else "auto"},
                # A proxy of the environment leads out of the house, not to a server on this machine.
                proxies={} if _is_loopback(connection.endpoint) else None,
            ),
        )
    return client


@attrs.frozen
class _IdleClient:
    client: S3Client
    made_at: float

    def close(self) -> None:
        self.client.close()


@attrs.define
class ClientPlace:
    """Where a task's client stands between two micro-batches in one process, with its connections open.

    One that has failed is not kept, nor one that is a minute old: credentials that somebody has changed meanwhile are
    read when a client is made.
    """

    connection: Connection
    connector: str
    task_id: int
    _made_at: float = attrs.field(factory=time.monotonic, init=False)

    def take(self) -> S3Client:
        """The client that stands here, or a new one."""
        kept = KEPT.take(self._key)
        if isinstance(kept, _IdleClient):
            self._made_at = kept.made_at
            return kept.client
        return make_client(self.connection)

    def give_back(self, client: S3Client, *, is_sound: bool) -> None:
        """Leave the client here for the next one, or close it."""
        idle = _IdleClient(client, self._made_at)
        if is_sound and time.monotonic() - self._made_at < LIVES_S:
            KEPT.keep(self._key, idle)
        else:
            idle.close()

    @property
    def _key(self) -> tuple[Connection, str, int]:
        return self.connection, self.connector, self.task_id


_WHERE = Where(stage=Stage.DISCOVER)


def _session(connection: Connection) -> Any:
    """The session of botocore with the credentials of whoever asks."""
    asking = _bare_session(connection)
    if connection.access_key_id is not None:
        asking.set_credentials(connection.access_key_id, connection.secret_access_key)
    if connection.role is None:
        return asking
    session = _bare_session(connection)
    session.register_component("credential_provider", _AssumedRole(asking, connection.role))
    return session


def _bare_session(connection: Connection) -> Any:
    from botocore.session import Session  # noqa: PLC0415 - heavy

    session = Session(profile=connection.profile)
    session.set_config_variable("region", connection.region)
    session.register_component("data_loader", _service_models())
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_timestamp)
    return session


def _timestamp(value: Any) -> datetime:
    """Botocore's own way of reading a time makes up more than half the price of a listing, and a tenth of a GET's."""
    try:
        found = parsedate_to_datetime(value) if value[-4:] == " GMT" else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return _any_timestamp(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _any_timestamp(value: Any) -> datetime:
    from botocore.utils import parse_timestamp  # noqa: PLC0415 - heavy

    found: datetime = parse_timestamp(value)
    return found


@functools.cache
def _service_models() -> Any:
    """Amazon's descriptions of its services: read once per process, they make up most of the price of a client."""
    from botocore.loaders import create_loader  # noqa: PLC0415 - heavy

    return create_loader()


@attrs.frozen
class _AssumedRole:
    """What botocore asks for credentials: they are fetched at the first request, and again before they end."""

    asking: Any
    role: Role

    def load_credentials(self) -> Any:
        from botocore.credentials import DeferredRefreshableCredentials  # noqa: PLC0415 - heavy

        return DeferredRefreshableCredentials(refresh_using=self._assume, method="sts-assume-role")

    def _assume(self) -> dict[str, Any]:
        sts = self.asking.create_client("sts", endpoint_url=self.role.endpoint)
        given = sts.assume_role(**self.role.request())["Credentials"]
        return {
            "access_key": given["AccessKeyId"],
            "secret_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expiry_time": given["Expiration"].isoformat(),
        }
