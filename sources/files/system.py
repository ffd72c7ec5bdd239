"""Where files lie: what the source asks of a file system, and the one of this machine."""

import contextlib
import errno
import glob
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import attrs

from headrace.framework.compat import override
from headrace.sources.files.globs import HIDDEN, matches
from headrace.sources.files.objects import FoundFile

__all__ = ["FileSystem", "LocalFiles", "LocalPath"]

ARCHIVING = ".headrace-archiving"


class FileSystem(ABC):
    """What is asked of a file system. Every method raises `OSError` as Python's own functions do."""

    @abstractmethod
    def find(self, pattern: str) -> Iterator[FoundFile]:
        """The files that a path or a glob means: of a directory the files in it, hidden ones left out.

        `FileNotFoundError` where the path does not exist, or the directory in which the glob begins. A directory
        below that which has gone has nothing in it; one that cannot be looked into is an error that has its name.
        """

    @abstractmethod
    def look_up(self, path: str) -> FoundFile:
        """The file of that very path."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """The bytes of a file, unbuffered where that is possible."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete a file."""

    @abstractmethod
    def move(self, path: str, folder: str) -> str:
        """Move a file into a folder, which is made; nothing there is overwritten. Where it is now."""


@attrs.frozen
class LocalPath:
    """A path of this machine as the user wrote it, made absolute."""

    text: str

    @classmethod
    def of(cls, given: str) -> "LocalPath":
        """The path; `file://` in front of it does not count."""
        return cls(os.path.abspath(given.removeprefix("file://")))  # noqa: PTH100 - no links are resolved

    @property
    def base(self) -> str:
        """The path itself, or of a glob the directory in which it begins."""
        if not glob.has_magic(self.text):
            return self.text
        return str(Path(*Path(self.text).parts[: -len(self.below)]))

    @property
    def below(self) -> Sequence[str]:
        """Of a glob what comes below `base`, part by part; nothing of a path."""
        parts = Path(self.text).parts
        first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        return parts[first:]


class LocalFiles(FileSystem):
    """The files that this machine sees."""

    @override
    def find(self, pattern: str) -> Iterator[FoundFile]:
        path = LocalPath.of(pattern)
        if not path.below:
            yield from _files_at(path.text)
            return
        os.scandir(path.base).close()
        for name in matches(path.base, path.below):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                yield from _files_at(name)

    @override
    def look_up(self, path: str) -> FoundFile:
        return FoundFile.from_stat(path, os.stat(path))  # noqa: PTH116 - paths are texts here

    @override
    def open(self, path: str) -> BinaryIO:
        return open(path, "rb", buffering=0)  # noqa: PTH123 - paths are texts here

    @override
    def remove(self, path: str) -> None:
        Path(path).unlink()

    @override
    def move(self, path: str, folder: str) -> str:
        target_folder = Path(LocalPath.of(folder).text)
        target_folder.mkdir(parents=True, exist_ok=True)
        target = _unused(target_folder / Path(path).name)
        try:
            # A link fails where there is a file of the name, which a rename would overwrite.
            os.link(path, target)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK}:
                raise
            unfinished = target.with_name(target.name + ARCHIVING)
            shutil.copy2(path, unfinished)
            unfinished.rename(target)
        Path(path).unlink()
        return str(target)


def _files_at(path: str) -> Iterator[FoundFile]:
    try:
        entries = os.scandir(path)
    except NotADirectoryError:
        yield FoundFile.from_stat(path, os.stat(path))  # noqa: PTH116 - as above
        return
    with entries:
        for entry in entries:
            if entry.name.startswith(HIDDEN):
                continue
            try:
                if entry.is_file():
                    yield FoundFile.from_stat(entry.path, entry.stat())
            except FileNotFoundError:
                continue  # it has gone since, or its link leads nowhere


def _unused(target: Path) -> Path:
    candidate, number = target, 0
    while candidate.exists():
        number += 1
        candidate = target.with_name(f"{target.name}.{number}")
    return candidate
