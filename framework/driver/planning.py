"""What a run would do, found without doing it: no claim, no transactional id, nothing written."""

import json
from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import attrs

from headrace.framework.check import check
from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.preview import FirstRecord, Previewer
from headrace.framework.splits import Split, SplitSource
from headrace.framework.worker.execute import make_source
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.memory import MemoryOffsetStore
from headrace.offsets.store import OffsetStore

__all__ = ["PlannedObject", "WorkPlan", "make_plan"]

LOOK_EVERY_S = 0.1


@attrs.frozen(kw_only=True)
class PlannedObject:
    """One split in the plan. `first_record` is there for the first few that are unfinished; `error` if it is bad.

    `get_calls` is how many requests a run makes for what is left of it, if all goes well. `part` says which part of the
    object the split is, and `start` with which byte that begins; it is empty where the split is all of the object.
    """

    key: str
    task: int
    bytes: int
    records_done: int
    byte: int
    complete: bool
    topic: str | None
    get_calls: int = 0
    first_record: str | None = None
    error: str | None = None
    part: str = ""
    start: int = 0

    def as_json(self) -> Mapping[str, Any]:
        """The object as `headrace plan --output json` prints it; only a part has `part` and `start`."""
        names = NAMES if self.part else [name for name in NAMES if name not in {"part", "start"}]
        return {name: getattr(self, name) for name in names}


NAMES = tuple(field.name for field in attrs.fields(PlannedObject))


@attrs.frozen(kw_only=True)
class WorkPlan:
    """What there is, what of it a run would read, and which task reads it.

    `list_calls` and `get_calls` are the requests that making the plan took, `run_list_calls` is how many listing
    requests a bounded run makes. `previews` is how many objects were opened. `topic_exists` says whether there is an
    offsets topic; without one nothing has been read. `is_listed` is false for a task that lists by itself while it
    runs: then there are no objects here.
    """

    connector: str
    objects: Sequence[PlannedObject] = ()
    skipped: int = 0
    list_calls: int = 0
    get_calls: int = 0
    run_list_calls: int = 0
    previews: int = 0
    topic_exists: bool = True
    is_listed: bool = True
    warnings: Sequence[str] = ()

    @property
    def totals(self) -> Mapping[str, int]:
        """The sums; `bytes_to_read` is what is left of the objects that a run would read.

        `estimated_list_calls` and `estimated_get_calls` are what a bounded run asks of the source; one that goes on
        lists again and again.
        """
        to_read = [one for one in self.objects if not one.complete]
        objects, unfinished = len(_names(self.objects)), len(_names(to_read))
        return {
            "objects": objects,
            "complete": objects - unfinished,
            "to_read": unfinished,
            "bytes": sum(one.bytes for one in self.objects),
            "bytes_to_read": sum(max(0, one.bytes - max(0, one.byte - one.start)) for one in to_read),
            "skipped": self.skipped,
            "list_calls": self.list_calls,
            "get_calls": self.get_calls,
            "estimated_list_calls": self.run_list_calls,
            "estimated_get_calls": sum(one.get_calls for one in to_read),
            "previews": self.previews,
        }

    def json_lines(self) -> Iterator[str]:
        """The document that `headrace plan --output json` prints, a line at a time: there may be a million objects."""
        yield f'{{"connector": {json.dumps(self.connector)}, "objects": ['
        last = len(self.objects) - 1
        for place, one in enumerate(self.objects):
            yield json.dumps(one.as_json()) + ("," if place < last else "")
        yield f'], "totals": {json.dumps(self.totals)}, "warnings": {json.dumps([*self.warnings])}}}'


