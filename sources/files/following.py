"""What became of a file that was followed: it grew, was renamed, was copied and truncated, or is gone."""

import os
from collections.abc import Callable, Iterable

import attrs

from headrace.framework.errors import Where
from headrace.framework.stage import Stage
from headrace.sources.files.entry import HEAD, HEAD_BYTES, INODE, FileOffsetEntry
from headrace.sources.files.failures import file_failures
from headrace.sources.files.fingerprint import LocalContent, same_beginning
from headrace.sources.files.objects import FoundFile

__all__ = ["Family", "OpenFile"]


@attrs.frozen
class OpenFile:
    """A local file, open, as it is right now."""

    found: FoundFile
    descriptor: int

    @classmethod
    def of(cls, path: str) -> "OpenFile | None":
        """The file of a path, or None if there is none; whoever asks for it closes it."""
        with file_failures(Where(stage=Stage.READ, object=path)):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            return cls(FoundFile.from_stat(path, os.fstat(descriptor)), descriptor)

    @property
    def content(self) -> LocalContent:
        """What is in it."""
        return LocalContent(self.descriptor)

    def is_of_inode(self, entry: FileOffsetEntry) -> bool:
        """Whether it is the file of an entry by its inode, and begins as that did: inodes are given out again."""
        size = entry.get_int(HEAD_BYTES) or 0
        return (
            entry.get_int(INODE) == self.found.inode
            and self.found.size >= size
            and self.content.head(size) == entry.get_string(HEAD)
        )

    def has_what_was_read(self, entry: FileOffsetEntry) -> bool:
        """Whether it has what was read by an entry, at the same place."""
        return entry.byte > 0 and entry.is_beginning_of(self.found, self.content)

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)


@attrs.frozen
class Family:
    """The files of one family, and where each one's past is.

    `stored` gives the entry under a name: with what the task itself has sent and not committed yet.
    """

    names: Iterable[str]
    stored: Callable[[str], FileOffsetEntry | None]

    def goes_on(self, entry: FileOffsetEntry, now: OpenFile | None) -> bool:
        """Whether the file of an entry's name still is the one that was read."""
        if now is None or not (entry.get_string(HEAD) is None or entry.is_beginning_of(now.found, now.content)):
            return False
        if entry.get_int(INODE) in {None, now.found.inode}:
            return now.found.size >= entry.byte
        # Its beginning is the same, and it is another file: a header may be all that the two have in common.
        return self.find(entry, but=entry.path, by_inode_only=True) is None

    def find(self, entry: FileOffsetEntry, *, but: str, by_inode_only: bool = False) -> str | None:
        """Under which other name the file of an entry is now, or its copy."""
        copies = []
        for name in self.names:
            if name == but or (file := OpenFile.of(name)) is None:
                continue
            try:
                if file.is_of_inode(entry):
                    return name
                if not by_inode_only and file.has_what_was_read(entry):
                    copies.append(name)
            finally:
                file.close()
        return copies[0] if copies else None

    def furthest(self, file: OpenFile, entry: FileOffsetEntry) -> FileOffsetEntry:
        """Of all entries that speak of what is in a file, `entry` among them, the one that has come furthest."""
        known = [one for name in self.names if (one := self.stored(name)) is not None]
        same = [one for one in known if file.is_of_inode(one) or file.has_what_was_read(one)]
        return max([entry, *same], key=lambda one: (one.byte, one.is_complete))

    def past_of(self, file: OpenFile) -> FileOffsetEntry | None:
        """The entry, under another name, of what is in a file that has no entry of its own."""
        for name in self.names:
            entry = None if name == file.found.path else self.stored(name)
            if entry is not None and (file.is_of_inode(entry) or self._is_copy(file, entry)):
                return entry
        return None

    def _is_copy(self, file: OpenFile, entry: FileOffsetEntry) -> bool:
        if not file.has_what_was_read(entry):
            return False
        original = OpenFile.of(entry.path)
        if original is None:
            return True
        try:
            if not self.goes_on(entry, original):
                return True
            return same_beginning(file.descriptor, original.descriptor)
        finally:
            original.close()
