"""What the commands log: to standard error, a line for each event."""

import copy
import logging
import sys
from typing import TextIO

from headrace.framework.compat import override

__all__ = ["set_up_logging"]

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _OneLine(logging.Formatter):
    """Leaves tracebacks out: the message says what is wrong, and --verbose is for the rest."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        bare = copy.copy(record)
        bare.exc_info = bare.exc_text = bare.stack_info = None
        return super().format(bare)


class _ToStandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever standard error is at the moment: a progress line puts something of its own there."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    @override
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def set_up_logging(*, verbose: bool) -> None:
    """Log to standard error: warnings, and with `verbose` what Headrace does and tracebacks as well.

    Called once per process, by the command line only; a program that uses the library sets up its own.
    """
    handler = _ToStandardError()
    handler.setFormatter(logging.Formatter(FORM) if verbose else _OneLine(FORM))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("headrace").setLevel(logging.INFO if verbose else logging.WARNING)
