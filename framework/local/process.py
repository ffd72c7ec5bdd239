"""Plans on a process of this machine: tasks that do not wait for each other's interpreter."""

import contextlib
import logging
import multiprocessing
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.errors import RetriableError, Where
from headrace.framework.local.place import Heard
from headrace.framework.local.words import Setup, Word
from headrace.framework.worker.plan import Ended, TaskPlan, TaskReport

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["TaskProcess"]

CLOSED_WITHIN_S = 5.0

# The path first: modules are found where the driver finds them, and nowhere else.
CODE = "import sys; sys.path[:] = sys.argv[2:]; from headrace.framework.local.child import main; main(int(sys.argv[1]))"


@attrs.define
class TaskProcess:
    """A `Place` in a process of its own, which is started when this is made.

    A process that dies fails the tasks that it had, with an error that is tried again: the coordinator waits, plans
    them again and gives up as with everything that fails, and with the next plans another process is started. What
    the dead one had open is aborted when its successor takes over its transactional ids.
    """

    setup: Setup
    _child: "_Child" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start the process; returns at once."""
        self._child = _Child.started(self.setup)

    @property
    def has_begun(self) -> bool:
        """Whether the process has said so, or has died."""
        return self._child.has_begun

    def begin(self, plans: Sequence[TaskPlan], heard: Heard) -> None:
        """Send the plans to the process, or to another one if it has died."""
        while not self._child.begin(plans, heard):
            self._child.close()
            self._child = _Child.started(self.setup)

    def ask_end(self) -> None:
        """Send the word, once in a micro-batch."""
        self._child.tell(Word.END)

    def ask_stop(self) -> None:
        """Send the word, once in a micro-batch."""
        self._child.tell(Word.STOP)

    def ask_close(self) -> None:
        """Have the process end by itself, which takes it a moment."""
        self._child.tell(Word.CLOSE)

    def close(self) -> None:
        """Wait until the process has ended; what takes longer than five seconds is ended by force."""
        self._child.close()


@attrs.define
class _Child:
    """One process, from its start to its end; its words are taken in on a thread of their own."""

    connector: str
    process: "subprocess.Popen[bytes]"
    connection: "Connection[Any, Any]"
    has_begun: bool = attrs.field(default=True, init=False)
    _heard: Heard | None = attrs.field(default=None, init=False)
    _left: set[int] = attrs.field(factory=set, init=False)
    _told: set[Word] = attrs.field(factory=set, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _listener: threading.Thread = attrs.field(init=False)

    @classmethod
    def started(cls, setup: Setup) -> "_Child":
        """Start a process and have it get ready."""
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            # In a session of its own it does not get the terminal's Ctrl-C, which is for the driver.
            process = subprocess.Popen(
                [sys.executable, "-c", CODE, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        child = cls(setup.connector, process, ours)
        child._send(setup)
        child._listener = threading.Thread(target=child._listen, name=f"headrace-process-{process.pid}", daemon=True)
        child._listener.start()
        return child

    def begin(self, plans: Sequence[TaskPlan], heard: Heard) -> bool:
        """Send plans; whether there is anybody to send them to."""
        with self._lock:
            if self._is_over:
                return False
            self._heard, self._left = heard, {plan.task_id for plan in plans}
            self.has_begun = False
        self._told.clear()
        self._send(plans)
        return True

    def tell(self, word: Word) -> None:
        if word not in self._told:
            self._told.add(word)
            self._send(word)

    def close(self) -> None:
        try:
            self.process.wait(CLOSED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._listener.join()
        self.connection.close()

    def _send(self, what: object) -> None:
        # Where nobody is there any more, the listener tells what became of the plans.
        with contextlib.suppress(OSError):
            self.connection.send(what)

    def _listen(self) -> None:
        how = self._listened()
        with self._lock:
            lost, self._left = self._left, set()
            self._is_over = self.has_begun = True
        for task_id in lost:
            failure = RetriableError(f"its process {how}", Where(connector=self.connector, task=task_id))
            self._tell(TaskReport(task_id=task_id, ended=Ended.FAILED, error=failure))

    def _listened(self) -> str:
        """Take in what it says until it has ended; how that came."""
        try:
            while True:
                self._take_in(self.connection.recv())
        except (EOFError, OSError):
            return _how_it_ended(self.process.wait())
        except Exception as error:  # noqa: BLE001 - a class of the user's that this process cannot make again
            self.process.kill()
            self.process.wait()
            return f"sent what cannot be read: {type(error).__name__}: {error}"

    def _take_in(self, said: object) -> None:
        if isinstance(said, logging.LogRecord):
            logging.getLogger(said.name).handle(said)
            return
        if isinstance(said, TaskReport):
            with self._lock:
                self._left.discard(said.task_id)
            self._tell(said)
            return
        self.has_begun = True
        self._tell(None)

    def _tell(self, report: TaskReport | None) -> None:
        if self._heard is not None:
            self._heard(report)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"has ended with exit code {code}: what it wrote to standard error may say why"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL: see whether the system was short of memory"
    name = {one.value: one.name for one in signal.Signals}.get(-code, f"signal {-code}")
    return f"was ended by {name}: what it wrote to standard error may say why"
