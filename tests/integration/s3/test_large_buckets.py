"""Buckets of more objects than anybody wants in memory, from a server that makes its listing up."""

import gc
import threading
import tracemalloc
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from headrace.framework.driver.planning import make_plan

PAGE = 1000
FEW, MANY = 10_000, 20_000
BYTES_OF_AN_OBJECT = 500
"""With a few hundred MB for everything else, a million take less than 1 GB."""


class Listing(BaseHTTPRequestHandler):
    """A listing of `count` objects; there is nothing to read in them."""

    protocol_version = "HTTP/1.1"
    count = 0

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        first = int(query.get("continuation-token", ["0"])[0])
        end = min(self.count, first + PAGE)
        items = "".join(
            f"<Contents><Key>data/2026/part-{number:09d}.jsonl</Key><Size>8</Size><StorageClass>STANDARD</StorageClass>"
            f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;{number:032x}&quot;</ETag></Contents>"
            for number in range(first, end)
        )
        token = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < self.count else ""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>many</Name><KeyCount>{end - first}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
            f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def bucket_of(count):
    """The endpoint of a server with so many objects."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Listing,), {"count": count})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def peak_of_a_plan(count, kafka_bootstrap_servers):
    """The most that Python's objects take at once while so many objects are planned and put in words."""
    with bucket_of(count) as endpoint:
        props = {
            "name": f"plan-{count}",
            "connector.class": "s3",
            "topic": "t",
            "tasks.max": "2",
            "bootstrap.servers": kafka_bootstrap_servers,
            "offset.storage.topic": "there-is-none",
            "input.format": "jsonl",
            "aws.s3.bucket.name": "many",
            "aws.s3.endpoint": endpoint,
            "aws.access.key.id": "key",
            "aws.secret.access.key": "secret",
        }
        gc.collect()
        tracemalloc.start()
        try:
            plan = make_plan(props, first=0)
            lines = sum(1 for _ in plan.json_lines())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (plan.totals["to_read"], lines) == (count, count + 2)
    return peak


def test_a_plan_keeps_little_of_each_object(kafka_bootstrap_servers):
    """What a plan takes grows by some hundred bytes an object, so that a million of them fit into a gigabyte."""
    peak_of_a_plan(PAGE, kafka_bootstrap_servers)  # what comes in once comes in now
    few = peak_of_a_plan(FEW, kafka_bootstrap_servers)
    many = peak_of_a_plan(MANY, kafka_bootstrap_servers)
    of_an_object = (many - few) / (MANY - FEW)
    assert of_an_object < BYTES_OF_AN_OBJECT, f"{of_an_object:.0f} bytes an object"
