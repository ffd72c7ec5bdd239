"""How a run takes over a connector, so that no older one can add anything after it."""

import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import attrs

from headrace.framework.errors import FencedError, RetriableError, TakenOverError
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.records import Control, Generation, control_key, generation_key
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView

__all__ = ["Claim"]

FENCED_AT_ONCE = 16


@attrs.define
class Claim:
    """A run's hold on its connector; in the driver, one per run and one per re-assignment of splits.

    The order of `take` is what makes it safe: the record of the claim is on the topic before anybody is fenced, so a
    producer that inits after the fencing reads it and stops; and it names every id that may be alive, so a crash at
    any point leaves enough for the next claim to fence them all.
    """

    settings: KafkaSettings
    generation: Generation
    view: KafkaOffsetView
    log: OffsetsLog
    _driver: TransactionalProducer

    @classmethod
    def take(cls, settings: KafkaSettings, *, partitions: int, tasks: int) -> Self:
        """Claim the connector for `tasks` source tasks; the view is the progress as it stands after the fencing.

        Raises `TakenOverError` if a rival's claim came later than ours.
        """
        driver = TransactionalProducer(settings, "driver")
        view = KafkaOffsetView(settings.connector)
        log = OffsetsLog(settings, view.take, dict.fromkeys(range(partitions), 0))
        try:
            driver.init()
            log.read_to_high_watermark()
            before = view.generation
            ours = Generation(generation=before.generation + 1, owner=str(uuid.uuid4()), tasks=max(before.tasks, tasks))
            claim = cls(settings, ours, view, log, driver)
            claim._write(generation_key(settings.connector), ours.encode())
            _fence(settings, ours.tasks)
            log.read_to_high_watermark()
            claim.refuse_taken_over()
            claim.generation = attrs.evolve(ours, tasks=tasks)
            claim._write(generation_key(settings.connector), claim.generation.encode())
            log.read_to_high_watermark()
        except BaseException:
            driver.close()
            log.close()
            raise
        return claim

    def refuse_taken_over(self) -> None:
        """Raise `TakenOverError` if the topic, as read so far, belongs to another run."""
        found = self.view.generation
        if not found.is_same_run(self.generation):
            raise TakenOverError(
                f"connector {self.settings.connector} was taken over: generation {found.generation} of another run "
                f"is on the topic, this run has {self.generation.generation}; this one stops"
            )

    def follow(self) -> None:
        """Take in what the tasks have committed, and stop if a newer run has come: at every tick of the driver."""
        self.log.read_what_there_is()
        self.refuse_taken_over()

    def tell(self, control: Control) -> None:
        """Put a word to the tasks on the topic."""
        named = attrs.evolve(control, generation=self.generation.generation, owner=self.generation.owner)
        self._write(control_key(self.settings.connector), named.encode())

    def forget(self) -> int:
        """Remove every entry of the connector, under every key that it has, in one transaction; how many keys.

        The generation and the counters stay.
        """
        keys = list(self.view.entries)
        self._commit((key, None) for key in keys)
        return len(keys)

    def stopped(self) -> None:
        """Write down that nothing of this connector runs any more: the end of a clean stop."""
        self._write(generation_key(self.settings.connector), attrs.evolve(self.generation, stopped=True).encode())

    def close(self) -> None:
        """Let go of Kafka; the claim stays on the topic."""
        self._driver.close()
        self.log.close()

    def _write(self, key: bytes, value: bytes) -> None:
        self._commit([(key, value)])

    def _commit(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        wanted = list(records)
        try:
            try:
                self._commit_once(wanted)
            except RetriableError:
                # The broker forgets a producer that was idle for days, and a driver has little to write.
                self._renew()
                self._commit_once(wanted)
        except FencedError as error:
            raise TakenOverError(
                f"connector {self.settings.connector} was taken over by another driver: {error}; this one stops"
            ) from error

    def _commit_once(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in records:
            self._driver.write(self.settings.offsets_topic, key, [value])
        if self._driver.is_open:
            self._driver.commit()

    def _renew(self) -> None:
        """A new producer for the driver; it looks whose turn it is before it writes, as every attempt does."""
        self._driver.close()
        self._driver = TransactionalProducer(self.settings, "driver")
        self._driver.init()
        self.log.read_to_high_watermark()
        self.refuse_taken_over()


def _fence(settings: KafkaSettings, tasks: int) -> None:
    """Fence every task id, several at a time: 100 take less than a second."""

    def fence(task_id: int) -> None:
        producer = TransactionalProducer(settings, task_id)
        try:
            producer.init()
        finally:
            producer.close()

    with ThreadPoolExecutor(min(FENCED_AT_ONCE, max(1, tasks)), "headrace-fence") as pool:
        for _ in pool.map(fence, range(tasks)):
            pass
