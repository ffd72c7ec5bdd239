"""Everything that Headrace raises, by phase and by what to do about it.

```text
HeadraceError
├── ConfigError
│   ├── OffsetsBodyError
│   └── PluginError
├── PipelineError
│   ├── DataError
│   ├── OffsetsError
│   │   ├── MalformedOffsetError
│   │   ├── NotCompactedError
│   │   └── OffsetValueError
│   ├── RetriableError
│   ├── SinkError
│   │   ├── RecordTooLargeError
│   │   └── TransactionTooLongError
│   ├── SourceError
│   │   ├── ObjectArchivedError
│   │   ├── ObjectChangedError
│   │   ├── ObjectVanishedError
│   │   └── UnclaimedObjectError
│   └── TaskError
├── SetupError
│   ├── BrokerStartError
│   ├── CacheError
│   ├── DiskFullError
│   ├── DownloadError
│   ├── JavaNotFoundError
│   └── PortInUseError
└── TakenOverError
    └── FencedError
```

- `ConfigError`: what is wrong without asking S3, Kafka or a source. It lists every fault at once. Mend the
  configuration. `OffsetsBodyError` is the same of a body of offsets that somebody wants to have stored.
- `PipelineError`: something went wrong at a stage, and the message says where. `RetriableError` is the only one that
  is tried again, with backoff, and the record at hand is not lost; every other fails the task with its cause.
  `DataError` is a bad record, `RecordTooLargeError` one that the sink does not take: what came before it is committed
  first.
- `SetupError`: this machine lacks something; nothing was read and nothing was written.
- `TakenOverError`: a newer run of the same connector has claimed its work. The older one stops and says so.
  `FencedError` is the same within one generation: another attempt at the same task has it, and Spark decides.

A test compares the tree above with the classes, and sends each of them through pickle: they cross from executors
to the driver. An error keeps its cause; its message is one line that ends in the next step.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs

from headrace.framework.compat import override
from headrace.framework.stage import Stage

__all__ = [
    "BrokerStartError",
    "CacheError",
    "ConfigError",
    "DataError",
    "DiskFullError",
    "DownloadError",
    "Fault",
    "FencedError",
    "HeadraceError",
    "JavaNotFoundError",
    "MalformedOffsetError",
    "NotCompactedError",
    "ObjectArchivedError",
    "ObjectChangedError",
    "ObjectVanishedError",
    "OffsetValueError",
    "OffsetsBodyError",
    "OffsetsError",
    "PipelineError",
    "PluginError",
    "PortInUseError",
    "RecordTooLargeError",
    "RetriableError",
    "SetupError",
    "SinkError",
    "SourceError",
    "TakenOverError",
    "TaskError",
    "TransactionTooLongError",
    "UnclaimedObjectError",
    "Where",
]


class HeadraceError(Exception):
    """The root: catch it to catch whatever Headrace raises on purpose."""

    exit_code: ClassVar[int] = 1
    """What the command line exits with when this error ends it."""


@attrs.frozen
class Fault:
    """One thing that is wrong with a configuration."""

    key: str
    value: str | None
    message: str
    suggestion: str | None = None

    @override
    def __str__(self) -> str:
        hint = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{self.key}: {self.message}{hint}"


class ConfigError(HeadraceError):
    """The configuration is wrong: every fault of it, at once."""

    exit_code = 2
    what: ClassVar[str] = "the configuration"
    """What has the faults, for people."""

    def __init__(self, faults: Sequence[Fault] | str) -> None:
        """Take the faults, or one message where no key is to blame."""
        self.faults = (Fault("", None, faults),) if isinstance(faults, str) else tuple(faults)
        super().__init__(faults if isinstance(faults, str) else "; ".join(map(str, self.faults)))


class OffsetsBodyError(ConfigError):
    """A body of offsets that cannot be stored as it is; every fault names the entry that has it."""

    what = "the body of offsets"


class PluginError(ConfigError):
    """A plugin was named that there is not, that there is twice, or that cannot be loaded."""


@attrs.frozen(kw_only=True)
class Where:
    """The place in the pipeline that an error speaks of; what is not known yet is None."""

    stage: Stage | None = None
    connector: str | None = None
    task: int | None = None
    object: str | None = None
    position: str | None = None

    def filled(self, other: "Where") -> "Where":
        """This place, with what it does not know taken from `other`."""
        mine = attrs.asdict(self)
        return Where(**{name: getattr(other, name) if value is None else value for name, value in mine.items()})

    @override
    def __str__(self) -> str:
        parts = [
            self.stage,
            self.connector,
            None if self.task is None else f"task {self.task}",
            self.object,
            self.position,
        ]
        return ", ".join(str(part) for part in parts if part is not None)


class PipelineError(HeadraceError):
    """Something went wrong at a stage of the pipeline; `where` says which, and with what in hand.

    Whoever raises it says what it knows; the framework fills in the rest on the way up (`located`).
    """

    def __init__(self, message: str, where: Where | None = None) -> None:
        """Take the message without the place, and the place as far as it is known."""
        self.message = message
        self.where = where or Where()
        super().__init__(message)

    def located(self, where: Where) -> Self:
        """This error, its unknown parts of the place taken from `where`."""
        self.where = self.where.filled(where)
        return self

    @override
    def __str__(self) -> str:
        place = str(self.where)
        return f"{place}: {self.message}" if place else self.message


class RetriableError(PipelineError):
    """Another attempt can mend it: the framework waits, and asks again; the record at hand is not lost."""


class DataError(PipelineError):
    """A record is bad: it cannot be decoded or converted. What came before it is committed, then the task fails."""


class SourceError(PipelineError):
    """The source refuses or has lost what is asked of it, and trying again would not help."""


class UnclaimedObjectError(SourceError):
    """No task claims an object: it would be read by nobody."""


class ObjectChangedError(SourceError):
    """An object is no longer the one that was listed, or that was being read: it has been overwritten."""


class ObjectVanishedError(SourceError):
    """An object that was listed is gone."""


class ObjectArchivedError(SourceError):
    """An object lies in an archive, and cannot be read before somebody has it restored."""


class SinkError(PipelineError):
    """The sink refused records, or did not take them in time."""


class RecordTooLargeError(SinkError):
    """A record is larger than the sink takes; `index` is its place among those that were written with it.

    What came before it is committed, then the task fails.
    """

    index: int = 0


class TransactionTooLongError(SinkError):
    """The broker ended a transaction that was open for longer than its time-out."""


class TaskError(PipelineError):
    """A task's own code failed; the cause is what it raised."""


