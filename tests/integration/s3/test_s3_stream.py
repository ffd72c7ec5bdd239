"""The bytes of an object come out whole and once, whatever happens to the connection."""

import random
import threading
import tracemalloc

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.errors import (
    ObjectArchivedError,
    ObjectChangedError,
    ObjectVanishedError,
    RetriableError,
    SourceError,
)
from headrace.framework.metrics import TaskMetrics
from headrace.framework.stage import Stage
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.client import Connection, make_client
from headrace.sources.s3.interrupt import Interrupter
from headrace.sources.s3.listing import find_object
from headrace.sources.s3.stream import ObjectStream
from headrace.testing.faulty_s3 import Answer, CutBody, Fault, Hang, Meanwhile, Rewrite

MB = 1024 * 1024
CONTENT = random.Random(4711).randbytes(400_000)  # noqa: S311 - any bytes do


@pytest.fixture
def put(s3, bucket):
    """Put content under a key; the answer is the object as a listing would show it."""

    def put(content=CONTENT, key="some/object", **more):
        s3.put_object(Bucket=bucket, Key=key, Body=content, **more)
        return find_object(s3, bucket, key, Attempts())

    return put


@pytest.fixture
def open_stream(client, attempts):
    """Open a stream of an object through the proxy."""
    opened = []

    def open_stream(found, **more):
        stream = ObjectStream(client=client, object=found, **{"attempts": attempts, **more})
        opened.append(stream)
        return stream

    yield open_stream
    for stream in opened:
        stream.close()


@attrs.frozen
class StopAndFail(Fault):
    """The task is to stop while the server answers with a 503."""

    stopping: threading.Event

    @override
    def before(self, request):
        self.stopping.set()
        return Answer(503, "SlowDown").before(request)


def drain(stream, size=65_536):
    """Everything that a stream gives."""
    return b"".join(iter(lambda: stream.read(size), b""))


def test_an_object_comes_out_byte_for_byte_in_one_get(put, open_stream, faulty):
    """An object is read with a single GET, which carries If-Match with its etag."""
    found = put()
    assert drain(open_stream(found)) == CONTENT
    assert [(get.headers["if-match"], "range" in get.headers) for get in faulty.gets] == [(f'"{found.etag}"', False)]


@pytest.mark.parametrize("size", [1_000, 32_768, 262_144, 10_000_000])
def test_a_read_gives_at_most_what_was_asked_for(put, open_stream, size):
    """No read gives more than its size, and none before the last gives nothing."""
    stream = open_stream(put())
    parts = list(iter(lambda: stream.read(size), b""))
    assert b"".join(parts) == CONTENT
    assert all(0 < len(part) <= size for part in parts)


def test_an_end_stays_an_end(put, open_stream, faulty):
    """After the end every read gives nothing, and asks the server nothing."""
    stream = open_stream(put())
    drain(stream)
    assert stream.read(10) == b""
    assert len(faulty.gets) == 1


def test_an_empty_object_needs_no_get(put, open_stream, faulty):
    """An object without bytes ends at once."""
    assert open_stream(put(b"")).read(10) == b""
    assert faulty.gets == []


def test_reading_goes_on_from_a_stored_byte(put, open_stream, faulty):
    """A stream that starts at byte n fetches what comes from there, of the version that was listed."""
    found = put()
    stream = open_stream(found, start=123_456)
    assert drain(stream) == CONTENT[123_456:]
    assert stream.fetched == len(CONTENT) - 123_456
    assert [(get.headers["range"], get.headers["if-match"]) for get in faulty.gets] == [
        ("bytes=123456-", f'"{found.etag}"')
    ]


def test_a_position_behind_the_end_is_refused(put, open_stream):
    """A stored position that the object cannot have is an error, not an end."""
    with pytest.raises(SourceError, match="lies outside the object, which has 3 bytes"):
        open_stream(put(b"abc"), start=4)


