"""Forgetting a connector's progress, in a way that no run of it can get in between."""

from headrace.framework.errors import OffsetsError
from headrace.offsets.kafka.claim import Claim
from headrace.offsets.kafka.reading import count_partitions, read_view
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["reset"]


def reset(settings: KafkaSettings, *, force: bool = False) -> int | None:
    """Remove every entry of the connector; how many keys there were, or None where there is no offsets topic.

    Refused with `OffsetsError` unless the last run was stopped; with `force` a run that goes on is ended. In either
    case a generation is claimed first, so that nothing that is still alive can write afterwards. The connector is
    stopped when this returns, and its generation record stays.
    """
    partitions, view = count_partitions(settings), read_view(settings)
    if partitions is None or view is None:
        return None
    if not force and not view.generation.stopped:
        raise OffsetsError(_refusal(settings.connector, has_run=view.generation.generation > 0))
    claim = Claim.take(settings, partitions=partitions, tasks=max(1, view.generation.tasks))
    try:
        count = claim.forget()
        claim.stopped()
    finally:
        claim.close()
    return count


def _refusal(connector: str, *, has_run: bool) -> str:
    what = "Connectors must be in the STOPPED state before their offsets can be modified"
    if has_run:
        return f"{what}: stop the run of {connector}, or use --force, which ends it"
    return (
        f"{what}: {connector} has not been run, and so not been stopped, here; if it runs in Kafka Connect, stop it "
        "there; then use --force"
    )
