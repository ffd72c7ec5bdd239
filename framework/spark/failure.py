"""Why Spark failed a job, in one line that can be acted upon."""

import re
import sys
from collections.abc import Iterator

from py4j.protocol import Py4JError

from headrace.framework.errors import SetupError

__all__ = ["lost_task", "reason_of", "unusable_python"]

# The last line of a Python worker's traceback stands in front of the first line of Java's.
PYTHON_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*): (?P<said>.*)$")
LOST_TASK = re.compile(r"\bTask (?P<number>\d+) in stage [\d.]+ failed \d+ times")
OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH|No module named '(headrace|pyspark|attr|attrs|confluent_kafka|cloudpickle)\b"
    r"|Cannot run program \"[^\"]*python[^\"]*\""
)


def reason_of(failure: BaseException) -> str:
    """What failed the job: what a Python worker raised, if it was that, else the first line of what Spark says."""
    text = _text(failure)
    return next(reversed([*text.splitlines()[:1], *_raised(text)]), type(failure).__name__)


def lost_task(failure: BaseException) -> int | None:
    """The number of the Spark task whose attempts have all failed, if it was that what failed the job."""
    named = LOST_TASK.search(_text(failure))
    return None if named is None else int(named["number"])


def unusable_python(failure: BaseException, python: str) -> SetupError | None:
    """The error to end with where the workers' Python is not one that can run source tasks; None if it is not that.

    `python` is the command by which the session starts its workers.
    """
    reason = reason_of(failure)
    if OTHER_PYTHON.search(reason) is None:
        return None
    here = ".".join(map(str, sys.version_info[:2]))
    return SetupError(
        f"the session's Python workers run {python!r}, which is not the Python {here} with headrace that the driver "
        f"has ({reason}): set the environment variable PYSPARK_PYTHON={sys.executable} before the session is made"
    )


def _text(failure: BaseException) -> str:
    is_java = isinstance(failure, Py4JError) and hasattr(failure, "java_exception")
    return str(failure.java_exception if is_java else failure).strip()  # type: ignore[attr-defined]


def _raised(text: str) -> Iterator[str]:
    """The last lines of the Python tracebacks in it."""
    _, started, rest = text.partition("Traceback (most recent call last):")
    for line in rest.splitlines() if started else ():
        if line.startswith("\tat "):
            return
        if PYTHON_ERROR.match(line):
            yield line.strip()