class OffsetsError(PipelineError):
    """The stored progress cannot be read or written."""


class MalformedOffsetError(OffsetsError):
    """A key or a value of the offsets topic is not of Kafka Connect's form: it is skipped with a warning, as there."""


class NotCompactedError(OffsetsError):
    """The offsets topic is not compacted: sooner or later it would forget."""


class OffsetValueError(OffsetsError):
    """An offset map holds what cannot be stored: not flat, not primitive, or an integer beyond 64 bits."""


class TakenOverError(HeadraceError):
    """A newer run of this connector has claimed its work; this one stops."""


class FencedError(TakenOverError):
    """Another attempt at the same task, in the same generation, has its transactional id."""


class SetupError(HeadraceError):
    """This machine lacks something that the work needs."""


class CacheError(SetupError):
    """The folder for what is kept once per user cannot be made."""


class JavaNotFoundError(SetupError):
    """There is no Java that runs Spark and Kafka."""


class DownloadError(SetupError):
    """The broker's jars could not be fetched, or are not the ones whose sums stand in the project."""


class PortInUseError(SetupError):
    """The port asked for belongs to somebody else."""


class DiskFullError(SetupError):
    """There is no room for what has to be written."""


class BrokerStartError(SetupError):
    """The embedded broker ended, or did not answer, before it was ready."""
