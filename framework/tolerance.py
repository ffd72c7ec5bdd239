"""Whether a bad record fails its task: what the worker, the sources and the formats ask alike."""

import enum
from typing import Any

from headrace.framework.options import option
from headrace.framework.parsers import member

__all__ = ["TOLERANCE", "Tolerance", "errors_tolerance"]

TOLERANCE = "errors.tolerance"
"""The key, which every format has."""


class Tolerance(enum.StrEnum):
    """What becomes of a bad record: it fails its task, or is passed over."""

    NONE = "none"
    ALL = "all"


def errors_tolerance() -> Any:
    """The option `errors.tolerance`, for a class of options."""
    return option(
        TOLERANCE,
        member(Tolerance),
        default=Tolerance.NONE,
        doc="What becomes of a bad record: with `none` it fails its task; with `all` it is counted, and goes to the "
        "dead-letter topic if there is one.",
    )
