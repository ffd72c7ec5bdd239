"""How far an object has been read, and what that means for the object that is there now."""

import enum
from collections.abc import Mapping
from typing import Any, Self

import attrs

from headrace.framework.errors import OffsetValueError, Where
from headrace.framework.parts import ENDED, PART, PARTS, Part
from headrace.offsets.entry import RECORD_COUNT, OffsetManagerEntry
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.s3.objects import S3Object, same_etag, version_name
from headrace.transformers.base import Position

__all__ = [
    "OVERWRITTEN",
    "Action",
    "Decision",
    "OverwritePolicy",
    "S3OffsetEntry",
    "finished_version",
    "object_key",
    "part_key",
    "what_to_do",
]

COMPLETE = "complete"
ETAG = "etag"
SIZE = "size"
LAST_MODIFIED = "lastModified"
BYTE_OFFSET = "byteOffset"
LINE = "line"
INSIDE = "inside"

OVERWRITTEN = "it was overwritten after it had been read (s3.overwrite.policy)"
"""Why an object is left out by `Action.IGNORE`, in the listing and in the reading of it."""


class OverwritePolicy(enum.StrEnum):
    """What becomes of an object that was overwritten after its first record was read."""

    REREAD = "reread"
    """It is read again from its first record."""

    IGNORE = "ignore"
    """It is left out, what had not been read of it included."""

    FAIL = "fail"
    """It fails its task."""


class Action(enum.StrEnum):
    """What to do about an object."""

    READ = "read"
    """Read on, from the decision's position."""

    FINISHED = "finished"
    """Nothing: it has been read to its end."""

    REREAD = "reread"
    """Read it from its first record, with a new entry: it is another object than the one that was read."""

    IGNORE = "ignore"
    """Leave it out, and say so."""

    FAIL = "fail"
    """Fail, and name it."""


@attrs.frozen
class Decision:
    """What to do about an object, and from where to read it if it is to be read."""

    action: Action
    position: Position = attrs.field(factory=Position)


def object_key(bucket: str, key: str) -> OffsetManagerKey:
    """The source partition of an object, in the order in which Kafka Connect's S3 source has it written."""
    return OffsetManagerKey({"bucket": bucket, "objectKey": key})


def part_key(bucket: str, key: str, number: int) -> OffsetManagerKey:
    """The source partition of a part of an object."""
    return OffsetManagerKey({"bucket": bucket, "objectKey": key, PART: number})


