"""What one may choose from in the configuration of every source."""

import enum

__all__ = ["Boundary", "DataLoss", "Support"]


class Support(enum.StrEnum):
    """Whether a run delivers exactly once."""

    REQUIRED = "required"
    REQUESTED = "requested"
    DISABLED = "disabled"


class Boundary(enum.StrEnum):
    """Where a transaction may end."""

    INTERVAL = "interval"
    POLL = "poll"
    OBJECT = "object"


class DataLoss(enum.StrEnum):
    """What becomes of a run whose source has lost something unread: it fails, or goes on and says so."""

    FAIL = "fail"
    CONTINUE = "continue"
