"""How much of an object may become one record, and how much may come out of compressed bytes."""

from typing import Any

from headrace.framework.options import option
from headrace.framework.parsers import LONG_MAX, integer

__all__ = ["LIMITS", "max_decompression_ratio", "max_record_bytes"]

_RECORD, _RATIO_KEY = "max.record.bytes", "max.decompression.ratio"

LIMITS = (_RECORD, _RATIO_KEY)
"""The keys of the limits, which every format has."""

_RECORD_BYTES = 64 * 1024 * 1024
_RATIO = 1000


def max_record_bytes() -> Any:
    """The option `max.record.bytes`, for a class of options."""
    return option(
        _RECORD,
        integer(at_least=0, at_most=LONG_MAX),
        default=_RECORD_BYTES,
        doc="The most bytes that one record may have in its object; more are an error, and are not held in memory. "
        "0 is without limit.",
    )


def max_decompression_ratio() -> Any:
    """The option `max.decompression.ratio`, for a class of options."""
    return option(
        _RATIO_KEY,
        integer(at_least=0),
        default=_RATIO,
        doc="How many times as large as its compressed bytes an object's content may be, where it is more than 64 MB; "
        "0 is without limit.",
    )
