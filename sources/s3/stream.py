"""The bytes of an object, over as many connections as it takes."""

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import attrs

from headrace.framework.errors import ObjectChangedError, RetriableError, SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.s3.attempts import Attempts, Count, count_nothing
from headrace.sources.s3.body import AnswerBody
from headrace.sources.s3.client import S3Client
from headrace.sources.s3.failures import s3_failures
from headrace.sources.s3.interrupt import Interrupter
from headrace.sources.s3.objects import S3Object, plain_etag, same_etag

__all__ = ["ObjectStream"]

LARGEST_READ = 1024 * 1024

CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


@attrs.define(kw_only=True)
class ObjectStream:
    """A `ByteStream` of one version of one object, from byte `start` to its end, or to `end`.

    One GET, which reads as fast as `read` is called and holds no more than what that asks for. A connection that
    breaks, or ends before the object does, is opened anew at the byte where it broke, by the rules of `attempts`;
    when these are used up, the `RetriableError` is raised, and the next `read` begins again at the same byte.

    Every GET asks for the version that was listed, and what the server says it sends is compared with it:
    `ObjectChangedError` before a byte of another version is given out. `ObjectVanishedError` and
    `ObjectArchivedError` say that there is nothing to read.

    When the task is to stop, `read` ends at once with a `RetriableError`: an end of the stream is an end of the object
    and nothing else. Used by one thread. Counts `s3_get_calls` and `s3_bytes_fetched`.
    """

    client: S3Client
    object: S3Object
    attempts: Attempts
    interrupter: Interrupter | None = None
    start: int = 0
    end: int | None = None
    count: Count = count_nothing
    position: int = attrs.field(init=False)
    """The byte of the object that the next `read` begins with."""

    fetched: int = attrs.field(default=0, init=False)
    """How many bytes have been received, those that were received again included."""

    _body: AnswerBody | None = attrs.field(default=None, init=False)
    _end: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse a start that the object cannot have; nothing is asked of the server yet."""
        self.position = self.start
        self._end = self.object.size if self.end is None else min(self.end, self.object.size)
        if not 0 <= self.start <= self.object.size:
            raise SourceError(
                f"the stored position lies outside the object, which has {self.object.size} bytes: reset its offset",
                self.where,
            )

    @property
    def where(self) -> Where:
        """The place to name in errors."""
        return Where(stage=Stage.READ, object=self.object.uri, position=f"byte {self.position}")

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes (and at most a megabyte); none at the end, and only there."""
        wanted = min(size, LARGEST_READ, self._end - self.position)
        pieces: list[bytes] = []
        while wanted > 0 and not pieces:
            try:
                self._fill(pieces, wanted)
            except RetriableError as error:
                self.close()
                if not pieces:  # otherwise they are given out, and the next read goes on from there
                    self.attempts.failed(error)
            except SourceError:
                self.close()
                raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def begin(self) -> None:
        """Ask for the object now, and not with the first `read`; it raises what that would, and tries once."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def go_on(self, attempts: Attempts, interrupter: Interrupter, count: Count) -> None:
        """Read by these from now on, on another thread than the one that began."""
        self.attempts, self.interrupter, self.count = attempts, interrupter, count
        interrupter.watch(self._body)

    def close(self) -> None:
        """Give the connection back, or drop it where bytes are left on it; reading again opens another one."""
        if (body := self._take_body()) is not None:
            body.close()

    def __enter__(self) -> Self:
        """The stream itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _fill(self, pieces: list[bytes], wanted: int) -> None:
        """Append the next `wanted` bytes, of the connection that is open or of a new one; what came stays on errors."""
        self.attempts.refuse_stopping()
        body = self._body or self._open()
        came = 0
        try:
            with s3_failures(self.where):
                for piece in body.pieces(wanted):
                    # What comes out of an interrupted connection is not the object's.
                    self.attempts.refuse_stopping()
                    pieces.append(piece)
                    came += len(piece)
        finally:
            self._received(came)
        if came < wanted:
            raise RetriableError(f"the connection ended before the object, of {self.object.size} bytes", self.where)

    def _open(self) -> AnswerBody:
        """Ask for the object from `position` on, and make sure that it is what comes."""
        self.count("s3_get_calls", 1)
        with s3_failures(self.where):
            answer = self.client.get_object(**self._request())
        self._body = body = AnswerBody.of(answer)
        if self.interrupter is not None:
            self.interrupter.watch(body)
        first, size = _extent(answer)
        self._refuse_other_version(answer, size)
        if first > self.position:
            raise SourceError(f"the server answers from byte {first} on: it is at fault", self.where)
        self._pass_over(body, self.position - first)
        return body

    def _take_body(self) -> AnswerBody | None:
        body, self._body = self._body, None
        if self.interrupter is not None:
            self.interrupter.watch(None)
        return body

    def _request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"Bucket": self.object.bucket, "Key": self.object.key}
        if self.object.if_match is not None:
            request["IfMatch"] = self.object.if_match
        if self._end < self.object.size:
            request["Range"] = f"bytes={self.position}-{self._end - 1}"
        elif self.position:
            request["Range"] = f"bytes={self.position}-"
        return request

    def _refuse_other_version(self, answer: Mapping[str, Any], size: int | None) -> None:
        """A server may know no If-Match, and a cache between may have forgotten it."""
        etag = plain_etag(answer.get("ETag"))
        if etag and self.object.etag and not same_etag(etag, self.object.etag):
            raise ObjectChangedError(
                f"the server sends the version {etag}, and {self.object.etag} was listed (see s3.overwrite.policy)",
                self.where,
            )
        if size is not None and size != self.object.size:
            kind = SourceError if etag and self.object.etag else ObjectChangedError
            raise kind(f"the server sends {size} bytes, and {self.object.size} were listed: list again", self.where)

    def _pass_over(self, body: AnswerBody, count: int) -> None:
        """Drop what a server that knows no Range sends before the byte that was asked for."""
        left = count
        with s3_failures(self.where):
            for piece in body.pieces(count):
                self.attempts.refuse_stopping()
                self._fetched(len(piece))
                left -= len(piece)
        if left:
            raise RetriableError("the connection ended before the byte that was asked for", self.where)

    def _received(self, count: int) -> None:
        if not count:
            return
        self._fetched(count)
        self.position += count
        self.attempts.progressed()
        if self.position == self._end and (body := self._take_body()) is not None:
            body.finish()

    def _fetched(self, count: int) -> None:
        self.fetched += count
        self.count("s3_bytes_fetched", count)


def _extent(answer: Mapping[str, Any]) -> tuple[int, int | None]:
    """The byte that an answer begins with, and the size of the whole object as far as it says so."""
    found = CONTENT_RANGE.match(answer.get("ContentRange") or "")
    if found is None:
        return 0, answer.get("ContentLength")
    return int(found[1]), None if found[3] == "*" else int(found[3])
