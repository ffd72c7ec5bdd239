"""An object as a split, and as bytes."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.splits import Split, SplitSerializer
from headrace.sources.s3.objects import S3Object, version_name

__all__ = ["S3Split", "S3SplitSerializer"]

VERSION = 1


@attrs.frozen
class S3Split(Split):
    """One object, in the version that was listed.

    Its id is its name without the version: an overwritten object stays with the task that its first version had.
    """

    object: S3Object

    @property
    @override
    def split_id(self) -> str:
        return self.object.uri

    @property
    @override
    def source_partition(self) -> Mapping[str, Any]:
        return {"bucket": self.object.bucket, "objectKey": self.object.key}

    @property
    @override
    def version(self) -> str:
        return version_name(self.object.etag, self.object.size)

    @property
    @override
    def size(self) -> int:
        return self.object.size


class S3SplitSerializer(SplitSerializer[S3Split]):
    """A JSON object of the version's own names."""

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
            },
            separators=(",", ":"),
        ).encode()

    @override
    def deserialize(self, version: int, data: bytes) -> S3Split:
        if version != VERSION:
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
            )
        )
