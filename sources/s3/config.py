"""What the user asks for: Aiven's keys, and a few of our own."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from headrace.framework.backoff import LONGEST_S, BackoffConfig
from headrace.framework.compat import override
from headrace.framework.config import (
    Secret,
    SourceCommonConfig,
    integer,
    member,
    milliseconds,
    option,
    secret,
    text,
)
from headrace.framework.errors import Fault
from headrace.framework.parsers import Parser
from headrace.framework.split_size import split_faults, split_notes, split_size_bytes
from headrace.framework.stop_rule import StopKind
from headrace.sources.s3.attempts import Attempts, Count, count_nothing
from headrace.sources.s3.client import Connection, Role
from headrace.sources.s3.entry import OverwritePolicy
from headrace.sources.s3.listing import Listing, OnSkipped, say_nothing

__all__ = ["S3Config"]

DNS_NAME = r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
AMAZON_REGION = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-[0-9]+")
URL = r"(?i:https?://)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:/\S*)?"
GLOBAL_STS = re.compile(r"(?i:https?://)?sts\.amazonaws\.com/?")
DEFAULT_PROVIDERS = frozenset({"DefaultCredentialsProvider", "DefaultAWSCredentialsProviderChain"})

WHOSE_SINK = "it is the sink's"
KNOWN_FROM_OFFSETS = "finished objects are known from their offsets, and not from a list in memory"


def _url() -> Parser[str]:
    return text(
        URL, what="must be a URL, http or https, as in https://s3.example.com:9000; without a scheme it is https"
    )


def _provider() -> Parser[str]:
    def parse(given: str) -> str:
        if given.rpartition(".")[2] not in DEFAULT_PROVIDERS:
            raise ValueError(
                "must be DefaultCredentialsProvider: other classes are Java's; without it boto3's own chain asks the "
                "environment, profiles, web identities, containers and instances, aws.profile chooses a profile, and "
                "a key pair stands in aws.access.key.id and aws.secret.access.key"
            )
        return given

    return Parser("Java class", parse, "`…DefaultCredentialsProvider`")


@attrs.frozen(kw_only=True)
class S3Config(SourceCommonConfig):
    """The configuration of the source `s3`; `connection`, `listing` and `attempts` are what follows from it."""

    INERT: ClassVar[Mapping[str, str]] = {
        "aws.s3.fetch.buffer.size": KNOWN_FROM_OFFSETS,
        "ring.buffer.size": KNOWN_FROM_OFFSETS,
        "aws.s3.part.size.bytes": WHOSE_SINK,
        "aws.s3.sse.algorithm": WHOSE_SINK,
        "file.max.records": WHOSE_SINK,
        "file.name.timestamp.source": WHOSE_SINK,
        "file.name.timestamp.timezone": WHOSE_SINK,
        "file.prefix.template": WHOSE_SINK,
        "kafka.retry.backoff.ms": WHOSE_SINK,
        "output_*": WHOSE_SINK,
        "schema.registry.url": "the converters' own is under value.converter.",
        "task.id": "the framework numbers the tasks",
    }

    STOP_RULES: ClassVar[frozenset[StopKind]] = SourceCommonConfig.STOP_RULES | {StopKind.TIME}

    bucket: str = option(
        "aws.s3.bucket.name",
        text(DNS_NAME, what="must be a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens"),
        aliases=("aws_s3_bucket",),
        doc="The bucket.",
    )
    prefix: str | None = option(
        "aws.s3.prefix",
        text(),
        default=None,
        aliases=("aws_s3_prefix",),
        doc="What the keys of the objects begin with; it is taken as it is, and sent with every page of a listing.",
    )
    region: str = option(
        "aws.s3.region",
        text(r"[A-Za-z0-9_-]+", what="must be a region's name, as in eu-central-1"),
        default="us-east-1",
        aliases=("aws_s3_region",),
        doc="The bucket's region; with an endpoint of one's own, any name.",
    )
    endpoint: str | None = option(
        "aws.s3.endpoint",
        _url(),
        default=None,
        aliases=("aws_s3_endpoint",),
        doc="The server, if it is not Amazon's; keys are in the path then.",
    )
    access_key_id: str | None = option(
        "aws.access.key.id",
        text(),
        default=None,
        aliases=("aws_access_key_id",),
        doc="The key pair's first half; without a pair and a profile, boto3's own chain finds credentials.",
    )
    secret_access_key: Secret | None = option(
        "aws.secret.access.key",
        secret(),
        default=None,
        aliases=("aws_secret_access_key",),
        doc="The key pair's second half.",
    )
    profile: str | None = option(
        "aws.profile", text(), default=None, doc="A profile of the AWS configuration files, in place of a key pair."
    )
    credentials_provider: str | None = option(
        "aws.credentials.provider",
        _provider(),
        default=None,
        aliases=("aws.credential.provider",),
        doc="Known from Kafka Connect; the default chain is what there is here.",
    )
    role_arn: str | None = option(
        "aws.sts.role.arn", text(), default=None, doc="A role to assume; whoever the other keys name assumes it."
    )
    role_session_name: str | None = option(
        "aws.sts.role.session.name",
        text(r"[\w+=,.@-]{2,64}", what="must have 2 to 64 letters, digits or any of _+=,.@-"),
        default=None,
        doc="The name of the session, required with a role.",
    )
    role_external_id: str | None = option(
        "aws.sts.role.external.id", text(), default=None, doc="The external id that the role asks for."
    )
    role_session_duration_s: int = option(
        "aws.sts.role.session.duration",
        integer(at_least=900, at_most=43_200),
        default=3600,
        doc="How many seconds its credentials last; they are fetched anew before they end.",
    )
    sts_endpoint: str | None = option(
        "aws.sts.config.endpoint", _url(), default=None, doc="The STS server; Amazon's own without."
    )
    page_size: int = option(
        "aws.s3.fetch.page.size",
        integer(at_least=1),
        default=1000,
        doc="How many objects one request of a listing asks for; S3 gives 1000 at most.",
    )
    backoff_delay_ms: int = option(
        "aws.s3.backoff.delay.ms",
        milliseconds(at_least=1),
        default=100,
        doc="The first wait before a failed request is tried again; each further one is twice as long.",
    )
    backoff_max_delay_ms: int = option(
        "aws.s3.backoff.max.delay.ms",
        milliseconds(at_least=1),
        default=20_000,
        doc="The longest such wait. It has effect up to 5000: a task must be able to stop.",
    )
    max_retries: int = option(
        "aws.s3.backoff.max.retries",
        integer(at_least=1, at_most=30),
        default=3,
        doc="How often in a row a failed request is tried again before the framework is asked, which tries on.",
    )
    start_key: str | None = option(
        "native.start.key", text(), default=None, doc="Objects with this key, and those before it, are not listed."
    )
    overwrite_policy: OverwritePolicy = option(
        "s3.overwrite.policy",
        member(OverwritePolicy),
        default=OverwritePolicy.REREAD,
        doc="What becomes of an object whose etag has changed since its first record was read.",
    )
    split_size_bytes: int = split_size_bytes()

    def connection(self) -> Connection:
        """Where the server is and who asks."""
        return Connection(
            region=self.region,
            endpoint=self.endpoint,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key.reveal() if self.secret_access_key else None,
            profile=self.profile,
            role=self._role(),
        )

    def listing(self, *, on_skipped: OnSkipped = say_nothing, count: Count = count_nothing) -> Listing:
        """What to list."""
        return Listing(
            bucket=self.bucket,
            prefix=self.prefix,
            page_size=self.page_size,
            start_after=self.start_key,
            on_skipped=on_skipped,
            count=count,
        )

    def attempts(self, stopping: threading.Event, *, count: Count = count_nothing) -> Attempts:
        """How often to try; one for each thread."""
        first, longest = (min(ms / 1000, LONGEST_S) for ms in (self.backoff_delay_ms, self.backoff_max_delay_ms))
        config = BackoffConfig(first_s=first, longest_s=longest)
        return Attempts(retries=self.max_retries, config=config, stopping=stopping, count=count)

    @override
    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        yield from self._credential_faults()
        yield from self._role_faults()
        yield from self._place_faults()
        yield from split_faults(self, self.split_size_bytes)

    @classmethod
    @override
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:
        yield from super().notes(props)
        yield from split_notes(props)

    def _credential_faults(self) -> Iterator[Fault]:
        if self.secret_access_key and not self.access_key_id:
            yield Fault("aws.access.key.id", None, "is required with aws.secret.access.key")
        if self.access_key_id and not self.secret_access_key:
            yield Fault("aws.secret.access.key", None, "is required with aws.access.key.id")
        if self.access_key_id and self.profile:
            yield self.fault("aws.profile", "stands beside a key pair: take out one of the two")

    def _role_faults(self) -> Iterator[Fault]:
        if self.role_arn and not self.role_session_name:
            yield Fault("aws.sts.role.session.name", None, "is required with aws.sts.role.arn")
        if not self.role_arn:
            for key in ("aws.sts.role.session.name", "aws.sts.role.external.id"):
                if key in self.props:
                    yield self.fault(key, "is of no use without aws.sts.role.arn")
        regional = self.sts_endpoint is not None and not GLOBAL_STS.fullmatch(self.sts_endpoint)
        if regional and not {"aws.s3.region", "aws_s3_region"} & set(self.props):
            yield Fault("aws.s3.region", None, "is required with an aws.sts.config.endpoint of a region")

    def _place_faults(self) -> Iterator[Fault]:
        if self.endpoint is None and not AMAZON_REGION.fullmatch(self.region):
            yield self.fault("aws.s3.region", "is no region of Amazon's: check it, or set aws.s3.endpoint")
        if self.prefix and "{{timestamp" in self.prefix:
            yield self.fault("aws.s3.prefix", "is a sink's, with {{timestamp}}: a source takes a prefix as it is")

    def _role(self) -> Role | None:
        if self.role_arn is None or self.role_session_name is None:
            return None
        return Role(
            arn=self.role_arn,
            session_name=self.role_session_name,
            external_id=self.role_external_id,
            duration_s=self.role_session_duration_s,
            endpoint=self.sts_endpoint,
        )
