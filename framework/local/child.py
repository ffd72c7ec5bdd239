"""A process for tasks, seen from inside: what it is told and what it tells goes over one connection to its driver.

It lives for as long as its driver does. Signals are left to the driver, which gets the same ones from a terminal or
a supervisor and stops its run; where the driver has gone, however that came, the process ends on the spot, like one
that was killed, and the next run aborts what it had open.
"""

import contextlib
import copy
import faulthandler
import logging
import os
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import TaskError, Where
from headrace.framework.local.threads import TaskThreads
from headrace.framework.local.words import Setup, Word
from headrace.framework.worker.plan import Ended, TaskReport
from headrace.framework.worker.ready import get_ready

__all__ = ["main"]

log = logging.getLogger(__name__)


@attrs.define
class _Driver:
    """The other end of the connection; what is sent may come from any thread."""

    connection: "Connection[Any, Any]"
    connector: str = ""
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def send(self, what: object) -> None:
        data = pickle.dumps(what)
        # Where the driver has gone, the main thread is told and ends the process.
        with self._lock, contextlib.suppress(OSError):
            self.connection.send_bytes(data)

    def hear(self, report: TaskReport | None) -> None:
        if report is not None:
            self.send(report if (trouble := _trouble_with(report)) is None else self._failed(report, trouble))

    def _failed(self, report: TaskReport, because: Exception) -> TaskReport:
        word = f"its report cannot be sent to the driver: {type(because).__name__}: {because}"
        if report.error is not None:
            word = f"{report.error}; and {word}"
        error = TaskError(word, Where(connector=self.connector, task=report.task_id))
        return TaskReport(task_id=report.task_id, ended=Ended.FAILED, error=error, worker=report.worker)


class _ToDriver(logging.Handler):
    """Sends what is logged to the driver, whose handlers write it."""

    def __init__(self, driver: _Driver) -> None:
        super().__init__()
        self._driver = driver

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._driver.send(_portable(record))
        except Exception:  # noqa: BLE001 - as every handler of the standard library does
            self.handleError(record)


def main(descriptor: int) -> None:
    """Serve the driver at the other end of `descriptor` until it says that this is all."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # No SIG_IGN: a program that a source starts would inherit it.
        signal.signal(number, lambda *_: None)
    faulthandler.enable()
    os.set_inheritable(descriptor, False)
    connection: Connection[Any, Any] = Connection(descriptor)
    driver = _Driver(connection)
    try:
        _set_up(connection.recv(), driver)
        _serve(connection, driver)
    except (EOFError, OSError):
        os._exit(1)


def _set_up(setup: Setup, driver: _Driver) -> None:
    driver.connector = setup.connector
    setup.take_over()
    logging.getLogger().addHandler(_ToDriver(driver))
    try:
        get_ready(setup.plugins)
    except Exception as error:  # noqa: BLE001 - the first plan fails the same way, and its report says so
        log.info("a process for tasks is not ready: %s", error)


def _serve(connection: "Connection[Any, Any]", driver: _Driver) -> None:
    threads = TaskThreads()
    while (told := connection.recv()) is not Word.CLOSE:
        match told:
            case Word.END:
                threads.ask_end()
            case Word.STOP:
                threads.ask_stop()
            case list() as plans:
                # First, so that no report overtakes it: then it would be taken for the next micro-batch's.
                driver.send(Word.BEGUN)
                threads.begin(plans, driver.hear)
    threads.close()


def _trouble_with(report: TaskReport) -> Exception | None:
    """Why a report would not arrive as it is: a source's events, or errors of its own, may not survive pickling."""
    try:
        pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    except Exception as error:  # noqa: BLE001 - whatever the user's classes raise
        return error
    return None


def _portable(record: logging.LogRecord) -> logging.LogRecord:
    bare = copy.copy(record)
    bare.msg, bare.args = record.getMessage(), None
    if record.exc_info:
        bare.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
        bare.exc_info = None
    return bare
