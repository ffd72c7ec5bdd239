"""What a driver and its tasks tell each other by way of the offsets topic, as the driver reads and ships it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import attrs

from headrace.framework.worker.plan import OffsetsSnapshot
from headrace.offsets.kafka.records import BegunWord, EndedWord, begun_key, counter_key, ended_key, generation_key
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim

__all__ = ["Hearing"]


@attrs.frozen
class Hearing:
    """The words of a run's tasks, as far as the topic has been read, and what a task is told of the topic."""

    connector: str
    claim: "Claim"

    def has_begun(self, task_id: int, batch: int) -> bool:
        """Whether the task has said that its part in this micro-batch has begun."""
        word = BegunWord.decode(self.claim.view.beside.get(begun_key(self.connector, task_id)))
        return self._is_of(word, batch)

    def ended(self, task_id: int, batch: int) -> EndedWord | None:
        """What the task has said when its part in this micro-batch was over; None if it has not."""
        word = EndedWord.decode(self.claim.view.beside.get(ended_key(self.connector, task_id)))
        return word if self._is_of(word, batch) else None

    def snapshot(self, task_id: int, keys: Collection[OffsetManagerKey] | None) -> OffsetsSnapshot:
        """What a task needs to know of the topic: of these source partitions, or of all."""
        view = self.claim.view
        if keys is None:
            entries = dict(view.entries)
        else:
            wanted = (raw for key in keys for raw in view.raw_keys(key))
            entries = {raw: view.entries[raw] for raw in wanted if raw in view.entries}
        wanted_beside = (generation_key(self.connector), counter_key(self.connector, task_id))
        beside = {raw: view.beside[raw] for raw in wanted_beside if raw in view.beside}
        return OffsetsSnapshot(entries={**beside, **entries}, positions=dict(self.claim.log.positions))

    def _is_of(self, word: BegunWord | EndedWord, batch: int) -> bool:
        mine = self.claim.generation
        return (word.generation, word.owner, word.batch) == (mine.generation, mine.owner, batch)
