"""How a run takes over a connector, so that no older one can add anything after it."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import repeat
from types import MappingProxyType
from typing import Self

import attrs
from confluent_kafka import Message

from headrace.framework.errors import FencedError, MalformedOffsetError, RetriableError, TakenOverError
from headrace.offsets.kafka.identity import TopicIdentity
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.records import (
    Control,
    EnumeratorState,
    Generation,
    control_key,
    enumerator_key,
    generation_key,
    rollup_key,
    turn_key,
)
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets

__all__ = ["Claim"]

FENCED_AT_ONCE = 16
TELL_WITHIN_S = 2.0
END_WITHIN_S = 4.0
EMPTY: Mapping[OffsetManagerKey, str] = MappingProxyType({})


@attrs.define
class Claim:
    """A run's hold on its connector: one per run, in the driver, and renewed for every re-assignment of splits.

    The order of `take` is what makes it safe: the record of the claim is on the topic before anybody is fenced, so a
    producer that inits after the fencing reads it and stops; and it names every id that may be alive, so a crash at
    any point leaves enough for the next claim to fence them all.
    """

    settings: KafkaSettings
    generation: Generation
    view: KafkaOffsetView
    log: OffsetsLog
    _driver: TransactionalProducer
    _seen: dict[str, Generation] = attrs.field(factory=dict, init=False)

    @classmethod
    def take(cls, settings: KafkaSettings, *, partitions: int, tasks: int) -> Self:
        """Claim the connector for `tasks` source tasks; the view is the progress as it stands after the fencing.

        Raises `TakenOverError` if a rival's claim came later than ours.
        """
        driver = TransactionalProducer(settings, "driver")
        view = KafkaOffsetView(settings.connector)
        log = OffsetsLog(settings, view.take, dict.fromkeys(range(partitions), 0), TopicIdentity(settings))
        claim = cls(settings, Generation(), view, log, driver)
        log.take = claim._take_record
        try:
            claim._take_over(tasks)
        except BaseException:
            claim.close()
            raise
        return claim

    def _take_over(self, tasks: int) -> None:
        self._driver.init()
        self.log.read_to_high_watermark()
        before = self.view.generation
        # A driver with another prefix is not fenced by our own init, and could still write that nothing runs any more.
        self._fence_drivers(before.prefixes)
        self.generation = attrs.evolve(
            before,
            generation=before.generation + 1,
            owner=str(uuid.uuid4()),
            tasks=max(before.tasks, tasks),
            stopped=False,
            prefixes=list(dict.fromkeys([self.settings.id_prefix, *before.prefixes])),
        )
        self._write_generation(self.generation)
        self._fence_all_others(before)
        self.generation = attrs.evolve(self.generation, tasks=tasks, prefixes=[self.settings.id_prefix])
        self._write_generation(self.generation)
        self.log.read_to_high_watermark()

    def renew(self) -> None:
        """Take a further generation for this same run: between micro-batches, before splits go to other tasks.

        Then every attempt of an earlier micro-batch is fenced, or finds the newer generation and stops, and the view
        has all that they have committed; it is read on, not anew. Plans have to be made afterwards. Raises
        `TakenOverError` if another run has come.
        """
        before = self.generation
        wanted = attrs.evolve(before, generation=before.generation + 1)
        self._write_generation(wanted)
        self.generation = wanted
        self._fence_all_others(before)

    def _fence_all_others(self, before: Generation) -> None:
        """Once the record is written: end whoever may still write, and see that the record is still ours."""
        self._fence_tasks(self.generation)
        self.log.read_to_high_watermark()
        self.refuse_taken_over()
        self._fence_late_rivals(before)

    def refuse_taken_over(self) -> None:
        """Raise `TakenOverError` if the topic, as read so far, belongs to another run."""
        found = self.view.generation
        if found.owner != self.generation.owner:
            raise TakenOverError(
                f"connector {self.settings.connector} was taken over: generation {found.generation} of another run "
                f"is on the topic, this run has {self.generation.generation}; this one stops"
            )

    def follow(self) -> None:
        """Take in what the tasks have committed, and stop if a newer run has come: at every tick of the driver."""
        self.log.read_what_there_is()
        self.refuse_taken_over()

    def tell(self, control: Control) -> None:
        """Put a word to the tasks on the topic. A hint: it is given up soon where the broker is away."""
        named = attrs.evolve(control, generation=self.generation.generation, owner=self.generation.owner)
        with self._hurried(TELL_WITHIN_S):
            self._write(control_key(self.settings.connector), named.encode())

    def remember(self, state: EnumeratorState) -> None:
        """Store what the next run's enumerator is to be given: between micro-batches."""
        self._write(enumerator_key(self.settings.connector), state.encode())

    def forget(self) -> int:
        """Remove every entry of the connector, under every key that it has, and its roll-up, in one transaction.

        How many source partitions and keys that were. What the enumerator remembers goes with them; the generation
        and the counters stay.
        """
        keys, rolled_up = list(self.view.entries), len(self.view.rollup)
        remembered = {enumerator_key(self.settings.connector)} & self.view.beside.keys()
        shards = [rollup_key(self.settings.connector, shard) for shard in self.view.rollup.shards]
        self._commit((key, None) for key in (*keys, *remembered, *shards))
        return len(keys) + rolled_up

    def roll_up(
        self,
        finished: Mapping[OffsetManagerKey, str] = EMPTY,
        *,
        renewed: Collection[OffsetManagerKey] = (),
        keep: Callable[[int], bool] | None = None,
    ) -> None:
        """Put marks in the roll-up in the place of the entries of `finished`, by their versions, in one transaction.

        An entry stays as it is where the mark of its name is taken, unless `renewed` says that it is its own, of an
        older version. What is rolled up already leaves it where `keep` says no to the mark of its name. Between batches
        only, and only for what no task holds.
        """
        fits = self.view.rollup.fitting(finished, renewed=renewed)
        shards = self.view.rollup.changed(fits.values(), keep=keep)
        known = self.view.entries
        records = [
            *self.shard_records(shards),
            *((raw, None) for key in fits for raw in self.view.raw_keys(key) if raw in known),
        ]
        self._commit(records)
        for key, value in records:
            self.view.take_raw(key, value)

    def store(self, offsets: Offsets) -> None:
        """Write these entries, and forget those that are None, in one transaction: between batches only."""
        known = self.view.entries
        records = [(raw, value) for raw, value in self.view.records_for(offsets) if value is not None or raw in known]
        self._commit(records)
        for key, value in records:
            self.view.take_raw(key, value)

    def turn_segments(self) -> None:
        """Give every partition a record, so that the broker closes segments whose time is over and cleans them."""
        numbers = range(len(self.log.positions))
        self._commit([(turn_key(self.settings.connector, number), b"{}") for number in numbers], partitions=numbers)

    def hurry(self) -> None:
        """From now on wait for the broker as briefly as a run may that is to stop."""
        self._driver.patience = self._driver.patience.at_most(END_WITHIN_S)
        self.log.patience = self.log.patience.at_most(END_WITHIN_S)

    def shard_records(self, shards: Mapping[int, bytes | None]) -> Iterator[tuple[bytes, bytes | None]]:
        """The records of the roll-up's shards; None removes one."""
        for shard, value in shards.items():
            yield rollup_key(self.settings.connector, shard), value

    def put(self, records: Iterable[tuple[bytes, bytes | None]], *, topic: str | None = None) -> int:
        """Write raw keys and values in one transaction, to the offsets topic or to another one; how many there were."""
        wanted = list(records)
        self._commit(wanted, topic)
        return len(wanted)

    def stopped(self) -> None:
        """Write down that nothing of this connector runs any more: the end of a clean stop."""
        self._write_generation(attrs.evolve(self.generation, stopped=True))

    def close(self) -> None:
        """Let go of Kafka; the claim stays on the topic."""
        self._driver.close()
        self.log.close()

    def _write_generation(self, named: Generation) -> None:
        self._write(generation_key(self.settings.connector), named.encode())

    def _write(self, key: bytes, value: bytes) -> None:
        self._commit([(key, value)])

    def _commit(
        self,
        records: Iterable[tuple[bytes, bytes | None]],
        topic: str | None = None,
        *,
        partitions: Iterable[int] | None = None,
    ) -> None:
        """Write them in one transaction, each to the partition of its key, or to the one that is named for it."""
        named = repeat(None) if partitions is None else partitions
        wanted = [(key, value, partition) for (key, value), partition in zip(records, named, strict=False)]
        try:
            try:
                self._commit_once(wanted, topic)
            except RetriableError:
                # The broker forgets a producer that was idle for days, and a driver has little to write.
                self._begin_anew()
                self._commit_once(wanted, topic)
        except FencedError as error:
            raise TakenOverError(
                f"connector {self.settings.connector} was taken over by another driver: {error}; this one stops"
            ) from error

    def _commit_once(self, records: Iterable[tuple[bytes, bytes | None, int | None]], topic: str | None) -> None:
        try:
            for key, value, partition in records:
                self._driver.write(topic or self.settings.offsets_topic, key, [value], partition=partition)
            if self._driver.is_open:
                self._driver.commit()
        except BaseException:
            # All or nothing: what comes next must not commit the half of it.
            self._driver.abort()
            raise

    def _begin_anew(self) -> None:
        """A new producer for the driver; it looks whose turn it is before it writes, as every attempt does."""
        patience = self._driver.patience
        self._driver.close()
        self._driver = TransactionalProducer(self.settings, "driver")
        self._driver.patience = patience
        self._driver.init()
        self.log.read_to_high_watermark(within_s=patience.longest_s)
        self.refuse_taken_over()

    @contextmanager
    def _hurried(self, within_s: float) -> Iterator[None]:
        """Have the driver's producer wait no longer than this for the broker, each time that it waits."""
        usual = self._driver.patience
        self._driver.patience = usual.at_most(within_s)
        try:
            yield
        finally:
            self._driver.patience = usual

    def _take_record(self, message: Message) -> None:
        """Take in a record, and remember every run that has claimed the connector since we look."""
        self.view.take(message)
        if message.key() == generation_key(self.settings.connector):
            # One that cannot be read is an error only if nothing has taken its place by the end.
            with suppress(MalformedOffsetError):
                found = self.view.generation
                self._seen[found.owner] = found

    def _fence_drivers(self, prefixes: Iterable[str]) -> None:
        for prefix in prefixes:
            if prefix != self.settings.id_prefix:
                _take_and_drop(attrs.evolve(self.settings, id_prefix=prefix), "driver")

    def _fence_tasks(self, named: Generation) -> None:
        """Fence every task id that `named` names, a group at a time: 100 take less than a second.

        Whoever is himself taken over meanwhile ends at once and leaves the newer run's tasks alone.
        """
        ids = [(prefix, task_id) for prefix in named.prefixes for task_id in range(named.tasks)]
        for first in range(0, len(ids), FENCED_AT_ONCE):
            _fence(self.settings, ids[first : first + FENCED_AT_ONCE])
            self.log.read_what_there_is()
            if self.generation.owner in self._seen:
                self.refuse_taken_over()

    def _fence_late_rivals(self, before: Generation) -> None:
        """Fence runs whose claims came between our look and our own claim: their prefix may be one of their own."""
        for rival in [*self._seen.values()]:
            if rival.owner not in {before.owner, self.generation.owner} and rival.generation > before.generation:
                self._fence_drivers(rival.prefixes)
                self._fence_tasks(rival)


def _fence(settings: KafkaSettings, ids: Sequence[tuple[str, int]]) -> None:
    """Fence these ids, given by prefix and task, all at once."""
    with ThreadPoolExecutor(max(1, len(ids)), "headrace-fence") as pool:
        for _ in pool.map(lambda one: _take_and_drop(attrs.evolve(settings, id_prefix=one[0]), one[1]), ids):
            pass


def _take_and_drop(settings: KafkaSettings, holder: int | str) -> None:
    producer = TransactionalProducer(settings, holder)
    try:
        producer.init()
    finally:
        producer.close()
