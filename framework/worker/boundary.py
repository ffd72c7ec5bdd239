"""When a transaction ends."""

import attrs

from headrace.framework.config import Boundary

__all__ = ["BoundaryRule"]


@attrs.frozen(kw_only=True)
class BoundaryRule:
    """A boundary with its figures.

    `INTERVAL`: `interval_s` after its first record, or after `max_records`, whichever is first. `POLL`: after
    `max_poll_records`, or when the source has nothing right now, and after the interval if it blocks. `OBJECT`: when
    the object is finished, and never within it, so that it becomes visible as a whole.
    """

    kind: Boundary = Boundary.INTERVAL
    interval_s: float = 1.0
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

    def is_old(self, age_s: float) -> bool:
        """Whether a transaction of this age is to end for its age."""
        return self.kind is not Boundary.OBJECT and age_s >= self.interval_s

    def cuts_anywhere(self) -> bool:
        """Whether a transaction may end after any record."""
        return self.kind is not Boundary.OBJECT
