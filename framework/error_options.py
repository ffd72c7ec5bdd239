"""The keys about what fails: as in Kafka Connect, for every source."""

from collections.abc import Iterable, Mapping

import attrs

from headrace.framework.compat import override
from headrace.framework.options import Options, derived, option
from headrace.framework.parsers import boolean, integer, milliseconds, topic_name
from headrace.framework.tolerance import Tolerance, errors_tolerance

__all__ = ["ErrorOptions"]

_FOR_DEAD_LETTERS = ("errors.deadletterqueue.topic.name", "errors.log.enable")


@attrs.frozen(kw_only=True)
class ErrorOptions(Options):
    """What becomes of bad records, and how long something is tried again."""

    errors_tolerance: Tolerance = errors_tolerance()
    dead_letter_topic: str | None = option(
        "errors.deadletterqueue.topic.name",
        topic_name(),
        default=None,
        doc="The topic of the records that are passed over, created if it is missing; without one they are counted "
        "and dropped.",
    )
    dead_letter_replication_factor: int | None = option(
        "errors.deadletterqueue.topic.replication.factor",
        integer(at_least=1, at_most=32767),
        default=derived(lambda _: None, "3, or the number of brokers if fewer"),
        doc="Its replicas, where it is created.",
    )
    dead_letter_context: bool = option(
        "errors.deadletterqueue.context.headers.enable",
        boolean(),
        default=True,
        doc="Whether dead letters have Kafka Connect's headers, whose names begin with `__connect.errors.`. Kafka "
        "Connect's own default is false.",
    )
    errors_retry_timeout_ms: int = option(
        "errors.retry.timeout",
        milliseconds(at_least=-1),
        default=0,
        doc="How long a task may try again what fails, without getting on, before that fails the run; with 0 and -1 "
        "what the source can try again is tried for ever.",
    )
    errors_retry_delay_max_ms: int = option(
        "errors.retry.delay.max.ms",
        milliseconds(at_least=1),
        default=60_000,
        doc="The longest wait between two tries; a task never waits for more than 5000.",
    )
    errors_log_enable: bool = option(
        "errors.log.enable",
        boolean(),
        default=False,
        doc="Whether the records that are passed over are in the log: at most 10 in 10 seconds, with the number of "
        "the others.",
    )
    errors_log_messages: bool = option(
        "errors.log.include.messages",
        boolean(),
        default=False,
        doc="Whether the beginning of their bytes is in the log, too.",
    )

    @classmethod
    @override
    def notes(cls, props: Mapping[str, str]) -> Iterable[str]:
        yield from super().notes(props)
        if props.get("errors.tolerance", "none").strip().lower() == "none":
            for key in _FOR_DEAD_LETTERS:
                if props.get(key, "").strip():
                    yield f"{key} has no effect: with errors.tolerance=none a bad record fails its task"

    @property
    def is_tolerant(self) -> bool:
        """Whether a bad record is passed over."""
        return self.errors_tolerance is Tolerance.ALL
