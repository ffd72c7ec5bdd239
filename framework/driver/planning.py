"""What a run would do, found without doing it: no claim, no transactional id, nothing written."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.check import check
from headrace.framework.config import SourceCommonConfig
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.driver.preview import FirstRecord, Previewer
from headrace.framework.splits import Split, SplitSource
from headrace.framework.worker.execute import make_source
from headrace.offsets.kafka.records import EnumeratorState, enumerator_key
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.memory import MemoryOffsetStore
from headrace.offsets.store import OffsetStore

__all__ = ["PlannedObject", "WorkPlan", "make_plan"]

LOOK_EVERY_S = 0.1


@attrs.frozen(kw_only=True)
class PlannedObject:
    """One split in the plan. `first_record` is there for the first few that are unfinished; `error` if it is bad."""

    key: str
    task: int
    bytes: int
    records_done: int
    byte: int
    complete: bool
    topic: str | None
    first_record: str | None = None
    error: str | None = None


@attrs.frozen(kw_only=True)
class WorkPlan:
    """What there is, what of it a run would read, and which task reads it.

    `previews` is how many objects were opened. `topic_exists` says whether there is an offsets topic; without one
    nothing has been read. `is_listed` is false for a task that lists by itself while it runs: then there are no
    objects here.
    """

    connector: str
    objects: Sequence[PlannedObject] = ()
    skipped: int = 0
    list_calls: int = 0
    get_calls: int = 0
    previews: int = 0
    topic_exists: bool = True
    is_listed: bool = True
    warnings: Sequence[str] = ()

    @property
    def totals(self) -> Mapping[str, int]:
        """The sums; `bytes_to_read` is what is left of the objects that a run would read."""
        to_read = [one for one in self.objects if not one.complete]
        return {
            "objects": len(self.objects),
            "complete": len(self.objects) - len(to_read),
            "to_read": len(to_read),
            "bytes": sum(one.bytes for one in self.objects),
            "bytes_to_read": sum(max(0, one.bytes - one.byte) for one in to_read),
            "skipped": self.skipped,
            "list_calls": self.list_calls,
            "get_calls": self.get_calls,
            "previews": self.previews,
        }

    def as_json(self) -> Mapping[str, Any]:
        """The document that `headrace plan --output json` prints."""
        objects = [attrs.asdict(one) for one in self.objects]
        return {
            "connector": self.connector,
            "objects": objects,
            "totals": self.totals,
            "warnings": [*self.warnings],
        }


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
    host = EnumeratorHost(config.name, config.tasks_max, offsets, bounded=True, planning=True)
    try:
        host.start(source, None if view is None else _remembered(view.beside, config.name))
        _await_everything(host)
        previewer = Previewer(config, props, offsets)
        objects = _unfinished(source, host, previewer, offsets, first) + _finished(source, host, offsets)
    finally:
        host.close()
    return WorkPlan(
        connector=config.name,
        objects=sorted(objects, key=lambda one: one.key),
        skipped=host.skipped,
        list_calls=_calls(host.counted, "_list_calls") + _calls(previewer.metrics.extra, "_list_calls"),
        get_calls=_calls(host.counted, "_get_calls") + _calls(previewer.metrics.extra, "_get_calls"),
        previews=min(first, sum(not one.complete for one in objects)),
        topic_exists=view is not None,
        warnings=_warnings(config, host),
    )


def _remembered(beside: Mapping[bytes, bytes], connector: str) -> Mapping[str, Any] | None:
    known = EnumeratorState.decode(beside.get(enumerator_key(connector)))
    return None if known is None else known.state


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


def _unfinished(
    source: SplitSource[Split], host: EnumeratorHost, previewer: Previewer, offsets: OffsetStore, first: int
) -> list[PlannedObject]:
    assigned = [(split, task) for task, splits in host.assigned.items() for split in splits.values()]
    assigned.sort(key=lambda one: one[0].split_id)
    shown = [previewer.first_record(split, task) for split, task in assigned[:first]]
    shown += [FirstRecord()] * (len(assigned) - len(shown))
    return [
        _planned(source, split, task, offsets, record=record)
        for (split, task), record in zip(assigned, shown, strict=True)
    ]


def _finished(source: SplitSource[Split], host: EnumeratorHost, offsets: OffsetStore) -> list[PlannedObject]:
    return [_planned(source, split, task, offsets, complete=True) for split, task in host.finished]


def _planned(
    source: SplitSource[Split],
    split: Split,
    task: int,
    offsets: OffsetStore,
    *,
    complete: bool = False,
    record: FirstRecord | None = None,
) -> PlannedObject:
    key = OffsetManagerKey(split.source_partition)
    known = source.describe(split, offsets.get([key]).get(key))
    found = record or FirstRecord()
    return PlannedObject(
        key=known.key,
        task=task,
        bytes=split.size,
        records_done=known.records_done,
        byte=known.byte,
        complete=complete,
        topic=known.topic or found.topic,
        first_record=found.value,
        error=found.error,
    )


def _calls(counted: Mapping[str, int], kind: str) -> int:
    return sum(count for name, count in counted.items() if name.endswith(kind))


def _warnings(config: SourceCommonConfig, host: EnumeratorHost) -> list[str]:
    return [*config.warnings(), *host.warnings]
