"""What the user asks for."""

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar
from urllib.parse import urlsplit

import attrs

from headrace.framework.compat import override
from headrace.framework.config import (
    Secret,
    SourceCommonConfig,
    Support,
    boolean,
    derived,
    integer,
    member,
    milliseconds,
    names,
    option,
    plugin,
    secret,
    text,
)
from headrace.framework.errors import Fault
from headrace.framework.parsers import Parser
from headrace.framework.stop_rule import StopKind
from headrace.sources.redis.client import SCHEMES, Connection, servers_of
from headrace.sources.redis.ids import LAST_NUMBER, StreamId
from headrace.sources.redis.names import StreamChoice

__all__ = ["EARLIEST", "LATEST", "Mode", "RedisConfig"]

EARLIEST = "earliest"
LATEST = "latest"

NOT_OF_STREAMS = "an entry of a stream is no file"


class Mode(enum.StrEnum):
    """Who remembers what has been read."""

    OFFSETS = "offsets"
    """The offsets topic: exactly once."""

    GROUP = "group"
    """A consumer group in Redis, whose entries are acknowledged after their commit: at least once."""


def _start() -> Parser[str]:
    def parse(given: str) -> str:
        if given.lower() in {EARLIEST, LATEST}:
            return given.lower()
        try:
            return str(StreamId.parse(given))
        except ValueError as error:
            raise ValueError("must be earliest | latest, or an entry's id, as in 1700000000000-0") from error

    return Parser("one of", parse, "earliest | latest | an id", words=(EARLIEST, LATEST))


def _url() -> Parser[str]:
    def parse(given: str) -> str:
        url = urlsplit(given)
        if url.scheme not in SCHEMES:
            raise ValueError("must be a URL, redis://host:port/database, rediss:// for TLS, or unix:///path")
        try:
            servers_of(url)
            int((url.path.strip("/") if url.scheme != "unix" else "") or 0)
        except ValueError as error:
            raise ValueError("names no server that there could be: redis://host:port/database") from error
        return given

    return Parser("URL", parse)


def _default_converter(config: "RedisConfig") -> str:
    fields = config.value_field is None
    return "json" if fields else {"bytes": "bytes", "text": "string"}.get(config.input_format, "json")


