"""Waiting, as values: how long to wait after which attempt, and when to give up. tenacity underneath."""

import threading
from collections.abc import Callable
from typing import TypeVar

import attrs
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, stop_never
from tenacity.stop import stop_base
from tenacity.wait import wait_base, wait_exponential, wait_random

from headrace.framework.compat import override
from headrace.framework.errors import RetriableError

__all__ = ["LONGEST_S", "Backoff", "BackoffConfig"]

LONGEST_S = 5.0
"""The longest wait of a task, so that a stop is seen in time."""

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class BackoffConfig:
    """How a task waits: exponentially from `first_s`, with jitter, never longer than `longest_s` (at most 5 s).

    `give_up_after_s` is how long one and the same thing is tried again: 0 is once, None is for ever. What a task
    does with it is its own affair: it may build a `Backoff` from it, wait in another way, or not wait at all.
    """

    first_s: float = attrs.field(default=0.05, validator=attrs.validators.gt(0))
    longest_s: float = attrs.field(default=LONGEST_S, validator=attrs.validators.le(LONGEST_S))
    give_up_after_s: float | None = None

    def wait(self) -> wait_base:
        """The waiting strategy, for tenacity."""
        jitter = min(self.first_s, self.longest_s)
        return wait_exponential(multiplier=self.first_s, max=self.longest_s - jitter) + wait_random(0, jitter)

    def stop(self) -> stop_base:
        """The strategy for giving up, for tenacity."""
        return stop_never if self.give_up_after_s is None else stop_after_delay(self.give_up_after_s)


@attrs.define
class Backoff:
    """Waits that grow until `reset`, and that `stopping` ends at once.

    One per thread that waits. `pause` is for "nothing right now"; `call` is for something that may fail in a way
    that another attempt can mend.
    """

    config: BackoffConfig
    stopping: threading.Event = attrs.field(factory=threading.Event)
    _attempt: int = attrs.field(default=0, init=False)

    def pause(self) -> None:
        """Wait once, longer than the last time; return at once when the task is to stop."""
        self._attempt += 1
        state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
        state.attempt_number = self._attempt
        self.stopping.wait(min(self.config.wait()(state), self.config.longest_s))

    def reset(self) -> None:
        """Something came: the next wait is the shortest again."""
        self._attempt = 0

    def call(self, function: Callable[[], T]) -> T:
        """Call `function` until it does not raise `RetriableError`, waiting in between.

        Raises the last error when it is time to give up, or when the task is to stop.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(RetriableError),
            wait=self.config.wait(),
            stop=self.config.stop() | _stop_when(self.stopping),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(function)

    def _sleep(self, seconds: float) -> None:
        self.stopping.wait(seconds)


class _stop_when(stop_base):  # noqa: N801 - named like tenacity's own
    def __init__(self, event: threading.Event) -> None:
        self.event = event

    @override
    def __call__(self, retry_state: RetryCallState) -> bool:
        return self.event.is_set()
