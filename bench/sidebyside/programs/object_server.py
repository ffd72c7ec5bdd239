"""An S3 server without storage: it makes the objects of a dataset when they are asked for, and keeps them in memory.

A bucket of a hundred thousand objects needs no time to fill, and one event loop with kept-alive connections costs far
less CPU than a general server, so that what reads them is measured and not what serves them. It lists in pages and
answers GETs of objects, or of ranges of them, and HEADs, to anybody.

    object_server.py FOLDER-OF-SIDEBYSIDE
"""

import asyncio
import hashlib
import re
import sys
from collections import deque
from collections.abc import Sequence
from urllib.parse import parse_qs, unquote

import attrs

sys.path.insert(0, sys.argv[1])

from sidebyside.data import Dataset

from headrace.framework.compat import override

STAMP = "2026-01-01T00:00:00.000Z"
MODIFIED = "Thu, 01 Jan 2026 00:00:00 GMT"
HEAD_END = b"\r\n\r\n"
MOST_KEPT_BYTES = 2 << 30
PIECE_BYTES = 256 * 1024
FOLDER = re.compile(r"made-(\d+)x(\d+)x(\d+)")
OBJECT = re.compile(r"(?P<folder>[^/]+)/part-(?P<number>\d+)\.jsonl")
RANGE = re.compile(r"^range: *bytes=(\d+)-(\d*)", re.IGNORECASE | re.MULTILINE)


class Objects(asyncio.Protocol):
    """One connection, request after request.

    The transport is given no more than it may keep: it would copy the rest of a large object into memory of its own.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        """Nothing has come, and nothing is to go."""
        self.received = b""
        self.to_go: deque[memoryview] = deque()
        self.paused = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what answers go to."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a server of TCP
        self.transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete; none of them has a body."""
        self.received += data
        while HEAD_END in self.received:
            head, _, self.received = self.received.partition(HEAD_END)
            self.to_go.extend(map(memoryview, answer(head.decode("latin-1"))))
        self._go_on()

    @override
    def pause_writing(self) -> None:
        """The reader is behind."""
        self.paused = True

    @override
    def resume_writing(self) -> None:
        """The reader has caught up."""
        self.paused = False
        self._go_on()

    def _go_on(self) -> None:
        while self.to_go and not self.paused:
            rest = self.to_go.popleft()
            if len(rest) > PIECE_BYTES:
                self.to_go.appendleft(rest[PIECE_BYTES:])
            self.transport.write(rest[:PIECE_BYTES])


def answer(head: str) -> Sequence[bytes | memoryview]:
    """The answer to a GET, or to a HEAD."""
    method, target, _ = head.split(" ", 2)
    path, _, asked = target.partition("?")
    _, bucket, key = (*path.split("/", 2), "")[:3]
    if not key:
        query = {name: values[0] for name, values in parse_qs(asked, keep_blank_values=True).items()}
        return [packed("200 OK", listing(bucket, query).encode(), "application/xml")]
    whole = KEPT.answer(key)
    if method == "HEAD":
        return [whole[: whole.index(HEAD_END) + len(HEAD_END)]]
    wanted = RANGE.search(head)
    return part(key, whole, int(wanted[1]), int(wanted[2] or sys.maxsize)) if wanted else [whole]


def content(key: str) -> bytes:
    """The answer to a GET of an object, made."""
    found = OBJECT.fullmatch(unquote(key))
    if found is None:
        return packed("404 Not Found", b"", "application/xml")
    body = dataset(found["folder"]).body(int(found["number"]))
    return packed("200 OK", body, "binary/octet-stream", f'ETag: "{etag(key)}"\r\n')


@attrs.define
class Kept:
    """Answers that were made, as many as fit; whose object was asked for last goes last."""

    answers: dict[str, bytes] = attrs.field(factory=dict)
    size: int = 0

    def answer(self, key: str) -> bytes:
        """The answer to a GET of an object."""
        whole = self.answers.pop(key, b"")
        if not whole:
            whole = content(key)
            self.size += len(whole)
        while self.answers and self.size > MOST_KEPT_BYTES:
            self.size -= len(self.answers.pop(next(iter(self.answers))))
        self.answers[key] = whole
        return whole


KEPT = Kept()


def part(key: str, whole: bytes, first: int, last: int) -> Sequence[bytes | memoryview]:
    """The answer to a GET of some of its bytes."""
    body = memoryview(whole)[whole.index(HEAD_END) + len(HEAD_END) :]
    some = body[first : last + 1]
    marks = f'ETag: "{etag(key)}"\r\nContent-Range: bytes {first}-{first + len(some) - 1}/{len(body)}\r\n'
    return [head_of("206 Partial Content", len(some), "binary/octet-stream", marks), some]


def dataset(name: str) -> Dataset:
    """The dataset of this name, which says what is in it: made-OBJECTSxLINESxSIZE. Any other has no objects."""
    found = FOLDER.fullmatch(name)
    objects, lines, size = map(int, found.groups()) if found else (0, 0, 0)
    return Dataset(name=name, objects=objects, lines=lines, size=size)


def listing(bucket: str, query: dict[str, str]) -> str:
    """A page of ListObjectsV2."""
    prefix, most = query.get("prefix", ""), int(query.get("max-keys", "1000"))
    data = dataset(prefix.rstrip("/"))
    after = query.get("continuation-token") or query.get("start-after", "")
    first = 0 if after <= prefix else int(after.rpartition("-")[2].split(".")[0]) + 1
    numbers = range(first, min(first + most, data.objects))
    items = "".join(
        f"<Contents><Key>{key}</Key><LastModified>{STAMP}</LastModified><ETag>&quot;{etag(key)}&quot;</ETag>"
        f"<Size>{data.lines * (data.size + 1)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key in (f"{data.name}/{data.key(number)}" for number in numbers)
    )
    more = numbers.stop < data.objects
    token = f"<NextContinuationToken>{data.name}/{data.key(numbers[-1])}</NextContinuationToken>" if more else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{bucket}</Name><Prefix>{prefix}</Prefix><KeyCount>{len(numbers)}</KeyCount><MaxKeys>{most}</MaxKeys>"
        f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
    )


def etag(key: str) -> str:
    """An object's etag, the same in listings and answers."""
    return hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()


def packed(status: str, body: bytes, kind: str, marks: str = "") -> bytes:
    """An answer as bytes."""
    return head_of(status, len(body), kind, marks) + body


def head_of(status: str, size: int, kind: str, marks: str) -> bytes:
    """The head of an answer with a body of this size."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n"
        f"Last-Modified: {MODIFIED}\r\n{marks}\r\n"
    )
    return head.encode()


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Objects, "127.0.0.1", 0)
    print(f"Running on {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
