"""The Redis source's side of the conformance suite: a stream per piece, behind a proxy that can break things."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.compat import override
from headrace.testing.faulty_redis import BROKEN, CUT, PASS, FaultyRedis
from headrace.testing.source_harness import SourceHarness

__all__ = ["RedisHarness"]

FIELD = "value"


@attrs.define
class RedisHarness(SourceHarness):
    """Streams on the server at a port, whose entries have one field of JSON. Use it in a `with` block.

    The connector's requests go through `faulty`, those of the test do not.
    """

    port: int
    faulty: FaultyRedis = attrs.field(init=False)
    client: Any = attrs.field(default=None, init=False)
    name: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self.faulty = FaultyRedis(self.port)

    def __enter__(self) -> Self:
        """Start the proxy."""
        import redis  # noqa: PLC0415 - heavy, and not needed until here

        self.faulty.__enter__()
        self.client = redis.Redis(host="127.0.0.1", port=self.port, protocol=2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the proxy."""
        self.client.close()
        self.faulty.__exit__(kind, error, trace)

    @override
    def prepare(self, name: str) -> Mapping[str, str]:
        self.name = name
        return {
            "connector.class": "redis",
            "redis.url": self.faulty.url,
            "redis.streams": f"{name}:*",
            "redis.scan.interval.ms": "100",
            "redis.value.field": FIELD,
            "input.format": "jsonl",
        }

    @override
    def add(self, piece: str, records: Sequence[bytes]) -> None:
        stream = f"{self.name}:{piece}"
        if not records:
            self.client.xadd(stream, {FIELD: b"{}"})
            self.client.xtrim(stream, maxlen=0, approximate=False)
            return
        # All at once: what a discovery finds of a piece is all of it.
        with self.client.pipeline(transaction=True) as pipeline:
            for record in records:
                pipeline.xadd(stream, {FIELD: record})
            pipeline.execute()

    @override
    def partition(self, piece: str) -> Mapping[str, Any]:
        return {"stream": f"{self.name}:{piece}"}

    @override
    def stumble(self, times: int) -> None:
        """In turn: cut before the server has the request, broken within its answer."""
        self.faulty.script(*((CUT, BROKEN)[number % 2] for number in range(times)))

    @override
    @contextmanager
    def holding(self, *, after: int) -> Iterator[None]:
        self.faulty.script(*[PASS] * after)
        self.faulty.hold()
        try:
            yield
        finally:
            self.faulty.release()

    @override
    def close(self) -> None:
        for stream in self.client.scan_iter(match=f"{self.name}:*"):
            self.client.delete(stream)