def test_a_broken_connection_is_taken_up_at_the_byte_where_it_broke(put, open_stream, faulty):
    """A body that breaks off at byte 4,711 goes on from there; nothing is missing, doubled, or fetched in vain."""
    found = put()
    faulty.script(CutBody(4711))
    stream = open_stream(found)
    assert drain(stream) == CONTENT
    assert [get.headers.get("range") for get in faulty.gets] == [None, "bytes=4711-"]
    assert {get.headers["if-match"] for get in faulty.gets} == {f'"{found.etag}"'}
    assert stream.fetched == sum(get.sent for get in faulty.gets) == len(CONTENT)


def test_a_connection_that_is_reset_loses_nothing_that_came(put, open_stream, faulty):
    """After a reset, which throws away what had not been read yet, the object is whole, and no byte came twice."""
    faulty.script(CutBody(4711, reset=True), CutBody(300_000, reset=True))
    stream = open_stream(put())
    assert drain(stream) == CONTENT
    assert stream.fetched == len(CONTENT)
    assert len(faulty.gets) == 3


def test_a_short_body_is_a_broken_connection_and_never_an_end(put, open_stream, faulty):
    """A body that is shorter than announced, or that is announced shorter, is not taken for the whole object."""
    faulty.script(
        CutBody(0),
        CutBody(len(CONTENT) - 1),
        Rewrite(lambda response: response.with_header("content-length", None)),
        CutBody(0),
    )
    assert drain(open_stream(put())) == CONTENT


def test_a_body_without_a_length_is_held_against_the_listing(put, open_stream, faulty):
    """Where a server announces no length, the listing's decides where the object ends."""
    faulty.script(
        Rewrite(lambda response: response.with_body(response.body[:1000]).with_header("content-length", None))
    )
    stream = open_stream(put())
    assert drain(stream) == CONTENT
    assert faulty.gets[1].headers["range"] == "bytes=1000-"


def test_finding_3_a_retryable_error_on_get_does_not_lose_the_object(put, open_stream, faulty):
    """Finding 3: after a 503 on the second GET, and one on the first, the object is read to its end."""
    faulty.script(Answer(503, "SlowDown"), CutBody(4711), Answer(503, "SlowDown"), Answer(500, "InternalError"))
    metrics = TaskMetrics()
    attempts = Attempts(count=metrics.count)
    stream = open_stream(put(), attempts=attempts, count=metrics.count)
    assert drain(stream) == CONTENT
    assert metrics.extra == {"s3_get_calls": 5, "s3_retries": 3, "s3_bytes_fetched": len(CONTENT)}


def test_finding_3_when_the_attempts_are_used_up_the_next_read_goes_on_at_the_same_byte(put, open_stream, faulty):
    """Finding 3: giving up is a RetriableError that keeps its cause, and loses nothing: another read goes on."""
    faulty.script(CutBody(4711), *[Answer(503, "SlowDown")] * 4)
    stream = open_stream(put())
    first = stream.read(65_536)
    with pytest.raises(RetriableError, match="SlowDown") as caught:
        drain(stream)
    assert caught.value.__cause__ is not None
    assert caught.value.where.position == "byte 4711"
    assert first + drain(stream) == CONTENT
    assert len(faulty.gets) == 6


def test_progress_makes_the_next_failure_the_first_again(put, open_stream, faulty):
    """An object may break more often than there are attempts, as long as something comes in between."""
    faulty.script(*[CutBody(40_000)] * 9)
    stream = open_stream(put())
    assert drain(stream) == CONTENT
    assert stream.fetched == sum(get.sent for get in faulty.gets) == len(CONTENT)


def test_the_attempts_are_bounded(put, open_stream, faulty):
    """With two retries the server is asked three times."""
    faulty.script(*[Answer(503, "SlowDown")] * 9)
    stream = open_stream(put(), attempts=Attempts(retries=2))
    with pytest.raises(RetriableError):
        stream.read(1)
    assert len(faulty.gets) == 3


