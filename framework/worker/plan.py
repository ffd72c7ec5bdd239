"""What the driver tells a task for one micro-batch, and what the task reports: picklable, small, no records in them."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.errors import HeadraceError

__all__ = ["Ended", "OffsetsSnapshot", "TaskPlan", "TaskReport"]


@attrs.frozen(kw_only=True)
class OffsetsSnapshot:
    """What the driver knows of the offsets topic, for one task: it reads on from `positions`.

    `entries` are raw keys and values: those of the task's splits where it has splits, all of the connector's
    otherwise. `positions` is where the driver's reader of committed records stood in each partition.
    """

    entries: Mapping[bytes, bytes] = attrs.field(factory=dict)
    positions: Mapping[int, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class TaskPlan:
    """One source task's share of one micro-batch.

    `generation` and `owner` are those of the run that made the plan: a task that finds others on the topic stops
    before it produces. `splits` are serialised, with their serializer's version; a plain task has none. `batch` counts
    the run's micro-batches, `partitions` those of the offsets topic. `last_worker` is the process that had the task
    last, by the report of its last micro-batch, and has told of no failure; empty where the driver knows of none.
    `at_most` is how many records it may take, if the run is to end after so many. `patience_s` is there
    where the run's end depends on what its tasks say: how soon one that gets nowhere has to; on Spark it says, too,
    that it has begun.
    """

    connector: str
    task_id: int
    tasks_max: int
    generation: int
    owner: str
    props: Mapping[str, str] = attrs.field(repr=False)
    bounded: bool
    batch: int
    batch_s: float
    partitions: int
    splits: Sequence[tuple[int, bytes]] = ()
    no_more_splits: bool = False
    events: Sequence[Mapping[str, Any]] = ()
    snapshot: OffsetsSnapshot = attrs.field(factory=OffsetsSnapshot, repr=False)
    last_worker: str = ""
    at_most: int | None = None
    patience_s: float | None = None


class Ended(enum.StrEnum):
    """Why a task's part in a micro-batch is over."""

    EXHAUSTED = "exhausted"
    """The iterator ended: nothing more for now."""

    TIME = "time"
    """The micro-batch has lasted long enough, the driver has work for another task, or splits are given back."""

    RULE_MET = "rule met"
    """The run's stop rule is met, by what this task has read."""

    STOPPED = "stopped"
    """The run is to stop."""

    FAILED = "failed"
    """`error` says why."""


@attrs.define(kw_only=True)
class TaskReport:
    """What became of a plan. A hint: what must be known can be found in the offsets topic.

    The counts are of what this attempt committed, and `worker` is the process that ran it. `left_out` names what was
    left out on purpose; after a failure it is left out, and named, again. `stalled` is what the task was still trying
    again when its part ended, and `stalled_s` for how long.
    """

    task_id: int
    ended: Ended = Ended.EXHAUSTED
    error: HeadraceError | None = None
    stalled: HeadraceError | None = None
    stalled_s: float = 0.0
    records: int = 0
    bytes: int = 0
    objects: int = 0
    left_out: Sequence[str] = ()
    dead_lettered: int = 0
    transactions: int = 0
    retries: int = 0
    finished_splits: list[str] = attrs.field(factory=list)
    given_back: list[str] = attrs.field(factory=list)
    wants_splits: bool = False
    events: list[Mapping[str, Any]] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    first_read_at: float | None = None
    last_commit_at: float | None = None
    worker: str = ""
