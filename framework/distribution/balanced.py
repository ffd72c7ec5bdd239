"""By size: every task gets about as much to read."""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from headrace.framework.distribution.base import StorageObject
from headrace.framework.distribution.object_hash import ObjectHashDistribution

__all__ = ["BalancedDistribution"]


class BalancedDistribution(ObjectHashDistribution):
    """The planner's strategy: `plan` is called on the driver, which alone knows all objects and all loads.

    A task that lists by itself knows neither, so for it (`task_for`, `TaskShare`) the hash of the name decides.
    """

    def plan(
        self,
        objects: Iterable[StorageObject],
        tasks: int,
        *,
        given: Mapping[str, int] | None = None,
        loads: Sequence[int] | None = None,
    ) -> dict[str, int]:
        """The task of each object, by its name.

        What is already `given` to a task stays with it. The rest goes, the largest first, to whichever task has the
        least to read. `loads` is what each task still has to read of what it was given: the sum of the weights.

        The same arguments give the same plan, in whatever order the objects come. From empty loads no task gets more
        than an equal share and the largest object.
        """
        held = given or {}
        least = _least_loaded(tasks, loads)
        plan: dict[str, int] = {}
        for obj in sorted(objects, key=lambda obj: (-obj.weight, obj.name)):
            if obj.name in plan:
                continue
            if obj.name in held:
                plan[obj.name] = _existing(held[obj.name], tasks, obj.name)
                continue
            load, task = least[0]
            heapq.heapreplace(least, (load + obj.weight, task))
            plan[obj.name] = task
        return plan


def _least_loaded(tasks: int, loads: Sequence[int] | None) -> list[tuple[int, int]]:
    if loads is not None and len(loads) != tasks:
        raise ValueError(f"there are {tasks} tasks and the loads of {len(loads)}")
    heap = [(load, task) for task, load in enumerate(loads or [0] * tasks)]
    heapq.heapify(heap)
    return heap


def _existing(task: int, tasks: int, name: str) -> int:
    if not 0 <= task < tasks:
        raise ValueError(f"{name} was given to task {task}, and there are {tasks}: moving it is a new claim")
    return task
