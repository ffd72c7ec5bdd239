"""What the commands log, and where."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from headrace.framework.cli.logs import set_up_logging
set_up_logging(verbose=sys.argv[1] == "verbose")
log = logging.getLogger("headrace.anything")
log.info("an info")
logging.getLogger("botocore").info("chatter")
try:
    raise ValueError("the cause")
except ValueError:
    log.exception("it failed")
"""


@pytest.fixture
def logged():
    def logged(how):
        return subprocess.run([sys.executable, "-P", "-c", PROGRAM, how], capture_output=True, text=True, check=True)

    return logged


def test_warnings_are_lines_on_standard_error(logged):
    """Warnings and errors are one line each, without a traceback, and nothing is on standard output."""
    done = logged("quiet")
    assert done.stdout == ""
    assert [line.partition(" ERROR ")[2] for line in done.stderr.splitlines()] == ["headrace.anything: it failed"]


def test_verbose_says_more(logged):
    """With --verbose what Headrace does is said as well, and tracebacks are there; others' chatter is not."""
    said = logged("verbose").stderr
    assert "INFO headrace.anything: an info" in said
    assert "ValueError: the cause" in said
    assert "chatter" not in said
