"""How long whoever needs the broker waits for it, and that a stop cuts the waiting short."""

import time
from collections.abc import Callable

import attrs
from confluent_kafka import KafkaError, KafkaException

__all__ = ["STEP_S", "Patience", "StoppedAt", "Wait", "never", "timed_out"]

STOP_S = 2.5
"""How long after a stop calls may still wait: the task has five seconds in all, and more than this to do in them."""

STEP_S = 0.25
"""How long one call of the client library may block: it hears of no stop meanwhile."""

StoppedAt = Callable[[], float | None]
"""Since when the run is to stop, on the monotonic clock; None while it is not."""

_TIMED_OUT = {
    KafkaError._TIMED_OUT,  # noqa: SLF001 - its public name
    KafkaError._TRANSPORT,  # noqa: SLF001 - its public name
}


def never() -> None:
    """Nobody stops anything."""


def timed_out(error: KafkaException) -> bool:
    """Whether a call that only asks has had no answer yet: it can be made again."""
    return error.args[0].code() in _TIMED_OUT


@attrs.frozen
class Wait:
    """One wait, from now on. Whoever waits does so in steps of `STEP_S`, and looks at `is_over` between two of them."""

    longest_s: float
    stopped_at: StoppedAt = never
    began_at: float = attrs.field(factory=time.monotonic)

    @property
    def so_far_s(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self.began_at

    @property
    def is_over(self) -> bool:
        """Whether there is no more time."""
        stopped_at = self.stopped_at()
        return self.so_far_s >= self.longest_s or (stopped_at is not None and time.monotonic() >= stopped_at + STOP_S)


@attrs.frozen
class Patience:
    """A limit for every wait of one client: `longest_s` each, and all of them together `STOP_S` beyond a stop."""

    longest_s: float
    stopped_at: StoppedAt = never

    def begin(self) -> Wait:
        """A wait that begins now."""
        return Wait(self.longest_s, self.stopped_at)

    def at_most(self, longest_s: float) -> "Patience":
        """The same with a shorter limit."""
        return attrs.evolve(self, longest_s=min(longest_s, self.longest_s))
