"""What a process tree costs: CPU seconds and resident sizes, sampled while it runs."""

import bisect
import threading
import time

import attrs
import psutil

__all__ = ["Sample", "TreeSampler"]

EVERY_S = 0.1
MEGABYTE = 1024 * 1024


@attrs.frozen
class Sample:
    """The tree at a moment: CPU seconds so far, resident megabytes of all, and of the largest Python process."""

    at: float
    cpu_s: float
    tree_mb: float
    worker_mb: float


@attrs.define
class TreeSampler:
    """Watches a process and all below it, from `start` to `stop`. Who has ended counts with what was last seen."""

    pid: int
    samples: list[Sample] = attrs.field(factory=list)
    _seconds: dict[int, float] = attrs.field(factory=dict, init=False)
    _known: dict[int, psutil.Process] = attrs.field(factory=dict, init=False)
    _ended: threading.Event = attrs.field(factory=threading.Event, init=False)
    _thread: threading.Thread = attrs.field(init=False)

    def start(self) -> None:
        """Begin to look, on a thread of its own."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def cpu_s(self, at: float | None = None) -> float:
        """CPU seconds of the tree up to a time, or in all."""
        if at is None:
            return self.samples[-1].cpu_s if self.samples else 0.0
        place = bisect.bisect_right(self.samples, at, key=lambda sample: sample.at)
        return self.samples[place - 1].cpu_s if place else 0.0

    def peak(self, figure: str, start: float, end: float) -> float:
        """The largest `tree_mb` or `worker_mb` between two times."""
        return max((getattr(one, figure) for one in self.samples if start <= one.at <= end), default=0.0)

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        tree, worker = 0, 0
        try:
            root = self._known.setdefault(self.pid, psutil.Process(self.pid))
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        for process in family:
            try:
                with process.oneshot():
                    times, size = process.cpu_times(), process.memory_info().rss
                    name = process.name()
            except psutil.Error:
                continue
            self._seconds[process.pid] = times.user + times.system
            tree += size
            if "python" in name or name == "headrace":
                worker = max(worker, size)
        self.samples.append(Sample(time.time(), sum(self._seconds.values()), tree / MEGABYTE, worker / MEGABYTE))
