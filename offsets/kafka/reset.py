"""Forgetting a connector's progress, in a way that no run of it can get in between."""

from headrace.offsets.kafka.altering import claimed
from headrace.offsets.kafka.reading import count_partitions
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["reset"]


def reset(settings: KafkaSettings, *, force: bool = False) -> int | None:
    """Remove every entry of the connector; how many keys there were, or None where there is no offsets topic.

    Refused with `OffsetsError` unless the last run was stopped; with `force` a run that goes on is ended. In either
    case a generation is claimed first, so that nothing that is still alive can write afterwards. The connector is
    stopped when this returns, and its generation record stays.
    """
    if count_partitions(settings) is None:
        return None
    with claimed(settings, force=force) as claim:
        return claim.forget()
