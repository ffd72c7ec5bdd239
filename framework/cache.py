"""Where Headrace keeps what it fetches or makes once per user."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.framework.errors import CacheError, DiskFullError

__all__ = ["cache_folder", "locked"]


def cache_folder() -> Path:
    """The user's cache folder for Headrace, made if it is missing.

    `HEADRACE_CACHE` names another one; else the XDG rule holds (`$XDG_CACHE_HOME`, or `~/.cache`). Nothing in it
    is needed: whatever is deleted there is fetched or made again.

    Raises `CacheError` where it cannot be made, `DiskFullError` where there is no room for it.
    """
    named = os.environ.get("HEADRACE_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else base / "headrace"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        kind = DiskFullError if error.errno == errno.ENOSPC else CacheError
        raise kind(f"{folder} cannot be made ({error.strerror}): name another folder in HEADRACE_CACHE") from error
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` against other processes of this machine; it is left behind, empty."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