def test_finding_5_an_object_that_is_overwritten_on_the_way_is_never_mixed(put, open_stream, faulty):
    """An object that is overwritten between two GETs is an ObjectChangedError: no byte of the new version comes out."""
    found = put()
    faulty.script(CutBody(4711), Meanwhile(lambda: put(CONTENT[::-1])))
    stream = open_stream(found)
    assert stream.read(65_536) == CONTENT[:4711]
    with pytest.raises(ObjectChangedError, match="overwritten since it was listed") as caught:
        stream.read(65_536)
    assert found.key in str(caught.value)
    assert caught.value.where.stage is Stage.READ
    assert caught.value.__cause__ is not None


def test_an_object_that_was_overwritten_before_the_first_get_is_found_out(put, open_stream):
    """The first GET asks for the listed version, too."""
    found = put()
    put(b"something else")
    with pytest.raises(ObjectChangedError):
        open_stream(found).read(1)


def test_a_server_that_ignores_if_match_is_found_out_by_its_etag(put, open_stream, faulty):
    """The answer's own etag is compared: another one is an ObjectChangedError before a byte is given out."""
    faulty.script(Rewrite(lambda response: response.with_header("etag", '"0123456789"')))
    with pytest.raises(ObjectChangedError, match="sends the version 0123456789"):
        open_stream(put()).read(1)


@pytest.mark.parametrize("etag", ["W/{}", '"{}"', "{}", None])
def test_an_etag_means_the_same_in_whatever_clothes(put, open_stream, faulty, etag):
    """Quotation marks, a mark of weakness, or a missing etag make no other version."""
    found = put()
    answer = None if etag is None else etag.format(found.etag)
    faulty.script(Rewrite(lambda response: response.with_header("etag", answer)))
    assert drain(open_stream(found)) == CONTENT


def test_an_object_uploaded_in_parts_is_resumed_like_any_other(s3, bucket, client, attempts, faulty):
    """The etag of a multipart upload is no checksum, and names the version all the same."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="parts", UploadId=upload, PartNumber=1, Body=CONTENT)
    s3.complete_multipart_upload(
        Bucket=bucket,
        Key="parts",
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )
    found = find_object(s3, bucket, "parts", attempts)
    assert found.etag.endswith("-1")
    faulty.script(CutBody(4711))
    with ObjectStream(client=client, object=found, attempts=attempts) as stream:
        assert drain(stream) == CONTENT


def test_a_weak_etag_is_compared_but_not_asked_for(put, open_stream, faulty):
    """If-Match never holds for a weak etag, so it is left out, and the answer's etag decides."""
    found = put()
    weak = attrs.evolve(found, etag=f"W/{found.etag}")
    assert drain(open_stream(weak)) == CONTENT
    assert "if-match" not in faulty.gets[0].headers
    put(CONTENT[::-1])
    with pytest.raises(ObjectChangedError):
        open_stream(weak).read(1)


def test_an_object_that_vanishes_is_named(s3, put, open_stream, faulty):
    """An object that is deleted between two GETs is an ObjectVanishedError with its name."""
    found = put()
    faulty.script(CutBody(4711), Meanwhile(lambda: s3.delete_object(Bucket=found.bucket, Key=found.key)))
    stream = open_stream(found)
    assert stream.read(65_536) == CONTENT[:4711]
    with pytest.raises(ObjectVanishedError, match=found.key):
        stream.read(65_536)


def test_an_archived_object_is_told_apart(put, open_stream):
    """An archive that shows only at the GET is an ObjectArchivedError, for the reader to leave the object out."""
    with pytest.raises(ObjectArchivedError, match="lies in an archive"):
        open_stream(put(StorageClass="GLACIER")).read(1)


def test_a_range_that_the_object_does_not_have_is_a_change(put, open_stream, faulty):
    """A server that answers 416 to a byte within the listed size has another object there."""
    faulty.script(Answer(416, "InvalidRange"))
    with pytest.raises(ObjectChangedError, match="shorter than when it was listed"):
        open_stream(put(), start=100).read(1)


