"""A Kafka sink that dies before a certain call to Kafka: for tests that die at every step in turn."""

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import SinkError
from headrace.framework.sink import SinkWriter
from headrace.framework.worker.plan import TaskPlan
from headrace.offsets.store import Offsets, OffsetStore
from headrace.sinks.kafka import KafkaSink

if TYPE_CHECKING:
    import pytest

__all__ = ["Death", "DyingKafkaSink", "DyingProducer", "DyingWriter", "install_dying_sink"]

# Dropped at the very moment at which it tells the coordinator of a new partition, a producer of librdkafka ends the
# process (an assertion in rd_kafka_txn_handle_AddPartitionsToTxn). One that is closed is past that; the dead are not
# closed, so they are dropped a few deaths later.
LATELY: deque[Any] = deque(maxlen=8)

PLUGIN = "[headrace.sinks]\ndying = headrace.testing.dying_sink:DyingKafkaSink\n"


def install_dying_sink(folder: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    """Have `sink=dying` known in this process, as if a package had brought it, for the length of the test."""
    package = folder / "dying-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: dying\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(PLUGIN)
    monkeypatch.syspath_prepend(folder)


@attrs.define
class Death:
    """When a task dies: before its `step`-th call to Kafka. Dead, it does nothing any more, not even clean up."""

    step: int
    taken: int = 0
    died_before: str | None = None

    @property
    def has_come(self) -> bool:
        """Whether it has died."""
        return self.died_before is not None

    def come(self, call: str) -> None:
        """One more call is about to be made."""
        if self.died_before is None:
            self.taken += 1
            if self.taken == self.step:
                self.died_before = call
        if self.died_before is not None:
            raise SinkError(f"dead before {self.died_before}, as the test wants it")


class DyingKafkaSink(KafkaSink):
    """Kafka's sink, whose one task dies as the test says. What it leaves open stays open, as a `kill -9` leaves it."""

    death: ClassVar[Death] = Death(0)

    @classmethod
    def to_die_before(cls, step: int) -> Death:
        """Have the next run die before its `step`-th call to Kafka; the answer tells what became of it."""
        cls.death = Death(step)
        return cls.death

    @override
    def writer(self, plan: TaskPlan) -> SinkWriter:
        return DyingWriter(super().writer(plan), self.death)


@attrs.define
class DyingWriter(SinkWriter):
    """The writer of the protocol, on a producer that dies."""

    exactly_once: ClassVar[bool] = True

    writer: Any
    death: Death

    @override
    def open(self) -> OffsetStore:
        self.death.come("init")
        store: OffsetStore = self.writer.open()
        self.writer._producer = DyingProducer(self.writer._producer, self.death)  # noqa: SLF001 - where calls to Kafka go
        return store

    @override
    def write(self, topic: str, key: bytes | None, values: Sequence[bytes | None], **more: Any) -> None:
        self.writer.write(topic, key, values, **more)

    @override
    def commit(self, offsets: Offsets, counted: Mapping[str, int]) -> None:
        self.writer.commit(offsets, counted)

    @override
    def abort(self) -> None:
        if not self.death.has_come:
            self.writer.abort()

    @override
    def close(self) -> None:
        if not self.death.has_come:
            self.writer.close()


@attrs.define
class DyingProducer:
    """Passes on what a writer asks of its producer, until it dies."""

    living: Any
    death: Death
    is_sound: ClassVar[bool] = False
    """Nobody else is to have it, so it is closed where another would be kept."""

    def __attrs_post_init__(self) -> None:
        LATELY.append(self.living)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.living.is_open)

    def write(self, topic: str, key: bytes | None, values: Sequence[bytes | None], **more: Any) -> None:
        """Hand records to the client library."""
        self.death.come("write")
        self.living.write(topic, key, values, **more)

    def flush(self) -> None:
        """Wait until the broker has everything."""
        self.death.come("flush")
        self.living.flush()

    def commit(self) -> None:
        """Commit."""
        self.death.come("commit")
        self.living.commit()

    def abort(self) -> None:
        """Abort; the dead do not."""
        if not self.death.has_come:
            self.living.abort()

    def close(self) -> None:
        """Let go of the id; the dead do not."""
        if not self.death.has_come:
            self.living.close()
