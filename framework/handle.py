"""A run that goes on by itself, and the handle on it."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from headrace.framework.driver.summary import RunStatus, RunSummary
from headrace.framework.run import Run, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RunHandle", "start"]


def start(props: Mapping[str, str], *, spark: "SparkSession") -> "RunHandle":
    """Start a continuous run of a connector on a Spark session, and return at once.

    `ConfigError` is raised here; everything else that fails the run, also while it starts, is in its summary. The run
    ends with the program: call `stop`, or `await_termination`, before that.
    """
    return RunHandle(Run(props=props, bounded=False, engine=on_spark(spark)))


@attrs.define
class RunHandle:
    """A run on a thread of its own, started when this is made. Every method may be called from any thread."""

    _run: Run
    _over: threading.Event = attrs.field(factory=threading.Event, init=False)
    _raised: BaseException | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Start."""
        threading.Thread(target=self._go, name=f"headrace-run-{self._run.config.name}", daemon=True).start()

    def status(self) -> RunStatus:
        """How it stands with the run."""
        return self._run.status()

    def ask_stop(self) -> None:
        """Have the run stop in an orderly way; returns at once."""
        self._run.ask_stop()

    def stop(self) -> RunSummary:
        """Stop the run in an orderly way and wait for its end: what is at a boundary is committed.

        Of a run that is over it is the summary.
        """
        self.ask_stop()
        summary = self.await_termination()
        assert summary is not None  # noqa: S101 - without a time-out it waits for the end
        return summary

    def await_termination(self, timeout_s: float | None = None) -> RunSummary | None:
        """Wait until the run is over, and say what it did; None if that takes longer than `timeout_s`.

        What fails a run is in the summary; only what is no fault of the run is raised.
        """
        if not self._over.wait(timeout_s):
            return None
        if self._raised is not None:
            raise self._raised
        return self._run.summary

    def _go(self) -> None:
        try:
            self._run.go()
        except BaseException as error:  # noqa: BLE001 - raised again on the thread that waits
            self._raised = error
        finally:
            self._over.set()
