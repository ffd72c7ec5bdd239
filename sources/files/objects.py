"""A file as a listing shows it."""

import os
from typing import Self

import attrs

__all__ = ["FoundFile", "is_storable", "is_url"]


@attrs.frozen(kw_only=True)
class FoundFile:
    """What names a file, and what is known of it without opening it.

    `path` is an absolute path, or a URL; it is what the progress is stored under. `last_modified` is in milliseconds.
    `inode` is 0 and `etag` is empty where there are none.
    """

    path: str
    size: int
    last_modified: int
    inode: int = 0
    etag: str = ""

    @classmethod
    def from_stat(cls, path: str, status: os.stat_result) -> Self:
        """The local file of that path and status."""
        return cls(path=path, size=status.st_size, last_modified=status.st_mtime_ns // 1_000_000, inode=status.st_ino)


def is_url(path: str) -> bool:
    """Whether a path is for fsspec; `file://` is not."""
    return "://" in path and not path.startswith("file://")


def is_storable(path: str) -> bool:
    """Whether a path can be a name in the offsets."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
