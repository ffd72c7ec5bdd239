"""An object, or a part of one, as a split, and as bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.distribution.base import StorageObject
from headrace.framework.parts import PART, Extent, Part
from headrace.framework.splits import Split, SplitSerializer
from headrace.sources.s3.objects import S3Object, version_name

__all__ = ["S3Split", "S3SplitSerializer"]

VERSION = 2


@attrs.frozen
class S3Split(Split):
    """One object, in the version that was listed, or one part of it.

    Its id is its name without the version: an overwritten object stays with the task that its first version had, and
    so does the part of a number.
    """

    object: S3Object
    part: Part | None = None

    @property
    @override
    def split_id(self) -> str:
        # No object is called like a part: the names of objects begin with their scheme.
        return self.object.uri if self.part is None else f"part {self.part.number} of {self.object.uri}"

    @property
    @override
    def whole_id(self) -> str:
        return self.object.uri

    @property
    @override
    def source_partition(self) -> Mapping[str, Any]:
        whole = {"bucket": self.object.bucket, "objectKey": self.object.key}
        return whole if self.part is None else {**whole, PART: self.part.number}

    @property
    @override
    def source_partitions(self) -> Sequence[Mapping[str, Any]]:
        if self.part is None:
            return [self.source_partition]
        return [self.source_partition, S3Split(self.object).source_partition]

    @property
    @override
    def version(self) -> str:
        return version_name(self.object.etag, self.object.size)

    @property
    @override
    def size(self) -> int:
        return self.object.size if self.part is None else self.extent.end - self.extent.start

    def as_object(self) -> StorageObject:
        """What a strategy of distribution is asked about: each part is a thing of its own, to be shared out."""
        name = self.object.key if self.part is None else f"{self.object.key}#{self.part.number}"
        return StorageObject(name, self.size)

    @property
    def extent(self) -> Extent:
        """Its bytes of the object."""
        return (self.part or Part(0, 1)).extent(self.object.size)


class S3SplitSerializer(SplitSerializer[S3Split]):
    """A JSON object of the version's own names; the first version knew no parts."""

    version = VERSION

    @override
    def serialize(self, split: S3Split) -> bytes:
        found = split.object
        return json.dumps(
            {
                "bucket": found.bucket,
                "key": found.key,
                "etag": found.etag,
                "size": found.size,
                "lastModified": found.last_modified,
                "storageClass": found.storage_class,
                "part": None if split.part is None else [split.part.number, split.part.parts],
            },
            separators=(",", ":"),
        ).encode()

    @override
    def deserialize(self, version: int, data: bytes) -> S3Split:
        if not 1 <= version <= VERSION:
            raise ValueError(f"an S3 split of version {version} is from a newer headrace; this one reads {VERSION}")
        told = json.loads(data)
        return S3Split(
            S3Object(
                bucket=told["bucket"],
                key=told["key"],
                etag=told["etag"],
                size=told["size"],
                last_modified=told["lastModified"],
                storage_class=told["storageClass"],
            ),
            Part(*told["part"]) if told.get("part") else None,
        )
