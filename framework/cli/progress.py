"""The progress line of a run, for whoever watches a terminal."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from headrace.framework.driver.summary import Progress, RunStatus

__all__ = ["Rate", "progress_line"]

RATE_OVER_S = 5.0
Update = Callable[[RunStatus], None]


@contextmanager
def progress_line(connector: str, *, wanted: bool) -> Iterator[Update]:
    """A function to hand each new status of a run to; it shows nothing unless `wanted`, on a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield _show_nothing
        return
    from rich import progress as rich_progress  # noqa: PLC0415 - for a terminal only
    from rich.console import Console  # noqa: PLC0415 - as above

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(bar_width=24),
        rich_progress.TextColumn("{task.fields[words]}"),
        rich_progress.TimeElapsedColumn(),
    )
    rate = Rate()
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as line:
        task = line.add_task(connector, total=None, words="starting")

        def update(status: RunStatus) -> None:
            done = status.progress
            line.update(
                task, total=done.objects_known or None, completed=done.objects, words=_words(status, rate.of(done))
            )

        yield update


@attrs.define
class Rate:
    """Records a second, over the last few seconds."""

    _seen: deque[tuple[float, int]] = attrs.field(factory=deque, init=False)

    def of(self, done: Progress, now: float | None = None) -> float:
        """The rate, now that this much is done."""
        at = time.monotonic() if now is None else now
        self._seen.append((at, done.records))
        while len(self._seen) > 2 and at - self._seen[0][0] > RATE_OVER_S:  # noqa: PLR2004 - a rate needs two points
            self._seen.popleft()
        since, records = self._seen[0]
        return (done.records - records) / (at - since) if at > since else 0.0


def _show_nothing(status: RunStatus) -> None:
    pass


def _words(status: RunStatus, rate: float) -> str:
    done = status.progress
    state = "stalled" if status.stalled else status.state.lower()
    return (
        f"{state}: {done.objects}/{done.objects_known} objects, {done.records:,} records, "
        f"{done.bytes / 1e6:,.1f} MB, {rate:,.0f} records/s"
    )
