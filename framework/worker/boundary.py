"""When a transaction ends."""

import attrs

from headrace.framework.config import Boundary

__all__ = ["BoundaryRule"]


@attrs.frozen(kw_only=True)
class BoundaryRule:
    """A boundary with its figures.

    `INTERVAL`: `interval_s` after its first record, or after `max_records`, whichever is first; `dry_s` after its first
    record if the source has nothing more right now: nothing is won by waiting then. `POLL`: after `max_poll_records`,
    or when the source has nothing right now, and after the interval if it blocks. `OBJECT`: when the object is
    finished, and never within it, so that it becomes visible as a whole.
    """

    kind: Boundary = Boundary.INTERVAL
    interval_s: float = 1.0
    dry_s: float = 0.05
    max_records: int = 100_000
    max_poll_records: int = 500

    def is_full(self, records: int) -> bool:
        """Whether a transaction of this many records is to end for their number."""
        match self.kind:
            case Boundary.INTERVAL:
                return records >= self.max_records
            case Boundary.POLL:
                return records >= self.max_poll_records
            case Boundary.OBJECT:
                return False

    def longest_s(self, *, dry: bool) -> float:
        """How long a transaction that may end anywhere is open; `dry`: the source has nothing more right now."""
        return min(self.interval_s, self.dry_s) if dry else self.interval_s

    def cuts_anywhere(self) -> bool:
        """Whether a transaction may end after any record."""
        return self.kind is not Boundary.OBJECT
