"""The S3 source's side of the conformance suite: a bucket per test, behind a proxy that can break things."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.compat import override
from headrace.testing.faulty_s3 import Answer, CutBody, Fault, FaultyS3, Meanwhile
from headrace.testing.s3 import ACCESS_KEY, REGION, SECRET_KEY
from headrace.testing.source_harness import SourceHarness

__all__ = ["S3Harness"]


@attrs.define
class S3Harness(SourceHarness):
    """A bucket on the server at `endpoint`; each piece is an object of JSON lines. Use it in a `with` block.

    The connector's requests go through `faulty`, those of the test do not.
    """

    endpoint: str
    faulty: FaultyS3 = attrs.field(init=False)
    bucket: str = attrs.field(default="", init=False)
    client: Any = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.faulty = FaultyS3(self.endpoint)

    def __enter__(self) -> Self:
        """Start the proxy."""
        import boto3  # noqa: PLC0415 - heavy, and not needed until here

        self.faulty.__enter__()
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the proxy."""
        self.client.close()
        self.faulty.__exit__(kind, error, trace)

    @override
    def prepare(self, name: str) -> Mapping[str, str]:
        self.bucket = name
        self.client.create_bucket(Bucket=name)
        return {
            "connector.class": "s3",
            "input.format": "jsonl",
            "aws.s3.bucket.name": name,
            "aws.s3.endpoint": self.faulty.endpoint,
            "aws.s3.region": REGION,
            "aws.access.key.id": ACCESS_KEY,
            "aws.secret.access.key": SECRET_KEY,
            "aws.s3.backoff.delay.ms": "10",
        }

    @override
    def add(self, piece: str, records: Sequence[bytes]) -> None:
        self.client.put_object(Bucket=self.bucket, Key=piece, Body=b"".join(record + b"\n" for record in records))

    @override
    def partition(self, piece: str) -> Mapping[str, Any]:
        return {"bucket": self.bucket, "objectKey": piece}

    @override
    def overwrite_policy(self, policy: str) -> Mapping[str, str]:
        return {"s3.overwrite.policy": policy}

    @override
    def stumble(self, times: int) -> None:
        """In turn: throttled, broken within the body, an internal error."""
        kinds: Sequence[Fault] = (Answer(503, "SlowDown"), CutBody(700), Answer(500, "InternalError"))
        self.faulty.script(*(kinds[number % len(kinds)] for number in range(times)))

    @override
    @contextmanager
    def holding(self, *, after: int) -> Iterator[None]:
        released = threading.Event()
        listed = self.client.list_objects_v2(Bucket=self.bucket)["Contents"]
        # By name, and not by turn: several are asked for at once.
        held = {f"/{self.bucket}/{found['Key']}" for found in listed[after:]}
        self.faulty.script(*[Meanwhile(released.wait, on=lambda request: request.path in held)] * 100)
        try:
            yield
        finally:
            released.set()
            self.faulty.forget()
