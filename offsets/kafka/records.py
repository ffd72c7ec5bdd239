"""What stands in the offsets topic beside the entries: the generation, the control record, the counters.

Their keys are lists of three or four elements, which Kafka Connect ignores: it knows lists of two. They begin like a
connector's own entries do not, so nobody takes them for progress.
"""

import json
from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import attrs

__all__ = ["Control", "Counters", "Generation", "control_key", "counter_key", "generation_key"]

FIRST = "headrace"

# Inside a class with a counter of that name, `bytes` is the counter.
Raw: TypeAlias = bytes


def generation_key(connector: str) -> bytes:
    """The key of the record that says which run owns the connector; reset never removes it."""
    return _key(connector, "generation")


def control_key(connector: str) -> bytes:
    """The key of the record by which a driver speaks to its tasks."""
    return _key(connector, "control")


def counter_key(connector: str, task_id: int) -> bytes:
    """The key of the record in which a task keeps its totals of a run."""
    return _key(connector, "counters", task_id)


@attrs.frozen(kw_only=True)
class Generation:
    """Which run owns the connector: its number, who it is, and up to which task id producers may be alive.

    `stopped` is written by a clean stop: nothing of this connector is running.
    """

    generation: int = 0
    owner: str = ""
    tasks: int = 0
    stopped: bool = False

    def encode(self) -> bytes:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """From the topic; what a newer version has added is passed over."""
        return cls(**_known(cls, data))

    def is_same_run(self, other: "Generation") -> bool:
        """Whether both are of one run."""
        return (self.generation, self.owner) == (other.generation, other.owner)


@attrs.frozen(kw_only=True)
class Control:
    """What a driver tells the tasks of one micro-batch; a hint, checked against the run it is from."""

    generation: int = 0
    owner: str = ""
    batch: int = -1
    stop: bool = False
    end_batch: bool = False

    def encode(self) -> bytes:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, data))


@attrs.frozen(kw_only=True)
class Counters:
    """What a task has committed in one run, over all its attempts and micro-batches."""

    owner: str = ""
    records: int = 0
    bytes: int = 0
    objects: int = 0
    transactions: int = 0

    def encode(self) -> Raw:
        """As it stands in the topic."""
        return _encode(attrs.asdict(self))

    @classmethod
    def decode(cls, data: Raw | None) -> Self:
        """From the topic."""
        return cls(**_known(cls, data))

    def plus(self, counted: Mapping[str, int]) -> "Counters":
        """These totals and what one more transaction has."""
        return attrs.evolve(self, **{name: getattr(self, name) + by for name, by in counted.items()})


def _key(connector: str, *rest: str | int) -> bytes:
    return _encode([FIRST, {"connector": connector}, *rest])


def _encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _known(cls: type[attrs.AttrsInstance], data: bytes | None) -> dict[str, Any]:
    found = json.loads(data) if data else {}
    return {field.name: found[field.name] for field in attrs.fields(cls) if field.name in found}