def make_plan(props: Mapping[str, str], *, first: int = 10) -> WorkPlan:
    """List once, compare with the committed offsets, assign as a run would; open the `first` unfinished objects.

    Nothing is written and no run is disturbed. `ConfigError` for a faulty configuration; what cannot be reached is
    the error that would fail the run.
    """
    from headrace.offsets.kafka.reading import read_view  # noqa: PLC0415 - Kafka comes in when it is used
    from headrace.offsets.kafka.settings import KafkaSettings  # noqa: PLC0415 - as above

    check(props)
    source, config = make_source(props)
    if not isinstance(source, SplitSource):
        return WorkPlan(connector=config.name, is_listed=False, warnings=config.warnings())
    view = read_view(KafkaSettings.of(config))
    offsets: OffsetStore = view or MemoryOffsetStore()
    host = _PlanningHost(
        config.name,
        config.tasks_max,
        offsets,
        bounded=True,
        planning=True,
        first=first,
        describe=partial(_planned, source, offsets),
    )
    try:
        host.start(source, None if view is None or (known := view.remembered) is None else known.state)
        _await_everything(host)
        previewer = Previewer(config, props, offsets)
        objects = host.objects
        for _, place, split, task in host.shown:
            objects[place] = _with_record(objects[place], previewer.first_record(split, task))
    finally:
        host.close()
    return WorkPlan(
        connector=config.name,
        objects=sorted(objects, key=lambda one: one.key),
        skipped=host.skipped,
        list_calls=_calls(host.counted, "_list_calls") + _calls(previewer.metrics.extra, "_list_calls"),
        get_calls=_calls(host.counted, "_get_calls") + _calls(previewer.metrics.extra, "_get_calls"),
        run_list_calls=_calls(host.counted, "_list_calls") + _calls(host.counted, "_list_calls_more"),
        previews=len(host.shown),
        topic_exists=view is not None,
        warnings=_warnings(config, host),
    )


def _await_everything(host: EnumeratorHost) -> None:
    """Work off what discovery brings until every reader has been told that there is no more.

    An enumerator that gives on request is asked for each reader in turn.
    """
    while True:
        host.work_off()
        if host.everybody_is_told:
            return
        for reader_id in range(host.tasks):
            if not host.is_told_everything(reader_id):
                host.take_in(reader_id, finished=[], wants=True, events=[])
        if not host.everybody_is_told:
            host.wake.wait(LOOK_EVERY_S)
            host.wake.clear()


def _planned(
    source: SplitSource[Split], offsets: OffsetStore, split: Split, task: int, *, complete: bool
) -> PlannedObject:
    key = OffsetManagerKey(split.source_partition)
    known = source.describe(split, offsets.get([key]).get(key))
    return PlannedObject(
        key=known.key,
        task=task,
        bytes=split.size,
        records_done=known.records_done,
        byte=known.byte,
        complete=complete,
        topic=known.topic,
        get_calls=0 if complete else known.get_calls,
        part=known.part,
        start=known.start,
    )


def _names(objects: Sequence[PlannedObject]) -> set[str]:
    """The objects that these are, or are parts of."""
    return {one.key for one in objects}


def _with_record(one: PlannedObject, found: FirstRecord) -> PlannedObject:
    return attrs.evolve(one, topic=one.topic or found.topic, first_record=found.value, error=found.error)


@attrs.define
class _PlanningHost(EnumeratorHost):
    """Keeps of a split what the plan says of it, and the splits themselves of the `first` that are to be opened.

    Those are the first by their names; `shown` has them in order, with their places among the `objects`.
    """

    first: int = attrs.field(kw_only=True)
    describe: Callable[..., PlannedObject] = attrs.field(kw_only=True)
    objects: list[PlannedObject] = attrs.field(factory=list, init=False)
    shown: list[tuple[str, int, Split, int]] = attrs.field(factory=list, init=False)
    _loads: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._loads = [0] * self.tasks

    @override
    def assign_split(self, split: Split, reader_id: int) -> None:
        self.objects.append(self.describe(split, reader_id, complete=False))
        self._loads[reader_id] += max(1, split.size)
        insort(self.shown, (split.split_id, len(self.objects) - 1, split, reader_id), key=itemgetter(0, 1))
        del self.shown[self.first :]

    @override
    def note_finished(self, split: Split, reader_id: int) -> None:
        self.objects.append(self.describe(split, reader_id, complete=True))

    @override
    def loads(self) -> Sequence[int]:
        return self._loads


def _calls(counted: Mapping[str, int], kind: str) -> int:
    return sum(count for name, count in counted.items() if name.endswith(kind))


def _warnings(config: SourceCommonConfig, host: EnumeratorHost) -> list[str]:
    return [*config.warnings(), *host.warnings]
