"""An object as a listing shows it."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

__all__ = ["S3Object", "plain_etag", "same_etag", "version_name"]

ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects cannot be read; GLACIER_IR can, and INTELLIGENT_TIERING shows only at the GET."""

WEAK = "W/"


@attrs.frozen(kw_only=True)
class S3Object:
    """What names an object, and what tells one version of it from another.

    `etag` is the server's text without its quotation marks: not a checksum, and of any form (`…-3` for an object
    uploaded in parts, `W/…` for a weak one); empty where a server gives none. `last_modified` is in milliseconds.
    """

    bucket: str
    key: str
    etag: str
    size: int
    last_modified: int
    storage_class: str = "STANDARD"

    @classmethod
    def from_answer(cls, bucket: str, key: str, answer: Mapping[str, Any]) -> Self:
        """The object that a listing's item, or the answer to a HEAD, describes."""
        return cls(
            bucket=bucket,
            key=key,
            etag=plain_etag(answer.get("ETag")),
            size=answer["Size"] if "Size" in answer else answer["ContentLength"],
            last_modified=round(answer["LastModified"].timestamp() * 1000),
            storage_class=answer.get("StorageClass") or "STANDARD",
        )

    @property
    def uri(self) -> str:
        """The object's name for people."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def is_archived(self) -> bool:
        """Whether its storage class says that it cannot be read."""
        return self.storage_class in ARCHIVES

    @property
    def is_marker(self) -> bool:
        """Whether it only stands for a directory, as consoles and Hadoop write them."""
        return self.size == 0 and self.key.endswith(("/", "_$folder$"))

    @property
    def if_match(self) -> str | None:
        """What to send as If-Match; None where that could never hold (a weak etag, or none)."""
        return f'"{self.etag}"' if self.etag and not self.etag.startswith(WEAK) else None


def plain_etag(text: str | None) -> str:
    """An etag without its quotation marks, its mark of weakness kept."""
    if not text:
        return ""
    weak = WEAK if text.startswith(WEAK) else ""
    return weak + text.removeprefix(WEAK).strip('"')


def same_etag(one: str, other: str) -> bool:
    """Whether two etags name the same content; a weak one is as good as a strong one, for want of better."""
    return plain_etag(one).removeprefix(WEAK) == plain_etag(other).removeprefix(WEAK)


def version_name(etag: str, size: int) -> str:
    """What names a version of an object; a weak etag is as good as a strong one."""
    return f"{plain_etag(etag).removeprefix(WEAK)}:{size}"
