"""A run of a connector on the engine that a test asks for."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from headrace.framework.driver.summary import RunSummary
from headrace.framework.handle import RunHandle
from headrace.framework.run import Run, on_processes, on_spark, on_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Engine", "Running"]

ENDED_WITHIN_S = 120.0
PROCESSES = 2


@attrs.frozen
class Engine:
    """An engine by its name: on Spark with a session; else `local`, on threads of this process, or `processes`."""

    name: str
    spark: "SparkSession | None" = attrs.field(default=None, kw_only=True)

    def run(self, props: Mapping[str, str]) -> RunSummary:
        """Read what there is, and end."""
        return self._made(props, bounded=True).go()

    @contextmanager
    def running(self, props: Mapping[str, str]) -> Iterator["Running"]:
        """A run that goes on until `stop`, or until the block ends."""
        running = Running(RunHandle(self._made(props, bounded=False)))
        try:
            yield running
        finally:
            running.stop()

    def _made(self, props: Mapping[str, str], *, bounded: bool) -> Run:
        if self.spark is not None:
            how = on_spark(self.spark)
        else:
            how = on_processes(PROCESSES) if self.name == "processes" else on_threads
        return Run(props=props, bounded=bounded, engine=how)


@attrs.frozen
class Running:
    """A run that goes on by itself."""

    handle: RunHandle

    def stop(self) -> RunSummary:
        """Stop it in an orderly way and wait for its end; asked again, it answers again."""
        self.handle.ask_stop()
        return self.ended()

    def ended(self) -> RunSummary:
        """Wait until it ends; what it raised is raised here."""
        summary = self.handle.await_termination(ENDED_WITHIN_S)
        if summary is None:
            connector = self.handle.status().connector
            raise TimeoutError(f"the run of {connector} did not end within {ENDED_WITHIN_S:.0f} s")
        return summary
