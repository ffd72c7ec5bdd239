"""What a source supplies so that the conformance suite can run on it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from headrace.offsets.entry import RECORD_COUNT

__all__ = ["SourceHarness"]


class SourceHarness(ABC):
    """One place that a source can read, empty at first, for one test.

    A place holds pieces: objects, files, subjects; whatever has its own progress. A piece holds records, in an order.
    The suite gives records as compact JSON documents; a source whose records are something else wraps them.
    """

    bad_record: bytes = b"{no record"
    """What cannot become a record of this source."""

    @abstractmethod
    def prepare(self, name: str) -> Mapping[str, str]:
        """Make the place, empty, under a name that no other test has: the configuration that points there.

        Called once, first. What is the same for every source (name, topics, Kafka) the suite adds.
        """

    @abstractmethod
    def add(self, piece: str, records: Sequence[bytes]) -> None:
        """Put one more piece there; no records make an empty one."""

    def change(self, piece: str, records: Sequence[bytes]) -> None:
        """Overwrite a piece with others; by default as `add` does it."""
        self.add(piece, records)

    @abstractmethod
    def partition(self, piece: str) -> Mapping[str, Any]:
        """The source partition under which the progress of a piece is stored."""

    def records_done(self, offset: Mapping[str, Any]) -> int:
        """How many records of a piece a stored offset says are done."""
        count: int = offset[RECORD_COUNT]
        return count

    def expected(self, records: Sequence[bytes]) -> list[bytes]:
        """The values that stand on the topic for these records; by default the records themselves."""
        return list(records)

    def overwrite_policy(self, policy: str) -> Mapping[str, str]:
        """The configuration for `reread`, `ignore` or `fail`."""
        raise NotImplementedError(f"{type(self).__name__} knows no overwrite policy {policy}")

    def stumble(self, times: int) -> None:
        """Have so many of the next reads fail in a way that another attempt mends, some of them within a piece."""
        raise NotImplementedError(f"{type(self).__name__} cannot stumble {times} times")

    def holding(self, *, after: int) -> AbstractContextManager[None]:
        """While the block lasts, the source gives out the first `after` pieces and no more; it does not end either."""
        raise NotImplementedError(f"{type(self).__name__} cannot hold after {after} pieces")

    def close(self) -> None:
        """Take the place away."""
