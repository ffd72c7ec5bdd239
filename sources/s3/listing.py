"""What there is: a listing, page by page, that cannot be led astray."""

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.errors import ObjectVanishedError, RetriableError, SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.s3.attempts import Attempts, Count, count_nothing
from headrace.sources.s3.client import S3Client
from headrace.sources.s3.failures import s3_failures
from headrace.sources.s3.objects import S3Object

__all__ = ["Listing", "OnSkipped", "Skipped", "find_object", "list_objects", "look_up", "say_nothing"]


class Skipped(enum.StrEnum):
    """Why an object of the listing is left out."""

    EMPTY = "it is empty"
    MARKER = "it only stands for a directory"
    ARCHIVED = "it lies in an archive: have it restored and copied to a storage class that can be read"

    @classmethod
    def reason_for(cls, found: S3Object) -> "Skipped | None":
        """Why `found` is left out, or None where it is not."""
        if found.size == 0:
            return cls.MARKER if found.is_marker else cls.EMPTY
        return cls.ARCHIVED if found.is_archived else None


OnSkipped = Callable[[S3Object, Skipped], None]


def say_nothing(found: S3Object, reason: Skipped) -> None:
    """Tell nobody."""


@attrs.frozen(kw_only=True)
class Listing:
    """What to list: a bucket, the keys in it that begin with `prefix`, in pages of `page_size`.

    `start_after` is exclusive. What is left out goes to `on_skipped` with the reason. Counts `s3_list_calls`.
    """

    bucket: str
    prefix: str | None = None
    page_size: int = 1000
    start_after: str | None = None
    on_skipped: OnSkipped = say_nothing
    count: Count = count_nothing

    def request(self, token: str | None) -> dict[str, Any]:
        """One page's request. Every page names the prefix and the start: not every server finds them in its token."""
        optional = {"Prefix": self.prefix, "StartAfter": self.start_after, "ContinuationToken": token}
        given = {name: value for name, value in optional.items() if value}
        return {"Bucket": self.bucket, "MaxKeys": self.page_size, **given}

    @property
    def where(self) -> Where:
        """The place to name in errors."""
        return Where(stage=Stage.DISCOVER, object=f"s3://{self.bucket}/{self.prefix or ''}")


def list_objects(client: S3Client, listing: Listing, attempts: Attempts) -> Iterator[S3Object]:
    """The objects to read, in the order of their keys; a page is fetched when the one before it is used up.

    Raises `RetriableError` when the attempts at one page have failed, and `SourceError` for what does not pass. A
    server that names a page twice, or a key out of order or outside the prefix, is an error: listing on might never
    end, or leave objects out.
    """
    last: str | None = None
    for page in _pages(client, listing, attempts):
        for item in page.get("Contents", ()):
            found = S3Object.from_answer(listing.bucket, item["Key"], item)
            _refuse_astray(listing, found.key, last)
            last = found.key
            if listing.start_after and found.key <= listing.start_after:
                continue  # a server that knows no StartAfter lists from the beginning
            reason = Skipped.reason_for(found)
            if reason is None:
                yield found
            else:
                listing.on_skipped(found, reason)


def look_up(client: S3Client, bucket: str, key: str, attempts: Attempts) -> S3Object | None:
    """The object as a listing shows it, or None if there is none: one request, and no right but that to list."""
    page = _page(client, Listing(bucket=bucket, prefix=key, page_size=1), None, attempts)
    # What comes first of all that begins with a key is the key itself.
    for item in page.get("Contents", ()):
        if item["Key"] == key:
            return S3Object.from_answer(bucket, key, item)
    return None


def find_object(client: S3Client, bucket: str, key: str, attempts: Attempts) -> S3Object | None:
    """The object as it is now, or None if there is none: for one that has changed since it was listed."""
    where = Where(stage=Stage.READ, object=f"s3://{bucket}/{key}")
    while True:
        try:
            with s3_failures(where):
                answer = client.head_object(Bucket=bucket, Key=key)
        except ObjectVanishedError:
            return None
        except RetriableError as error:
            attempts.failed(error)
        else:
            attempts.progressed()
            return S3Object.from_answer(bucket, key, answer)


def _pages(client: S3Client, listing: Listing, attempts: Attempts) -> Iterator[Mapping[str, Any]]:
    token: str | None = None
    used: set[str] = set()
    while True:
        page = _page(client, listing, token, attempts)
        yield page
        if not page.get("IsTruncated"):
            return
        token = page.get("NextContinuationToken")
        if not token:
            raise SourceError("the listing has more pages, and names none: the server is at fault", listing.where)
        if token in used:
            raise SourceError(
                "the listing names a page again: it would never end; the server is at fault", listing.where
            )
        used.add(token)


def _page(client: S3Client, listing: Listing, token: str | None, attempts: Attempts) -> Mapping[str, Any]:
    while True:
        attempts.refuse_stopping()
        listing.count("s3_list_calls", 1)
        try:
            with s3_failures(listing.where):
                page = client.list_objects_v2(**listing.request(token))
        except RetriableError as error:
            attempts.failed(error)
        else:
            attempts.progressed()
            return page


def _refuse_astray(listing: Listing, key: str, last: str | None) -> None:
    if last is not None and key <= last:
        raise SourceError(
            f"the listing goes backwards, from {last!r} to {key!r}: objects could be left out; buckets whose listing "
            "has no order (S3 directory buckets) cannot be read",
            listing.where,
        )
    if listing.prefix and not key.startswith(listing.prefix):
        raise SourceError(f"the listing leaves its prefix with {key!r}: the server is at fault", listing.where)
