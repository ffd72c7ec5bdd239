"""What newer Pythons have and 3.11, the oldest that we run on, has not."""

import sys
from typing import TYPE_CHECKING

__all__ = ["override"]

if TYPE_CHECKING:
    from typing_extensions import override
elif sys.version_info >= (3, 12):
    from typing import override
else:

    def override(method: object) -> object:
        """Mark a method that overrides one of a base class: read by type checkers, not at run time."""
        return method
