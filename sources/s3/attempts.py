"""How often something is tried before the framework is asked what to do."""

import threading
from collections.abc import Callable

import attrs

from headrace.framework.backoff import Backoff, BackoffConfig
from headrace.framework.errors import RetriableError

__all__ = ["Attempts", "Count", "count_nothing"]

Count = Callable[[str, int], None]
"""Where the source counts what it does: `TaskMetrics.count`, or anything like it."""


def count_nothing(name: str, by: int) -> None:
    """Count nothing."""


@attrs.define(kw_only=True)
class Attempts:
    """The attempts at one thing: after each failure a longer wait, until `retries` of them have failed in a row.

    Waiting is ours and not boto3's, because ours ends when the task is to stop, and because the settings then hold
    for every endpoint. Counts `s3_retries`. One per thread and thing; not shared.
    """

    retries: int = 3
    config: BackoffConfig = attrs.field(factory=BackoffConfig)
    stopping: threading.Event = attrs.field(factory=threading.Event)
    count: Count = count_nothing
    _backoff: Backoff = attrs.field(init=False)
    _failed: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin with the shortest wait."""
        self._backoff = Backoff(self.config, self.stopping)

    def failed(self, error: RetriableError) -> None:
        """Wait before another attempt; raise `error` when there is none left.

        Where the task is to stop, that is what is raised, from `error`.
        """
        self.refuse_stopping(error)
        self._failed += 1
        if self._failed > self.retries:
            raise error
        self.count("s3_retries", 1)
        self._backoff.pause()
        self.refuse_stopping(error)

    def progressed(self) -> None:
        """Something came: the next failure is the first again."""
        self._failed = 0
        self._backoff.reset()

    def refuse_stopping(self, cause: Exception | None = None) -> None:
        """Raise a `RetriableError` if the task is to stop: what was asked for has not been done."""
        if self.stopping.is_set():
            raise RetriableError("the task is to stop: the rest is read by the next run") from cause
