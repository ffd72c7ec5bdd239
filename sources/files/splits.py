"""A file as a split, and as bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.splits import Split, SplitSerializer
from headrace.sources.files.entry import FILENAME
from headrace.sources.files.objects import FoundFile

__all__ = ["FileSplit", "FileSplitSerializer"]

VERSION = 1


@attrs.frozen
class FileSplit(Split):
    """One file, as it was listed.

    A file that is followed is read to `end` in a bounded run, and as far as it goes otherwise. `family` are the other
    names under which what was once in it may be found: their progress is asked for as well.
    """

    file: FoundFile
    end: int | None = None
    family: tuple[str, ...] = ()

    @property
    @override
    def split_id(self) -> str:
        return self.file.path

    @property
    @override
    def source_partition(self) -> Mapping[str, Any]:
        return {FILENAME: self.file.path}

    @property
    @override
    def source_partitions(self) -> Sequence[Mapping[str, Any]]:
        return [self.source_partition, *({FILENAME: path} for path in self.family)]

    @property
    @override
    def size(self) -> int:
        return self.file.size


class FileSplitSerializer(SplitSerializer[FileSplit]):
    """A JSON object of the version's own names."""

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
        }
        return json.dumps(told, separators=(",", ":")).encode()

    @override
    def deserialize(self, version: int, data: bytes) -> FileSplit:
        if version != VERSION:
            raise ValueError(f"a file split of version {version} is from a newer headrace; this one reads {VERSION}")
        told = json.loads(data)
        found = FoundFile(
            path=told["path"],
            size=told["size"],
            last_modified=told["lastModified"],
            inode=told["inode"],
            etag=told["etag"],
        )
        return FileSplit(found, end=told["end"], family=tuple(told["family"]))