class S3OffsetEntry(OffsetManagerEntry):
    """The progress in one object, or in one part of it: records, and what else is known of the place and the version.

    What Kafka Connect has stored is a `recordCount` and nothing else. Properties that others have added survive.
    """

    __slots__ = ()

    @classmethod
    def stored(cls, key: OffsetManagerKey, properties: Mapping[str, Any]) -> Self:
        """An entry as it is stored; `OffsetValueError` names the object where that says what cannot be."""
        entry = cls(key, dict(properties))
        if (reason := entry.impossible()) is not None:
            names = key.mapping
            raise OffsetValueError(
                f"its stored offset cannot be read: {reason}; mend it with headrace offsets set, or forget all of them "
                "with headrace offsets reset",
                Where(object=f"s3://{names.get('bucket')}/{names.get('objectKey')}"),
            )
        return entry

    def impossible(self) -> str | None:
        """What it says that cannot be: no whole number, one below 0, or no boolean; None if all of it can."""
        try:
            for name, value in self.get_properties().items():
                if name in _COUNTS and (type(value) is not int or value < 0) and (self.get_int(name) or 0) < 0:
                    return f"{name}={value!r} is less than 0"
                if name in _FLAGS:
                    self.get_bool(name)
        except OffsetValueError as error:
            return error.message
        return None

    @classmethod
    def for_object(cls, found: S3Object) -> Self:
        """The entry of an object of which nothing has been read."""
        version = {ETAG: found.etag, SIZE: found.size, LAST_MODIFIED: found.last_modified}
        known = {name: value for name, value in version.items() if value != ""}
        return cls(object_key(found.bucket, found.key), {RECORD_COUNT: 0, **known})

    @classmethod
    def cut(cls, found: S3Object, parts: int) -> Self:
        """The entry of an object that is going to be read in so many parts."""
        whole = cls.for_object(found)
        return whole.from_properties({**whole.get_properties(), PARTS: parts})

    @classmethod
    def for_part(cls, found: S3Object, part: Part) -> Self:
        """The entry of a part of which nothing has been read."""
        return cls(part_key(found.bucket, found.key, part.number), cls.cut(found, part.parts).get_properties())

    @property
    def parts(self) -> int:
        """Into how many parts the object is cut; 0 where it is read as a whole, or finished."""
        return 0 if self.is_complete else self.get_int(PARTS) or 0

    @property
    def is_ended(self) -> bool:
        """Whether the part was read to its end."""
        return self.get_bool(ENDED) is True

    def ended(self) -> Self:
        """An entry that says that the part was read to its end, at the position where this one is."""
        return self.from_properties({**self.get_properties(), ENDED: True})

    @property
    def is_complete(self) -> bool:
        """Whether the object was read to its end."""
        return self.get_bool(COMPLETE) is True

    def position(self) -> Position:
        """Where reading goes on."""
        return Position(
            records=self.record_count,
            byte=self.get_int(BYTE_OFFSET) or 0,
            line=self.get_int(LINE) or 0,
            inside=self.get_int(INSIDE) or 0,
        )

    def advanced(self, position: Position) -> Self:
        """An entry of the same object that says to go on at `position`."""
        return self.from_properties(self.properties_at(position))

    def properties_at(self, position: Position) -> dict[str, Any]:
        """What `advanced(position)` would store."""
        kept = {name: value for name, value in self.get_properties().items() if name not in _PLACE}
        return {RECORD_COUNT: position.records, **kept, **_place(position)}

    def finished(self) -> Self:
        """An entry that says that the object was read to its end, at the position where this one is."""
        return self.from_properties({**self.get_properties(), COMPLETE: True})

    def is_of(self, found: S3Object) -> bool:
        """Whether the version that was read is the one that is there, as far as both are known."""
        etag = self.get_string(ETAG)
        if etag and found.etag:
            return same_etag(etag, found.etag)
        known = ((self.get_int(SIZE), found.size), (self.get_int(LAST_MODIFIED), found.last_modified))
        return all(mine is None or mine == theirs for mine, theirs in known)


_COUNTS = frozenset({RECORD_COUNT, BYTE_OFFSET, LINE, INSIDE, PARTS, SIZE, LAST_MODIFIED})
_FLAGS = frozenset({COMPLETE, ENDED})
_PLACE = frozenset({RECORD_COUNT, BYTE_OFFSET, LINE, INSIDE, COMPLETE, ENDED})


def finished_version(offset: Mapping[str, Any]) -> str | None:
    """The version that a stored offset says was read to its end; None if it was not, or if nobody knows which."""
    etag, size = offset.get(ETAG), offset.get(SIZE)
    if offset.get(COMPLETE) is True and isinstance(etag, str) and etag and isinstance(size, int):
        return version_name(etag, size)
    return None


def _place(position: Position) -> Mapping[str, int]:
    known = {BYTE_OFFSET: position.byte, LINE: position.line, INSIDE: position.inside}
    return {name: value for name, value in known.items() if value}


def what_to_do(entry: S3OffsetEntry | None, found: S3Object, policy: OverwritePolicy, *, records: int = 0) -> Decision:
    """What to do about an object, by what is stored of it, and by how many `records` its parts had.

    An entry that knows no version (Kafka Connect's) is taken for one of the object that is there: it says how many
    records to pass over, and only `complete` says that there are no more. An object that was overwritten before its
    first record was read is simply read.
    """
    if entry is None:
        return Decision(Action.READ)
    if entry.is_of(found):
        return Decision(Action.FINISHED) if entry.is_complete else Decision(Action.READ, entry.position())
    if not entry.is_complete and entry.record_count == records == 0:
        return Decision(Action.READ)
    return Decision(Action(policy.value))
