"""A file, or a part of one, as a split, and as bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.distribution.base import StorageObject
from headrace.framework.parts import PART, Extent, Part
from headrace.framework.splits import Split, SplitSerializer
from headrace.sources.files.entry import FILENAME
from headrace.sources.files.objects import FoundFile

__all__ = ["FilePart", "FileSplit", "FileSplitSerializer"]

VERSION = 2


@attrs.frozen
class FilePart:
    """A part of a file that had `size` bytes when it was cut; `cut` is the name of that cut."""

    part: Part
    size: int
    cut: str

    @property
    def number(self) -> int:
        """Which one it is, counted from 0."""
        return self.part.number

    @property
    def parts(self) -> int:
        """How many there are."""
        return self.part.parts

    @property
    def extent(self) -> Extent:
        """Its bytes."""
        return self.part.extent(self.size)


@attrs.frozen
class FileSplit(Split):
    """One file, as it was listed, or one part of it.

    A file that is followed is read to `end` in a bounded run, and as far as it goes otherwise. `family` are the other
    names under which what was once in it may be found: their progress is asked for as well.
    """

    file: FoundFile
    end: int | None = None
    family: tuple[str, ...] = ()
    part: FilePart | None = None

    @property
    @override
    def split_id(self) -> str:
        # No file is called like a part: paths begin with a slash or a scheme.
        return self.file.path if self.part is None else f"part {self.part.number} of {self.file.path}"

    @property
    @override
    def whole_id(self) -> str:
        return self.file.path

    @property
    @override
    def source_partition(self) -> Mapping[str, Any]:
        whole = {FILENAME: self.file.path}
        return whole if self.part is None else {**whole, PART: self.part.number}

    @property
    @override
    def source_partitions(self) -> Sequence[Mapping[str, Any]]:
        others = self.family if self.part is None else (self.file.path,)
        return [self.source_partition, *({FILENAME: path} for path in others)]

    @property
    @override
    def size(self) -> int:
        return self.file.size if self.part is None else self.part.extent.end - self.part.extent.start

    def as_object(self) -> StorageObject:
        """What a strategy of distribution is asked about: each part is a thing of its own, to be shared out."""
        name = self.file.path if self.part is None else f"{self.file.path}#{self.part.number}"
        return StorageObject(name, self.size)


class FileSplitSerializer(SplitSerializer[FileSplit]):
    """A JSON object of the version's own names; the first version knew no parts."""

    version = VERSION

    @override
    def serialize(self, split: FileSplit) -> bytes:
        found = split.file
        told = {
            "path": found.path,
            "size": found.size,
            "lastModified": found.last_modified,
            "inode": found.inode,
            "etag": found.etag,
            "end": split.end,
            "family": split.family,
            "part": None if split.part is None else [split.part.number, split.part.parts],
            "cut": None if split.part is None else [split.part.size, split.part.cut],
        }
        return json.dumps(told, separators=(",", ":")).encode()

    @override
    def deserialize(self, version: int, data: bytes) -> FileSplit:
        if not 1 <= version <= VERSION:
            raise ValueError(f"a file split of version {version} is from a newer headrace; this one reads {VERSION}")
        told = json.loads(data)
        found = FoundFile(
            path=told["path"],
            size=told["size"],
            last_modified=told["lastModified"],
            inode=told["inode"],
            etag=told["etag"],
        )
        part = FilePart(Part(*told["part"]), *told["cut"]) if told.get("part") else None
        return FileSplit(found, end=told["end"], family=tuple(told["family"]), part=part)