@attrs.frozen(kw_only=True)
class RedisConfig(SourceCommonConfig):
    """The configuration of the source `redis`."""

    STOP_RULES: ClassVar[frozenset[StopKind]] = frozenset(StopKind)
    INERT: ClassVar[Mapping[str, str]] = {
        "file.compression.type": NOT_OF_STREAMS,
        "file.name.template": "topics and partitions are named by the streams",
    }

    url: str = option(
        "redis.url",
        _url(),
        default="redis://localhost:6379",
        doc="The server: `redis://host:port/database`, `rediss://` for TLS, `unix:///path`. With `redis.cluster` or "
        "`redis.sentinel.master` it names some of the nodes or sentinels, by commas.",
    )
    streams: tuple[str, ...] = option(
        "redis.streams",
        names(),
        doc="A comma list of streams, by name or by a pattern of Redis' (`*`, `?`, `[...]`). A stream `orders` has the "
        "partitions `orders-0`, `orders-1` and so on; one without partitions is itself one. This layout is not that of "
        "the gateway called Rafka.",
    )
    start: str = option(
        "redis.start",
        _start(),
        default=EARLIEST,
        doc="Where a stream is read from of which nothing has been read. With `latest`, streams that come later are "
        "read from their first entry.",
    )
    mode: Mode = option(
        "redis.mode",
        member(Mode),
        default=Mode.OFFSETS,
        doc="Who remembers what has been read: the offsets topic (exactly once), or a consumer group, whose entries "
        "are acknowledged after they are committed (at least once).",
    )
    group: str | None = option(
        "redis.group", text(), default=None, doc="The consumer group, with `redis.mode=group`; it is made if missing."
    )
    consumer: str | None = option(
        "redis.consumer",
        text(),
        default=derived(lambda _: None, "the connector's name"),
        doc="What the consumers' names begin with; a hyphen and the task's number follow.",
    )
    claim_idle_ms: int = option(
        "redis.claim.idle.ms",
        milliseconds(),
        default=0,
        doc="How long an entry must have been pending with another consumer of the group until it is taken over at the "
        "start. 0 takes all of them: nobody else should consume in the group then.",
    )
    value_field: str | None = option(
        "redis.value.field",
        text(),
        default=None,
        doc="The field whose bytes are read by `input.format`; without it a record is the map of all fields, as texts.",
    )
    value_converter: str = option(
        "value.converter",
        plugin("converters", "bytes", "string", "json"),
        default=derived(_default_converter, "`json` for the map of fields, else by the format"),
        doc="How values become bytes.",
    )
    username: str | None = option("redis.username", text(), default=None, doc="The user, where the server has ACLs.")
    password: Secret | None = option("redis.password", secret(), default=None, doc="The user's password.")
    ca_file: str | None = option(
        "redis.tls.ca", text(), default=None, doc="The file of the authorities to trust, PEM; the system's without it."
    )
    certificate_file: str | None = option(
        "redis.tls.certificate", text(), default=None, doc="The file of the client's own certificate, PEM."
    )
    key_file: str | None = option("redis.tls.key", text(), default=None, doc="The file of its private key, PEM.")
    is_cluster: bool = option("redis.cluster", boolean(), default=False, doc="Whether the server is a Redis Cluster.")
    sentinel_master: str | None = option(
        "redis.sentinel.master", text(), default=None, doc="The master's name, if Sentinel is to be asked where it is."
    )
    sentinel_username: str | None = option(
        "redis.sentinel.username", text(), default=None, doc="The user at the sentinels."
    )
    sentinel_password: Secret | None = option(
        "redis.sentinel.password", secret(), default=None, doc="That user's password."
    )
    timeout_ms: int = option(
        "redis.timeout.ms",
        milliseconds(at_least=100, at_most=30_000),
        default=5000,
        doc="How long an answer may take.",
    )
    read_count: int = option(
        "redis.read.count", integer(at_least=1), default=1000, doc="How many entries one read asks for."
    )
    scan_interval_ms: int = option(
        "redis.scan.interval.ms",
        milliseconds(at_least=1),
        default=10_000,
        doc="How often all keys are looked through for streams. Further partitions of streams that are named are "
        "looked for at every discovery, for as long as they are numbered without large gaps.",
    )

    @property
    def choices(self) -> tuple[StreamChoice, ...]:
        """What `redis.streams` asks for."""
        return tuple(StreamChoice.of(name) for name in self.streams)

    def consumer_of(self, task_id: int) -> str:
        """The name of a task's consumer."""
        return f"{self.consumer or self.name}-{task_id}"

    def connection(self) -> Connection:
        """Where the server is and who asks."""
        return Connection(
            url=self.url,
            username=self.username,
            password=_revealed(self.password),
            ca_file=self.ca_file,
            certificate_file=self.certificate_file,
            key_file=self.key_file,
            is_cluster=self.is_cluster,
            sentinel_master=self.sentinel_master,
            sentinel_username=self.sentinel_username,
            sentinel_password=_revealed(self.sentinel_password),
            timeout_s=self.timeout_ms / 1000,
        )

    @classmethod
    @override
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:
        yield from super().notes(props)
        if props.get("redis.mode", "").strip().lower() == Mode.GROUP:
            yield "redis.mode=group delivers at least once: a crash between a commit and its acknowledgement repeats"

    @override
    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        if not self.streams:
            yield self.fault("redis.streams", "is empty: name a stream or a pattern")
        for name in self.streams:
            try:
                StreamChoice.of(name)
            except ValueError as error:
                yield self.fault("redis.streams", str(error))
        yield from self._stop_faults()
        yield from self._group_faults()
        yield from self._server_faults()
        if self.value_field is None and self.input_format != "bytes":
            yield self.fault("input.format", "reads the bytes of one field: name it in redis.value.field")

    def last_wanted(self) -> StreamId | None:
        """The last id that `stop.rule` lets a run read; None if it is no matter of ids."""
        rule = self.stop_rule
        if rule is not None and rule.kind is StopKind.POSITION:
            return StreamId.parse(rule.position)
        if rule is not None and rule.time is not None:
            return StreamId(math.ceil(rule.time.timestamp() * 1000) - 1, LAST_NUMBER)
        return None

    def _stop_faults(self) -> Iterator[Fault]:
        try:
            self.last_wanted()
        except ValueError as error:
            yield self.fault("stop.rule", str(error))

    def _group_faults(self) -> Iterator[Fault]:
        if self.mode is Mode.OFFSETS:
            for key in ("redis.group", "redis.consumer", "redis.claim.idle.ms"):
                if key in self.props:
                    yield self.fault(key, "is of no use without redis.mode=group")
            return
        if self.group is None:
            yield Fault("redis.group", None, "is required with redis.mode=group")
        if self.exactly_once_support is Support.REQUIRED:
            yield self.fault("exactly.once.support", "cannot be had with redis.mode=group: set redis.mode=offsets")
        if self.transaction_boundary == "object":
            yield self.fault(
                "transaction.boundary", "cannot be object with redis.mode=group: set it to interval or poll"
            )

    def _server_faults(self) -> Iterator[Fault]:
        if self.is_cluster and self.sentinel_master is not None:
            yield self.fault("redis.sentinel.master", "stands beside redis.cluster: take out one of the two")
        url = urlsplit(self.url)
        alone = not self.is_cluster and self.sentinel_master is None
        if alone and "," in url.netloc:
            yield self.fault("redis.url", "names several servers: set redis.cluster or redis.sentinel.master")
        if url.scheme == "unix" and not alone:
            yield self.fault("redis.url", "must name servers, not a socket, for a cluster or sentinels")
        if url.scheme != "rediss":
            for key in ("redis.tls.ca", "redis.tls.certificate", "redis.tls.key"):
                if key in self.props:
                    yield self.fault(key, "is of no use without TLS: begin redis.url with rediss://")
        if self.is_cluster and url.path.strip("/") not in {"", "0"}:
            yield self.fault("redis.url", "names a database, and a cluster has none")


def _revealed(given: Secret | None) -> str | None:
    return None if given is None else given.reveal()
