"""A Kafka of two dictionaries: topics and offsets that change together, for tests without a broker."""

import threading
from collections.abc import Mapping, Sequence

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import PipelineError, SinkError
from headrace.framework.record import Header
from headrace.framework.sink import SinkWriter
from headrace.offsets.memory import MemoryOffsetStore
from headrace.offsets.store import Offsets, OffsetStore

__all__ = ["MemoryKafka", "MemoryRecord", "MemoryWriter"]


@attrs.frozen(kw_only=True)
class MemoryRecord:
    """A record as a reader of the topic gets it; in which transaction it came is told for those who ask."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    timestamp: int | None
    headers: tuple[Header, ...]
    transaction: int


@attrs.define
class MemoryKafka:
    """What is committed: `records` in order, and the `offsets` that stand for them. Outlives the runs of a test."""

    records: list[MemoryRecord] = attrs.field(factory=list)
    offsets: MemoryOffsetStore = attrs.field(factory=MemoryOffsetStore)
    transactions: int = 0
    lock: threading.RLock = attrs.field(factory=threading.RLock, repr=False)

    def values(self, topic: str | None = None) -> list[bytes | None]:
        """The committed values of a topic, or of all."""
        return [record.value for record in self.records if topic in {None, record.topic}]


@attrs.define
class MemoryWriter(SinkWriter):
    """A transactional writer into a `MemoryKafka`.

    `fail_commits` is how many of the next commits fail without having happened, each with `failure`.
    """

    exactly_once = True

    kafka: MemoryKafka
    fail_commits: int = 0
    failure: type[PipelineError] = SinkError
    counted: dict[str, int] = attrs.field(factory=dict, init=False)
    _open: list[MemoryRecord] = attrs.field(factory=list, init=False)

    @override
    def open(self) -> OffsetStore:
        return self.kafka.offsets

    @override
    def write(
        self,
        topic: str,
        key: bytes | None,
        values: Sequence[bytes | None],
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        self._open += [
            MemoryRecord(
                topic=topic,
                key=key,
                value=value,
                partition=partition,
                timestamp=timestamp,
                headers=tuple(headers),
                transaction=self.kafka.transactions,
            )
            for value in values
        ]

    @override
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        if self.fail_commits:
            self.fail_commits -= 1
            raise self.failure("this commit was told to fail")
        with self.kafka.lock:
            number = self.kafka.transactions = self.kafka.transactions + 1
            self.kafka.records += [attrs.evolve(record, transaction=number) for record in self._open]
            self.kafka.offsets.committed(offsets)
        for name, by in counted.items():
            self.counted[name] = self.counted.get(name, 0) + by
        self._open = []

    @override
    def abort(self) -> None:
        self._open = []

    @override
    def close(self) -> None:
        self._open = []
