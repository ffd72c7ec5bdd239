"""`headrace run`: a connector, until it is stopped or has nothing left to do."""

import gc
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import click

from headrace.framework.cli.options import config_command
from headrace.framework.cli.progress import progress_line
from headrace.framework.compat import usable_cores
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.summary import RunSummary
from headrace.framework.handle import RunHandle
from headrace.framework.run import Drive, Run, on_processes, on_spark, on_threads

__all__ = ["run"]

LOOK_EVERY_S = 0.2
STOPS_WITHIN_S = 28.0

# Splits and plans stay, so each look for garbage goes through more of them, and finds none. The process is our own.
GARBAGE_AFTER = 20_000, 20, 50


@click.command()
@config_command
@click.option("--available-now", is_flag=True, help="Read what there is now, and end.")
@click.option(
    "--engine",
    type=click.Choice(["spark", "local"]),
    default="spark",
    show_default=True,
    help="Spark, or processes of this machine: one for each task, as far as there are cores.",
)
@click.option("--master", metavar="URL", help="Spark's master; spark-submit's own, or local[*], without it.")
def run(*, props: Mapping[str, str], output: str, available_now: bool, engine: str, master: str | None) -> None:
    """Run a connector: until it is stopped, or with --available-now until everything there is has been read.

    SIGINT and SIGTERM stop it cleanly, with exit code 130 or 143; a second one ends it at once.
    """
    gc.set_threshold(*GARBAGE_AFTER)
    how = _on_this_machine if engine == "local" else on_spark(master=master)
    handle = RunHandle(Run(props=props, bounded=available_now, engine=how))
    with _stopped_by_signals(handle) as received:
        summary = _await(handle, progress=output == "text")
    _print(summary, output)
    if summary.error is not None:
        raise SystemExit(1)
    if received:
        raise SystemExit(128 + received[0])


def _on_this_machine(config: SourceCommonConfig) -> AbstractContextManager[Drive]:
    """The engine without Spark: a process for each task as far as there are cores; for one alone, this one."""
    count = min(config.tasks_max, usable_cores())
    return on_threads(config) if count == 1 else on_processes(count)(config)


def _await(handle: RunHandle, *, progress: bool) -> RunSummary:
    """Wait on this thread, where signals arrive, for the run on its own."""
    with progress_line(handle.status().connector, wanted=progress) as update:
        while True:
            summary = handle.await_termination(LOOK_EVERY_S)
            update(handle.status())
            if summary is not None:
                return summary


@contextmanager
def _stopped_by_signals(handle: RunHandle) -> Iterator[list[int]]:
    """Stop the run at the first signal; the second one, or too long a stop, ends the process on the spot."""
    received: list[int] = []
    timers: list[threading.Timer] = []

    def stop(number: int, _frame: object) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        timers.append(threading.Timer(STOPS_WITHIN_S, os._exit, (128 + number,)))
        timers[0].daemon = True
        timers[0].start()
        handle.ask_stop()

    before = {name: signal.signal(name, stop) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
        for timer in timers:
            timer.cancel()


def _print(summary: RunSummary, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(summary.as_json(), indent=2))
        return
    for warning in summary.warnings:
        click.echo(f"warning: {warning}", err=True)
    delivered = summary.delivery.replace("_", " ")
    click.echo(
        f"{summary.connector}: {summary.records} records of {summary.objects} objects in {summary.transactions} "
        f"transactions, {delivered}, in {summary.duration_s:.1f} s ({summary.records_per_s:.0f} records/s)"
    )
    if summary.error is not None:
        click.echo(f"headrace: {summary.error}", err=True)
