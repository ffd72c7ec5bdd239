"""A source that does what a list says: a crash, a pause or a fault is an element of the list."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from headrace.framework.backoff import BackoffConfig
from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import RetriableError
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.framework.task import AbstractSourceTask, Yielded
from headrace.offsets.key import OffsetManagerKey

__all__ = ["Block", "Crash", "Fail", "Nothing", "ScriptedTask", "SimulatedCrash", "Stumble", "scripted_task"]


class SimulatedCrash(BaseException):
    """The process is as good as dead: nothing of the open transaction is kept."""


@attrs.frozen(eq=False)
class Crash:
    """The process dies here, once: the next run passes this element over."""


@attrs.frozen(eq=False)
class Stumble:
    """A `RetriableError`, once."""

    message: str = "the source stumbled"


@attrs.frozen(eq=False)
class Fail:
    """An error, every time."""

    error: Exception


@attrs.frozen(eq=False)
class Nothing:
    """Nothing right now."""


@attrs.frozen(eq=False)
class Block:
    """The source blocks until `release` is set, or until the task is to stop; `reached` is set before."""

    release: threading.Event = attrs.field(factory=threading.Event)
    reached: threading.Event = attrs.field(factory=threading.Event)
    deaf: bool = False
    """Whether it does not care that the task is to stop."""


class ScriptedTask(AbstractSourceTask):
    """Yields the elements of `script` that are records: bytes, a text, a whole `SourceRecord`, a `RecordBatch`.

    Its progress is the index of the next element, under the source partition `{"script": name}`. Make one with
    `scripted_task`.
    """

    script: ClassVar[Sequence[Any]]
    name: ClassVar[str]
    done_once: ClassVar[set[int]]
    closed: ClassVar[list[int]]

    @override
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        return SourceCommonConfig.from_props(props)

    @override
    def get_iterator(self, backoff: BackoffConfig) -> Iterator[Yielded]:
        partition = {"script": self.name}
        entry = self.context.offsets.get_entry(OffsetManagerKey(partition), dict)
        start = entry["position"] if entry else 0
        for index in range(start, len(self.script)):
            element = self.script[index]
            if isinstance(element, SourceRecord | RecordBatch):
                yield element
            elif isinstance(element, bytes | str):
                yield SourceRecord(
                    source_partition=partition, source_offset={"position": index + 1}, topic="scripted", value=element
                )
            else:
                yield from self._act(index, element)

    @override
    def close_resources(self) -> None:
        self.closed.append(self.context.task_id)

    def _act(self, index: int, element: Any) -> Iterator[Yielded]:
        match element:
            case Nothing():
                yield None
            case Fail(error):
                raise error
            case Block():
                element.reached.set()
                while not element.release.wait(0.01) and (element.deaf or not self.context.stopping.is_set()):
                    pass
            case Crash() | Stumble() if index in self.done_once:
                return
            case Crash():
                self.done_once.add(index)
                raise SimulatedCrash
            case Stumble(message):
                self.done_once.add(index)
                raise RetriableError(message)
            case _:
                raise TypeError(f"a script has no use for {element!r}")


def scripted_task(*script: Any, name: str = "script") -> type[ScriptedTask]:
    """A task class of its own for this script; its runs share what has happened once."""
    return type(
        "ScriptedTask",
        (ScriptedTask,),
        {"script": script, "name": name, "done_once": set(), "closed": [], "__module__": ScriptedTask.__module__},
    )
