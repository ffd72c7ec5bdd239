"""The stored progress of a connector, looked at and changed from outside of a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.check import check
from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import Fault, OffsetsBodyError
from headrace.framework.source_offsets import Explanation, SourceOffsets
from headrace.framework.splits import SplitSource
from headrace.framework.worker.execute import make_source
from headrace.offsets.body import Entry, read_body
from headrace.offsets.codec import decode_key
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.memory import MemoryOffsetStore
from headrace.offsets.rollup import name_mark

if TYPE_CHECKING:
    from headrace.offsets.kafka.settings import KafkaSettings
    from headrace.offsets.kafka.spellings import Spellings
    from headrace.offsets.store import OffsetStore

__all__ = ["Altered", "OpenedConnector", "Stored", "body_entries", "explain", "stored"]


@attrs.frozen(kw_only=True)
class Altered:
    """What an alteration has done."""

    stored: int
    forgotten: int
    notes: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class Stored:
    """What a topic has of a connector: entries in a fixed order, and the shards of its roll-up with their contents.

    `there` says whether there is an offsets topic at all.
    """

    entries: Sequence[tuple[dict[str, Any], dict[str, Any]]] = ()
    shards: Mapping[int, bytes] = attrs.field(factory=dict)
    rolled_up: int = 0
    there: bool = True


@attrs.frozen(kw_only=True)
class OpenedConnector:
    """A connector's configuration, its source, and what that says about offsets."""

    config: SourceCommonConfig
    source: object
    offsets: SourceOffsets
    settings: "KafkaSettings"

    @classmethod
    def of(cls, props: Mapping[str, str]) -> "OpenedConnector":
        """Configure it; `ConfigError` with every fault."""
        from headrace.offsets.kafka.settings import KafkaSettings  # noqa: PLC0415 - Kafka comes in when it is used

        check(props)
        source, config = make_source(props)
        offsets = source.source_offsets() if isinstance(source, SplitSource) else SourceOffsets()
        return cls(config=config, source=source, offsets=offsets, settings=KafkaSettings.of(config))

    def read_entries(self, text: str) -> list[Entry]:
        """The entries of a body, as the source takes them; `OffsetsBodyError` names the entry that it does not take."""
        entries = read_body(text)
        faults = [
            attrs.evolve(fault, key=f"offsets[{index}].{fault.key}")
            for index, (partition, offset) in enumerate(entries)
            for fault in self.offsets.faults(partition, offset)
        ]
        if faults:
            raise OffsetsBodyError(faults)
        return entries

    def alter(self, entries: Sequence[Entry], *, force: bool) -> Altered:
        """Store the entries, forget those that are None, and leave all others alone: all in one transaction.

        What was rolled up of them leaves the roll-up.
        """
        if not entries:
            raise OffsetsBodyError([Fault("offsets", "[]", "is empty: there is nothing to change")])
        return self._write(entries, None, force=force)

    def replace(self, entries: Sequence[Entry], shards: Mapping[int, bytes], *, force: bool) -> Altered:
        """Make these the entries and the roll-up of the connector, and forget all else: all in one transaction."""
        return self._write(entries, shards, force=force)

    def _write(self, entries: Sequence[Entry], shards: Mapping[int, bytes] | None, *, force: bool) -> Altered:
        from headrace.offsets.kafka.altering import claimed, records_instead  # noqa: PLC0415 - Kafka, when it is used

        with claimed(self.settings, force=force) as claim:
            known, rollup = claim.view.spelled(), claim.view.rollup
            changes = self.changes(known, entries, others=shards is not None)
            if shards is None:
                marks = {name_mark(key) for key in changes}
                rolled_up = rollup.changed(keep=lambda mark: mark not in marks)
            else:
                rolled_up = {**dict.fromkeys(rollup.shards), **shards}
            claim.put([*records_instead(known, changes.items()), *claim.shard_records(rolled_up)])
        notes = [
            f"offsets[{index}]: {note}"
            for index, (partition, offset) in enumerate(entries)
            if offset is not None
            for note in self.offsets.notes(partition)
        ]
        stored = sum(offset is not None for offset in changes.values())
        forgotten = sum(offset is None and bool(known.of_key(key)) for key, offset in changes.items())
        return Altered(stored=stored, forgotten=forgotten, notes=notes)

    def changes(
        self, known: "Spellings", entries: Sequence[Entry], *, others: bool
    ) -> dict[OffsetManagerKey, dict[str, Any] | None]:
        """What is to be written for `entries` over what is `known`, which is forgotten if `others` says so.

        The names of a partition come in the source's order, and where it has none in the one in which they are known.
        """
        changes: dict[OffsetManagerKey, dict[str, Any] | None] = {}
        for partition, offset in entries:
            stored = known.of_key(OffsetManagerKey(partition))
            names = decode_key(stored[0])[1].mapping if stored else partition
            changes[OffsetManagerKey(self.offsets.in_order(names))] = offset
        if others:
            changes |= {key: None for key, _ in known if key not in changes}
        return changes


def stored(connector: OpenedConnector) -> Stored:
    """What the topic has. Nothing is written."""
    from headrace.offsets.kafka.reading import read_view  # noqa: PLC0415 - Kafka comes in when it is used

    view = read_view(connector.settings)
    if view is None:
        return Stored(there=False)
    return Stored(entries=body_entries(connector, view), shards=view.rollup.shards, rolled_up=len(view.rollup))


def body_entries(connector: OpenedConnector, offsets: "OffsetStore") -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The entries of a store as a body has them: names in the source's order, entries in that of their texts."""
    found = [(dict(connector.offsets.in_order(key.mapping)), offset) for key, offset in offsets.items()]
    return sorted(found, key=lambda entry: sorted(map(str, entry[0].items())))


def explain(props: Mapping[str, str], name: str) -> tuple[Explanation, bool]:
    """Why a piece of the source was, will be or will not be read; and whether there is an offsets topic.

    One look at the topic and one at the piece; nothing is written and no run is disturbed.
    """
    from headrace.offsets.kafka.reading import read_view  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    view = read_view(connector.settings)
    offsets: OffsetStore = view or MemoryOffsetStore()
    return connector.offsets.explain(name, offsets, connector.config.tasks_max), view is not None
