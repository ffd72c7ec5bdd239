"""Which task reads an object."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import attrs

from headrace.framework.errors import UnclaimedObjectError, Where
from headrace.framework.stage import Stage

__all__ = ["ObjectDistributionStrategy", "StorageObject", "TaskShare"]


@attrs.frozen
class StorageObject:
    """What a strategy knows of an object: its name; its size and its Kafka partition where they are known."""

    name: str
    size: int = 0
    partition: int | None = None

    @property
    def weight(self) -> int:
        """How much work it is: its size, and at least one."""
        return max(1, self.size)


class ObjectDistributionStrategy(ABC):
    """A rule that gives every object to exactly one task.

    It is a pure function of the object and the number of tasks: the same in every process, on every machine and in
    every run, so that tasks which ask it separately never share an object and never leave one out. In particular it
    must not use `hash()`, which differs from process to process.
    """

    def configure(self, props: Mapping[str, str]) -> None:
        """Read the configuration; called once, before the first call. `ConfigError` with all faults."""

    @abstractmethod
    def __call__(self, obj: StorageObject, tasks: int) -> int:
        """The index of the task that reads `obj`, from 0 to `tasks` - 1.

        An object that cannot be given to any is an `UnclaimedObjectError` that says why.
        """

    def task_for(self, obj: StorageObject, tasks: int) -> int:
        """The same, checked: an index that no task has is an error, not an object that nobody reads."""
        task = self(obj, tasks)
        if not 0 <= task < tasks:
            raise UnclaimedObjectError(
                f"{type(self).__name__} gives it to task {task} of {tasks}, counted from 0: mend the strategy",
                Where(stage=Stage.ASSIGN, object=obj.name),
            )
        return task


@attrs.frozen
class TaskShare:
    """The objects that are one task's, for a task that lists by itself."""

    strategy: ObjectDistributionStrategy
    task_id: int = attrs.field(validator=attrs.validators.ge(0))
    tasks: int = attrs.field(validator=attrs.validators.ge(1))

    def __attrs_post_init__(self) -> None:
        """Refuse a task that is not one of them: it would read nothing."""
        if self.task_id >= self.tasks:
            raise ValueError(f"there is no task {self.task_id} among {self.tasks}, counted from 0")

    def is_mine(self, obj: str | StorageObject) -> bool:
        """Whether this task reads `obj`, which may be given by its name alone.

        Of all tasks exactly one says yes; where none would, it is an `UnclaimedObjectError`.
        """
        known = obj if isinstance(obj, StorageObject) else StorageObject(obj)
        return self.strategy.task_for(known, self.tasks) == self.task_id
