"""What a glob means on this machine, where no folder that cannot be looked into is kept quiet about."""

import errno
import fnmatch
import glob
import os
from collections.abc import Iterator, Sequence

__all__ = ["HIDDEN", "matches"]

HIDDEN = "."
ANY_DEPTH = "**"
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def matches(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """The paths that the parts of a glob mean below a folder; some may come twice, or not be there.

    As with Python's own `glob`, names that begin with a dot are for patterns that do, and links to folders are folders.
    A folder that goes before it is looked into has nothing in it; any other `OSError` is raised.
    """
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == ANY_DEPTH:
        if rest or os.path.isdir(folder):  # noqa: PTH112 - paths are texts here
            yield from matches(folder, rest)
        for entry in _entries(folder, "*"):
            if _is_folder(entry):
                yield from matches(entry.path, parts)
            elif not rest:
                yield entry.path
    elif glob.has_magic(part):
        for entry in _entries(folder, part):
            if not rest or _is_folder(entry):
                yield from matches(entry.path, rest)
    else:
        yield from matches(os.path.join(folder, part), rest)  # noqa: PTH118 - paths are texts here


def _entries(folder: str, pattern: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            entries = [entry for entry in found if fnmatch.fnmatch(entry.name, pattern)]
    except OSError as error:
        if error.errno in GONE:
            return []
        raise
    return [entry for entry in entries if pattern.startswith(HIDDEN) or not entry.name.startswith(HIDDEN)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in GONE:
            return False
        raise
