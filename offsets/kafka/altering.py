"""Changing a connector's entries from outside of a run: all of them or none, and no run can get in between."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from headrace.framework.errors import OffsetsError
from headrace.offsets.codec import encode_key, encode_value, key_spellings
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.producer import TransactionalProducer
from headrace.offsets.kafka.reading import read_view
from headrace.offsets.kafka.records import Generation
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.kafka.topic import ensure_offsets_topic
from headrace.offsets.key import OffsetManagerKey

__all__ = ["claimed", "fence_connect", "records_for_connect", "records_instead", "refuse_unstopped"]

Changes: TypeAlias = Iterable[tuple[OffsetManagerKey, Mapping[str, Any] | None]]
Record: TypeAlias = tuple[bytes, bytes | None]


@contextmanager
def claimed(settings: KafkaSettings, *, force: bool = False, unrun: bool = False) -> Iterator[Claim]:
    """A claim on a stopped connector, for the block that changes its offsets; it is stopped again after the block.

    Refused with `OffsetsError` unless the last run was stopped. With `force` a run that goes on is ended; with `unrun`
    a connector that has never run here is taken, too. The offsets topic is made if it is missing.
    """
    view = read_view(settings)
    refuse_unstopped(settings.connector, view.generation if view else Generation(), force=force, unrun=unrun)
    partitions = ensure_offsets_topic(settings)
    claim = Claim.take(settings, partitions=partitions, tasks=max(1, view.generation.tasks if view else 1))
    try:
        try:
            yield claim
        finally:
            # Also after an error: nothing runs, and nothing of what failed is in the topic.
            claim.stopped()
    finally:
        claim.close()


def refuse_unstopped(connector: str, generation: Generation, *, force: bool, unrun: bool = False) -> None:
    """Kafka Connect's rule, in its words: whose connector is not stopped, his offsets are not changed."""
    has_run = generation.generation > 0
    if force or generation.stopped or (unrun and not has_run):
        return
    what = "Connectors must be in the STOPPED state before their offsets can be modified"
    if has_run:
        raise OffsetsError(f"{what}: stop the run of {connector}, or use --force, which ends it")
    raise OffsetsError(
        f"{what}: {connector} has not been run, and so not been stopped, here; if it runs in Kafka Connect, stop it "
        "there; then use --force"
    )


def records_instead(known: Spellings, changes: Changes) -> Iterator[Record]:
    """The records that make `changes` what the topic says: each under one key, every other spelling of it removed."""
    for key, offset in changes:
        canonical = encode_key(known.connector, key.mapping)
        if offset is not None:
            yield canonical, encode_value(offset)
        for raw in known.of_key(key):
            if offset is None or raw != canonical:
                yield raw, None


def records_for_connect(known: Spellings, changes: Changes) -> Iterator[Record]:
    """The records that Kafka Connect finds in whatever order its connector has the names of a partition.

    An offset of None is not written, and not removed.
    """
    for key, offset in changes:
        if offset is None:
            continue
        written = list(key_spellings(known.connector, key))
        for raw in written:
            yield raw, encode_value(offset)
        for raw in known.of_key(key):
            if raw not in written:
                yield raw, None


def fence_connect(settings: KafkaSettings, group: str, tasks: int) -> Sequence[str]:
    """Fence the exactly-once source tasks that Kafka Connect's workers of `group` may still have; their ids.

    What they have open is aborted, and what they have committed is what anybody reads from now on.
    """
    ids = [f"{group}-{settings.connector}-{task}" for task in range(tasks)]
    _fence(settings, ids)
    return ids


def _fence(settings: KafkaSettings, ids: Iterable[str]) -> None:
    for name in ids:
        producer = TransactionalProducer(settings, name, transactional_id=name)
        try:
            producer.init()
        finally:
            producer.close()
