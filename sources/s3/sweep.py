"""A walk through the listing, a part at a time, so that what has been found is read while the rest is listed."""

from array import array
from collections.abc import Iterator
from itertools import islice

import attrs

from headrace.framework.errors import RetriableError
from headrace.framework.naming import NameTemplate
from headrace.framework.stop_rule import TimeLimit
from headrace.offsets.rollup import name_mark
from headrace.sources.s3.attempts import Attempts, Count
from headrace.sources.s3.client import S3Client, make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import object_key
from headrace.sources.s3.listing import Skipped, list_objects
from headrace.sources.s3.objects import S3Object

__all__ = ["Part", "Sweep"]

AT_A_TIME = 10_000


@attrs.define
class Part:
    """What a part of the walk has brought: the objects that the name template takes, and those left out."""

    objects: list[S3Object] = attrs.field(factory=list)
    left_out: list[tuple[S3Object, Skipped]] = attrs.field(factory=list)
    ended: bool = False


@attrs.define(kw_only=True)
class Sweep:
    """One walk from `start_after` to the end of what the configuration names; from its very beginning if that is None.

    `part` is called on a discovery thread, again after a `RetriableError`, until it says that the walk has ended. What
    a whole walk has seen, whatever became of it, stands in `marks`; `behind` is how much was seen behind the key
    `watermark`, if there is one. What was modified too late for `limit` is none of the objects that it brings.
    """

    config: S3Config
    template: NameTemplate
    attempts: Attempts
    count: Count
    client: S3Client | None = None
    start_after: str | None = None
    watermark: str | None = None
    limit: TimeLimit = attrs.field(factory=TimeLimit)
    is_last: bool = attrs.field(init=False)
    marks: "array[int]" = attrs.field(factory=lambda: array("Q"), init=False)
    seen: int = attrs.field(default=0, init=False)
    behind: int = attrs.field(default=0, init=False)
    last: str | None = attrs.field(default=None, init=False)
    _objects: Iterator[S3Object] | None = attrs.field(default=None, init=False)
    _part: Part = attrs.field(factory=Part, init=False)

    def __attrs_post_init__(self) -> None:
        self.is_last = self.is_whole and self.limit.has_come

    @property
    def is_whole(self) -> bool:
        """Whether it began at the beginning."""
        return self.start_after is None

    def part(self) -> Part:
        """The next part."""
        if self.client is None:
            self.client = make_client(self.config.connection())
        if self._objects is None:
            self._objects = self._list(self.client)
        try:
            taken = 0
            for found in islice(self._objects, AT_A_TIME):
                taken += 1
                self._see(found)
                if self.template.match(found.key) is not None and self.limit.lets_in(found.last_modified):
                    self._part.objects.append(found)
        except RetriableError:
            self._objects = None
            raise
        part, self._part = self._part, Part()
        part.ended = taken < AT_A_TIME
        return part

    def _list(self, client: S3Client) -> Iterator[S3Object]:
        listing = self.config.listing(on_skipped=self._leave_out, count=self.count)
        after = max(filter(None, (listing.start_after, self.start_after, self.last)), default=None)
        return list_objects(client, attrs.evolve(listing, start_after=after), self.attempts)

    def _leave_out(self, found: S3Object, why: Skipped) -> None:
        self._see(found)
        if why is not Skipped.MARKER and self.template.match(found.key) is not None:
            self._part.left_out.append((found, why))

    def _see(self, found: S3Object) -> None:
        self.seen += 1
        self.last = found.key
        if self.watermark is not None and found.key > self.watermark:
            self.behind += 1
        if self.is_whole:
            self.marks.append(name_mark(object_key(found.bucket, found.key)))
