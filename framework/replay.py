"""A source's way back to what stands on the dead-letter topic."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from headrace.framework.dead_letter import DeadLetter
from headrace.framework.record import RecordBatch

__all__ = ["Replays"]


class Replays(ABC):
    """Reads single pieces of a source again: for `headrace dlq replay`, on the driver.

    Made by a configured source and closed at the end; used by one thread.
    """

    @abstractmethod
    def read(self, letter: DeadLetter) -> Iterator[RecordBatch]:
        """The records of a letter as a run would send them now; it fetches no more of the source than it takes.

        What still is no record is a `DataError`; what is gone, or cannot be told apart in what has been repaired, is
        a `SourceError`. Nothing of the progress is read or written.
        """

    def close(self) -> None:
        """Close what is open."""
