"""What a task counts while it works."""

import attrs

__all__ = ["TaskMetrics"]


@attrs.define
class TaskMetrics:
    """Counters of one task, from its start; written by the task's thread, read by anybody.

    `records` and `bytes` are what is committed; `objects` were finished; `left_out` says of each object that was left
    out on purpose which one and why; `retries` are attempts after a `RetriableError`. A source may count what it likes
    under `extra`.
    """

    records: int = 0
    bytes: int = 0
    objects: int = 0
    dead_lettered: int = 0
    transactions: int = 0
    retries: int = 0
    extra: dict[str, int] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)
    left_out: dict[str, None] = attrs.field(factory=dict)

    @property
    def skipped(self) -> int:
        """How many objects were left out."""
        return len(self.left_out)

    def leave_out(self, word: str) -> None:
        """Say that an object is left out: which one, and why.

        Counted once however often it is said, for what failed is read again; the run's summary repeats it.
        """
        if word not in self.left_out:
            self.left_out[word] = None
            self.warn(word)

    def warn(self, word: str) -> None:
        """Say something that the run's summary repeats under `warnings`."""
        self.warnings.append(word)

    def count(self, name: str, by: int = 1) -> None:
        """Count something of the source's own."""
        self.extra[name] = self.extra.get(name, 0) + by
