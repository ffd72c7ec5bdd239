"""How far a file has been read, and what that means for the file that is there now."""

import enum
from collections.abc import Mapping
from typing import Any, Self

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import OffsetValueError
from headrace.framework.parts import ENDED, PART, PARTS
from headrace.offsets.entry import RECORD_COUNT, OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.files.fingerprint import MARK_BYTES, Content
from headrace.sources.files.objects import FoundFile
from headrace.transformers.base import Position

__all__ = [
    "FILENAME",
    "Action",
    "Decision",
    "FileOffsetEntry",
    "OverwritePolicy",
    "file_key",
    "file_part_key",
    "what_to_do",
]

FILENAME = "filename"
"""The name of a file in its source partition."""

POSITION = "position"
LINE = "line"
INSIDE = "inside"
COMPLETE = "complete"
SIZE = "size"
LAST_MODIFIED = "lastModified"
ETAG = "etag"
INODE = "inode"
HEAD = "head"
HEAD_BYTES = "headBytes"
TAIL = "tail"
CUT = "cut"


class OverwritePolicy(enum.StrEnum):
    """What becomes of a file that was overwritten after its first record was read."""

    REREAD = "reread"
    """It is read again from its first record."""

    IGNORE = "ignore"
    """It is left out, what had not been read of it included."""

    FAIL = "fail"
    """It fails the run."""


class Action(enum.StrEnum):
    """What to do about a file."""

    READ = "read"
    """Read on, from the decision's position."""

    FINISHED = "finished"
    """Nothing: it has been read to its end."""

    REREAD = "reread"
    """Read it from its first record, with a new entry: it is another file than the one that was read."""

    IGNORE = "ignore"
    """Leave it out, and say so."""

    FAIL = "fail"
    """Fail, and name it."""


@attrs.frozen
class Decision:
    """What to do about a file, and from where to read it if it is to be read."""

    action: Action
    position: Position = attrs.field(factory=Position)


def file_key(path: str) -> OffsetManagerKey:
    """The source partition of a file, as Kafka Connect's file source has it."""
    return OffsetManagerKey({FILENAME: path})


def file_part_key(path: str, number: int) -> OffsetManagerKey:
    """The source partition of a part of a file."""
    return OffsetManagerKey({FILENAME: path, PART: number})


