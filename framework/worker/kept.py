"""What a process keeps between a task's micro-batches: dear to make, cheap to hold, and never needed."""

import atexit
import functools
import os
import socket
import threading
import time
import uuid
from collections.abc import Hashable
from typing import Protocol

import attrs

__all__ = ["KEPT", "Keeper", "Kept", "process_identity"]

IDLE_S = 300.0


def process_identity() -> str:
    """Which process this is, to tell it from every other one there is and has been: host, pid, and a token."""
    return _identity_of(os.getpid())


@functools.cache
def _identity_of(pid: int) -> str:
    # The cache is by pid, so a process that was forked has a token of its own; one more pid costs nothing.
    return f"{socket.gethostname()}:{pid}:{uuid.uuid4().hex}"


class Kept(Protocol):
    """Something that stands idle until somebody takes it."""

    def close(self) -> None:
        """Let go of what it holds; called where it is not taken for too long, or the process ends."""
        ...


@attrs.define
class Keeper:
    """Holds things by key while nobody uses them; a thing has one user at a time, because taking it takes it out.

    It is an optimisation and decides nothing: whoever takes a thing has to know that it is still good. What nobody
    has taken for five minutes is closed at the next occasion. Every method may be called from any thread.
    """

    _things: dict[Hashable, tuple[Kept, float]] = attrs.field(factory=dict, init=False)
    _pid: int = attrs.field(factory=os.getpid, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def take(self, key: Hashable) -> Kept | None:
        """What is kept under `key`, or None; from now on it is the caller's, to close or to keep again."""
        with self._lock:
            self._forget_after_fork()
            found = self._things.pop(key, None)
            old = self._taken_out(before=time.monotonic() - IDLE_S)
        _close_all(old)
        return None if found is None else found[0]

    def keep(self, key: Hashable, thing: Kept) -> None:
        """Hold `thing` until somebody takes it; what stood in its place is closed."""
        with self._lock:
            self._forget_after_fork()
            former = self._things.pop(key, None)
            self._things[key] = (thing, time.monotonic())
            old = self._taken_out(before=time.monotonic() - IDLE_S)
        _close_all([*old, *([] if former is None else [former[0]])])

    def close(self) -> None:
        """Close whatever stands idle: at the end of a run on threads, and of the process."""
        with self._lock:
            self._forget_after_fork()
            idle = self._taken_out(before=float("inf"))
        _close_all(idle)

    def _taken_out(self, *, before: float) -> list[Kept]:
        keys = [key for key, (_, since) in self._things.items() if since < before]
        return [self._things.pop(key)[0] for key in keys]

    def _forget_after_fork(self) -> None:
        """A client library's threads do not come along into a forked process: there its clients cannot even close."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _LEFT_TO_THE_PARENT.append(self._things)
            self._things = {}


_LEFT_TO_THE_PARENT: list[object] = []


def _close_all(things: list[Kept]) -> None:
    for thing in things:
        thing.close()


KEPT = Keeper()
"""This process's own."""

atexit.register(KEPT.close)
