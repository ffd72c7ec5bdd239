"""What newer Pythons have and 3.11, the oldest that we run on, has not."""

import os
import sys
from typing import TYPE_CHECKING

__all__ = ["override", "usable_cores"]

if TYPE_CHECKING:
    from typing_extensions import override
elif sys.version_info >= (3, 12):
    from typing import override
else:

    def override(method: object) -> object:
        """Mark a method that overrides one of a base class: read by type checkers, not at run time."""
        return method


def usable_cores() -> int:
    """How many cores this process may run on; 3.13 has it as `os.process_cpu_count`."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
