"""An object of 2 GB on its way from S3 to Kafka, and the memory that this takes."""

import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MB = 1024 * 1024
LIMIT = 250 * MB
SIZE = 2048 * MB
EVERY_S = 0.05

LISTING = f"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<Name>big</Name><Prefix/><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>
<Contents><Key>big.jsonl</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"big"</ETag>
<Size>{SIZE}</Size><StorageClass>STANDARD</StorageClass></Contents>
</ListBucketResult>""".encode()


class OneBigObject(BaseHTTPRequestHandler):
    """A bucket with one object, made while it is sent: moto would hold it in memory, several times."""

    protocol_version = "HTTP/1.1"
    line: bytes

    def do_GET(self):
        """Answer a listing, or the object from the byte on that is asked for."""
        if "list-type" in self.path:
            self.answer(200, len(LISTING))
            self.wfile.write(LISTING)
            return
        wanted = self.headers.get("range")
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "bytes=0-").groups()
        first, end = int(first), min(SIZE, int(last or SIZE) + 1)
        self.answer(206 if wanted else 200, end - first, **{"content-range": f"bytes {first}-{end - 1}/{SIZE}"})
        block = memoryview(self.line * (2 * MB // len(self.line)))
        while first < end:
            start = first % len(self.line)
            first += self.wfile.write(block[start : start + min(MB, end - first)])

    def answer(self, status, length, **headers):
        self.send_response_only(status)
        for name, value in {"content-length": length, "etag": '"big"', **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def big_object(line):
    """The endpoint of a server that has it."""
    handler = type("Handler", (OneBigObject,), {"line": line})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def largest_python(process):
    """The largest resident size that any Python process of a run has, looked at again and again until it ends."""
    largest, ended = 0, threading.Event()
    while process.returncode is None:
        for one in with_all_below(process.pid):
            # It may end while it is looked at.
            with suppress(psutil.Error):
                if "python" in one.name():
                    largest = max(largest, one.memory_info().rss)
        ended.wait(EVERY_S)
    return largest


def with_all_below(pid):
    """A process and everything that it has started."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


@pytest.mark.parametrize("line_bytes", [256, 4096])
def test_two_gigabytes_pass_through_a_quarter(job, line_bytes):
    """No Python process of the run grows beyond 250 MB, whether the object has short lines or long ones."""
    line = b'{"text":"%s"}\n' % (b"x" * (line_bytes - 12))
    with big_object(line) as endpoint:
        process = job.start(
            "--available-now",
            "--master",
            "local[2]",
            aws__s3__endpoint=endpoint,
            aws__s3__bucket__name="big",
            tasks__max="1",
        )
        largest = largest_python(process)

    assert process.wait() == 0, process.tail(40)
    assert f"{job.name}: {SIZE // line_bytes} records of 1 objects" in process.output()
    assert 0 < largest < LIMIT