class FileOffsetEntry(OffsetManagerEntry):
    """The progress in one file: the place, the records up to it, and by what the file is known again.

    Kafka Connect's file source has stored a `position` and nothing else. Properties that others have added survive.
    """

    __slots__ = ()

    @classmethod
    def stored(cls, path: str, properties: Mapping[str, Any]) -> Self:
        """The entry of a file as it is stored."""
        return cls(file_key(path), dict(properties))

    @override
    def get_int(self, name: str) -> int | None:
        try:
            number = super().get_int(name)
        except OffsetValueError as error:
            raise self._unreadable(error.message) from error
        if number is not None and number < 0 and name in _COUNTS:
            raise self._unreadable(f"{name}={number} is less than 0")
        return number

    @override
    def get_bool(self, name: str) -> bool | None:
        try:
            return super().get_bool(name)
        except OffsetValueError as error:
            raise self._unreadable(error.message) from error

    def _unreadable(self, reason: str) -> OffsetValueError:
        return OffsetValueError(
            f"{self.get_manager_key().mapping.get(FILENAME)}: its stored offset cannot be read: {reason}; mend it "
            "with headrace offsets set, or forget all of them with headrace offsets reset"
        )

    @property
    def path(self) -> str:
        """The file that it speaks of."""
        return str(self.get_manager_key().mapping[FILENAME])

    @property
    def is_complete(self) -> bool:
        """Whether the file was read to its end."""
        return self.get_bool(COMPLETE) is True

    @property
    def parts(self) -> int:
        """Into how many parts the file is cut; 0 where it is read as a whole, or finished."""
        return 0 if self.is_complete else self.get_int(PARTS) or 0

    @property
    def is_ended(self) -> bool:
        """Whether the part was read to its end."""
        return self.get_bool(ENDED) is True

    @property
    def is_blank(self) -> bool:
        """Whether it says that nothing was read."""
        return self.byte == 0 and self.record_count == 0

    @property
    def byte(self) -> int:
        """The byte of the content where reading goes on."""
        return self.get_int(POSITION) or 0

    @property
    def unread(self) -> int:
        """How many bytes of the file were there when it was last read, behind the place that was reached."""
        return 0 if self.is_complete else max(0, (self.get_int(SIZE) or 0) - self.byte)

    def position(self) -> Position:
        """Where reading goes on."""
        return Position(
            records=self.record_count,
            byte=self.byte,
            line=self.get_int(LINE) or 0,
            inside=self.get_int(INSIDE) or 0,
        )

    def of_version(self, found: FoundFile, content: Content | None) -> Self:
        """This entry, as one of the file that is there now: known again by what the file shows."""
        known: dict[str, Any] = {SIZE: found.size, LAST_MODIFIED: found.last_modified}
        if found.inode:
            known[INODE] = found.inode
        if found.etag:
            known[ETAG] = found.etag
        if content is not None:
            size = min(found.size, MARK_BYTES)
            known |= {HEAD: content.head(size), HEAD_BYTES: size}
        kept = {name: value for name, value in self.get_properties().items() if name not in _VERSION}
        return self.from_properties({**kept, **known})

    def properties_at(self, position: Position, *, tail: str | None = None, complete: bool = False) -> dict[str, Any]:
        """What is stored once reading goes on at `position`; `tail` is the mark of what stands before it."""
        place = {POSITION: position.byte, RECORD_COUNT: position.records}
        known = {LINE: position.line or None, INSIDE: position.inside or None}
        others = {**known, TAIL: tail, COMPLETE: complete or None}
        kept = {name: value for name, value in self.get_properties().items() if name not in _PLACE}
        return place | {name: value for name, value in others.items() if value is not None} | kept

    def at(self, path: str) -> Self:
        """The same progress, of the same file under another name."""
        return type(self)(file_key(path), self.get_properties())

    def version(self) -> dict[str, Any]:
        """What is known of the version that was read, as a listing shows it."""
        return {
            name: value for name, value in self.get_properties().items() if name in {SIZE, LAST_MODIFIED, INODE, ETAG}
        }

    def is_version(self, found: FoundFile) -> bool:
        """Whether nothing that a listing shows differs from what was read, as far as both are known."""
        etag = self.get_string(ETAG)
        if etag and found.etag:
            return etag == found.etag
        if self.get_int(SIZE) is None and found.size < self.byte:
            return False
        known = (
            (self.get_int(SIZE), found.size),
            (self.get_int(LAST_MODIFIED), found.last_modified),
            (self.get_int(INODE), found.inode or None),
        )
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in known)

    def is_beginning_of(self, found: FoundFile, content: Content) -> bool:
        """Whether the file has, up to the place that was reached, what was read; its name and times do not count.

        A compressed file has no such place: it must be of the same size.
        """
        head, size, tail = self.get_string(HEAD), self.get_int(HEAD_BYTES) or 0, self.get_string(TAIL)
        if head is None or found.size < size or content.head(size) != head:
            return False
        if tail is None:
            return found.size == self.get_int(SIZE)
        return found.size >= self.byte and content.before(self.byte) == tail


_COUNTS = frozenset({POSITION, RECORD_COUNT, LINE, INSIDE, SIZE, HEAD_BYTES, PARTS})
_VERSION = frozenset({SIZE, LAST_MODIFIED, ETAG, INODE, HEAD, HEAD_BYTES, PARTS, CUT})
_PLACE = frozenset({POSITION, RECORD_COUNT, LINE, INSIDE, TAIL, COMPLETE, ENDED})


def what_to_do(
    entry: FileOffsetEntry | None, found: FoundFile, content: Content | None, policy: OverwritePolicy, *, grows: bool
) -> Decision:
    """What to do about a file, by what is stored of it; `grows` says that its format can be read on behind its end.

    A file is the one that was read if a listing shows no difference, or if it still has what was read of it. An entry
    without any mark (Kafka Connect's) is taken for one of the file that is there. A file of which nothing was read
    before it was overwritten is simply read.
    """
    if entry is None:
        return Decision(Action.READ)
    if entry.is_version(found):
        return Decision(Action.FINISHED) if entry.is_complete else Decision(Action.READ, entry.position())
    if entry.is_blank:
        return Decision(Action.READ)
    if content is not None and entry.is_beginning_of(found, content):
        if entry.is_complete and found.size == entry.get_int(SIZE):
            return Decision(Action.FINISHED)
        if grows or not entry.is_complete:
            return Decision(Action.READ, entry.position())
    return Decision(Action(policy.value))
