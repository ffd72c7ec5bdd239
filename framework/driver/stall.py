"""What does not get on: since when, and why; said once it lasts, and then every half minute."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

import attrs

from headrace.framework.worker.plan import TaskReport

__all__ = ["Stall", "patience_with"]

log = logging.getLogger(__name__)

SAY_AFTER_S = 10.0
SAY_EVERY_S = 30.0
GIVE_UP_AFTER_S = 120.0


@attrs.define
class Stall:
    """One thing that is tried again for as long as it fails. Written by one thread, read by any.

    The log has its first failure and, while it lasts, a word every half minute; `warn` is called once in each stall
    that lasts, for the run's summary.
    """

    connector: str
    what: str
    warn: Callable[[str], None]
    remedy: str = "trying again"
    _since: float | None = attrs.field(default=None, init=False)
    _began: float = attrs.field(default=0.0, init=False)
    _said_at: float | None = attrs.field(default=None, init=False)
    _because: str = attrs.field(default="", init=False)

    def failed(self, because: str, *, lasted_s: float = 0.0) -> float:
        """It has failed again, and had got nowhere for `lasted_s` before that was known; for how long by now."""
        now = time.monotonic()
        if self._since is None:
            self._since, self._began = time.time() - lasted_s, now - lasted_s
            log.warning("%s: %s; %s", self.connector, because, self.remedy)
        self._because = because
        lasted = now - self._began
        if lasted >= SAY_AFTER_S and (self._said_at is None or now - self._said_at >= SAY_EVERY_S):
            self._say(now)
        return lasted

    def over(self) -> None:
        """It gets on."""
        if self._said_at is not None:
            log.warning("%s: %s gets on again", self.connector, self.what)
        self._since = self._said_at = None

    @property
    def is_on(self) -> bool:
        """Whether it fails, for however short a time."""
        return self._since is not None

    @property
    def word(self) -> str | None:
        """Since when and why, once it has lasted; None if it gets on."""
        since = self._since
        if since is None or self._said_at is None:
            return None
        at = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{self.what} stalled since {at} because {self._because}"

    def _say(self, now: float) -> None:
        first, self._said_at = self._said_at is None, now
        word = self.word or ""
        log.warning("%s: %s", self.connector, word)
        if first:
            self.warn(word)


def patience_with(report: TaskReport, errors_retry_timeout_ms: int) -> float | None:
    """How many seconds a task that reports a failure may get nowhere; None is for ever.

    As in Kafka Connect, what a source says can be tried again is tried for ever unless the configuration sets an end to
    it. An attempt that failed as a whole is more than that: then it is Kafka that does not answer.
    """
    if errors_retry_timeout_ms > 0:
        return errors_retry_timeout_ms / 1000
    return GIVE_UP_AFTER_S if errors_retry_timeout_ms == 0 and report.error is not None else None
