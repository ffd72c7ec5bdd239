"""A task of any source, as the framework would make it, for tests that call its hooks themselves."""

import time
from collections.abc import Mapping

from headrace.framework import registry
from headrace.framework.config import SourceCommonConfig
from headrace.framework.distribution import TaskShare
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.metrics import TaskMetrics
from headrace.framework.splits import Split, SplitSource
from headrace.framework.task import AbstractSourceTask, TaskContext
from headrace.framework.worker.execute import make_source
from headrace.framework.worker.split_task import SplitSourceTask
from headrace.offsets.manager import OffsetManager
from headrace.offsets.memory import MemoryOffsetStore

__all__ = ["task_on"]

LISTED_WITHIN_S = 60.0


def task_on(props: Mapping[str, str]) -> AbstractSourceTask:
    """A configured task that has everything there is to read, with offsets in memory and nothing read so far."""
    source, config = make_source(props)
    offsets = MemoryOffsetStore()
    if isinstance(source, SplitSource):
        task: AbstractSourceTask = SplitSourceTask(source, _splits(source, config, offsets), no_more_splits=True)
    else:
        task = source
    task.context = TaskContext(
        connector=config.name,
        task_id=0,
        tasks_max=1,
        offsets=OffsetManager(offsets),
        distribution=TaskShare(registry.find("distributions", config.distribution_type)(), 0, 1),
        metrics=TaskMetrics(),
    )
    task.configure(props)
    return task


def _splits(source: SplitSource[Split], config: SourceCommonConfig, offsets: MemoryOffsetStore) -> dict[str, Split]:
    host = EnumeratorHost(config.name, 1, offsets, bounded=True)
    host.start(source, None)
    deadline = time.monotonic() + LISTED_WITHIN_S
    try:
        while not host.is_told_everything(0):
            if not host.wake.wait(max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"{config.name} was not listed within {LISTED_WITHIN_S:.0f} s")
            host.wake.clear()
            host.work_off()
            if not host.is_told_everything(0):
                host.ask(0)
        return dict(host.assigned.get(0, {}))
    finally:
        host.close()
