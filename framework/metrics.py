"""What a task counts while it works."""

import attrs

__all__ = ["TaskMetrics"]


@attrs.define
class TaskMetrics:
    """Counters of one task, from its start; written by the task's thread, read by anybody.

    `records` and `bytes` are what is committed; `objects` were finished; `skipped` objects were left out on purpose;
    `retries` are attempts after a `RetriableError`. A source may count what it likes under `extra`.
    """

    records: int = 0
    bytes: int = 0
    objects: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    transactions: int = 0
    retries: int = 0
    extra: dict[str, int] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)

    def warn(self, word: str) -> None:
        """Say something that the run's summary repeats under `warnings`."""
        self.warnings.append(word)

    def count(self, name: str, by: int = 1) -> None:
        """Count something of the source's own."""
        self.extra[name] = self.extra.get(name, 0) + by