def test_another_size_under_the_same_etag_is_an_error(put, open_stream, faulty):
    """A server that sends another size than it listed is not believed."""
    faulty.script(Rewrite(lambda response: response.with_body(response.body[:1000])))
    with pytest.raises(SourceError, match="sends 1000 bytes, and 400000 were listed"):
        open_stream(put()).read(1)


def test_a_server_without_ranges_costs_bytes_and_nothing_else(put, open_stream, faulty):
    """Where Range is ignored, what comes before the byte is dropped."""

    def whole(response):
        return attrs.evolve(response.with_body(CONTENT).with_header("content-range", None), status=200)

    faulty.script(CutBody(100_000), Rewrite(whole))
    stream = open_stream(put())
    assert drain(stream) == CONTENT
    assert stream.fetched == 100_000 + len(CONTENT)


def test_a_read_object_gives_its_connection_back(put, open_stream, faulty):
    """Two objects that are read to their ends, one after the other, come over one connection."""
    for key in ("one", "two"):
        drain(open_stream(put(key=key)))
    assert len({get.connection for get in faulty.gets}) == 1


def test_memory_does_not_grow_with_the_object(s3, s3_endpoint, bucket):
    """Reading 32 MB in pieces of 1 MB takes the memory of a few pieces."""
    s3.put_object(Bucket=bucket, Key="big", Body=bytes(32 * MB))
    connection = Connection(endpoint=s3_endpoint, access_key_id="key", secret_access_key="secret")  # noqa: S106
    client = make_client(connection)
    found = find_object(client, bucket, "big", Attempts())
    with ObjectStream(client=client, object=found, attempts=Attempts()) as stream:
        total = len(stream.read(MB))
        tracemalloc.start()
        while piece := stream.read(MB):
            total += len(piece)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    client.close()
    assert total == 32 * MB
    assert peak < 5 * MB


def test_close_may_come_at_any_time(put, open_stream, faulty):
    """A stream that is closed half-way, twice, holds no connection, and reading on opens another one."""
    stream = open_stream(put())
    first = stream.read(1000)
    stream.close()
    stream.close()
    assert first + drain(stream) == CONTENT
    assert faulty.gets[1].headers["range"] == "bytes=1000-"


def test_a_stop_ends_a_read_that_waits(put, open_stream, faulty):
    """A read that waits for a silent server ends as soon as the task is to stop, with an error and not with an end."""
    stopping = threading.Event()
    interrupter = Interrupter(stopping)
    faulty.script(Hang(65_536))
    stream = open_stream(put(), attempts=Attempts(stopping=stopping), interrupter=interrupter)
    assert stream.read(65_536) == CONTENT[:65_536]
    waiting = threading.Timer(0.2, stopping.set)
    waiting.start()
    with pytest.raises(RetriableError, match="task is to stop") as caught:
        stream.read(1)
    waiting.join()
    interrupter.close()
    stopped = caught.value.__cause__
    assert isinstance(stopped, RetriableError)
    assert stopped.__cause__ is None  # woken, and not by the client's own time-out


def test_a_stop_ends_the_waits_between_attempts(put, open_stream, faulty):
    """Between two attempts the wait ends when the task is to stop, and the server is not asked again."""
    stopping = threading.Event()
    faulty.script(StopAndFail(stopping))
    stream = open_stream(put(), attempts=Attempts(stopping=stopping))
    with pytest.raises(RetriableError, match="task is to stop"):
        stream.read(1)
    assert len(faulty.gets) == 1


def test_an_interrupter_ends_its_thread(put, open_stream):
    """A closed interrupter leaves no thread behind."""
    interrupter = Interrupter(threading.Event())
    drain(open_stream(put(), interrupter=interrupter))
    interrupter.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "s3-interrupter"]
