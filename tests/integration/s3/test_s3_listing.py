"""A listing shows every object that is to be read, once, and cannot be led astray."""

import itertools
import re
import threading

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.errors import RetriableError, SourceError
from headrace.framework.stage import Stage
from headrace.sources.s3.attempts import Attempts
from headrace.sources.s3.listing import Listing, Skipped, find_object, list_objects
from headrace.testing.faulty_s3 import Answer, CutBody, Fault, Pass, Response, Rewrite, listings


@pytest.fixture
def put(s3, bucket):
    """Put small objects under keys."""

    def put(*keys, body=b"x", **more):
        for key in keys:
            s3.put_object(Bucket=bucket, Key=key, Body=body, **more)

    return put


@pytest.fixture
def listed(client, bucket, attempts):
    """The keys that a listing through the proxy shows."""

    def listed(**more):
        found = list_objects(client, Listing(bucket=bucket, **more), attempts)
        return [each.key for each in found]

    return listed


@attrs.frozen
class EmptyPage(Fault):
    """A page without objects, which names always the same one as the next."""

    @override
    def before(self, request):
        text = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        page = Response(status=200, headers={"content-type": "application/xml"}, body=b"")
        return page.with_body(f"<ListBucketResult>{text}</ListBucketResult>".encode())


def edit(change):
    """A fault that changes the text of a page."""
    return Rewrite(lambda page: page.with_body(change(page.body.decode()).encode()), on=listings)


def test_an_object_comes_with_all_that_tells_its_version(s3, bucket, client, attempts, put):
    """A listing gives an object's size, etag without quotation marks, time in milliseconds and storage class."""
    put("one", body=b"12345")
    (found,) = list_objects(client, Listing(bucket=bucket), attempts)
    head = s3.head_object(Bucket=bucket, Key="one")
    assert (found.bucket, found.key, found.size, found.storage_class) == (bucket, "one", 5, "STANDARD")
    assert found.etag == head["ETag"].strip('"')
    assert found.last_modified == head["LastModified"].timestamp() * 1000
    assert found == find_object(client, bucket, "one", attempts)


def test_an_empty_bucket_has_no_objects(listed, faulty):
    """A bucket without objects ends at once, after one request."""
    assert listed() == []
    assert len(faulty.lists) == 1


def test_keys_of_every_kind_come_in_order(listed, put):
    """Keys with spaces, signs, and letters from all over are listed as they are, in the order of their bytes."""
    keys = ["a b+c&d", "a/b/c", "100%", "ä/ö", "日本", "😀", "a\rb", "a%20b"]
    put(*keys)
    assert listed(page_size=3) == sorted(keys)


def test_pages_are_fetched_when_they_are_needed(client, bucket, attempts, put, faulty):
    """The second page is asked for when the first is used up, and the last is the last."""
    put(*(f"k{number}" for number in range(5)))
    found = list_objects(client, Listing(bucket=bucket, page_size=2), attempts)
    assert len(faulty.lists) == 0
    assert [each.key for each in itertools.islice(found, 2)] == ["k0", "k1"]
    assert len(faulty.lists) == 1
    assert [each.key for each in found] == ["k2", "k3", "k4"]
    assert [request.query["max-keys"] for request in faulty.lists] == ["2"] * 3


def test_finding_5_a_thousand_objects_cost_one_request(listed, put, faulty):
    """Finding 5: by default a page has up to 1000 objects."""
    put("a")
    listed()
    assert faulty.lists[0].query["max-keys"] == "1000"


def test_finding_5_calls_are_counted(client, bucket, attempts, put):
    """Finding 5: what a listing costs is counted."""
    put(*(f"k{number}" for number in range(5)))
    counted = []
    list(list_objects(client, Listing(bucket=bucket, page_size=2, count=lambda *what: counted.append(what)), attempts))
    assert counted == [("s3_list_calls", 1)] * 3


def test_finding_11_every_page_names_the_prefix_and_the_start(listed, put, faulty):
    """Finding 11: page 2 and later carry the prefix and the start key; nothing outside of the prefix is listed."""
    put("a/1", "a/2", "a/3", "a/4", "b/1")
    assert listed(prefix="a/", start_after="a/1", page_size=1) == ["a/2", "a/3", "a/4"]
    asked = [(page.query.get("prefix"), page.query.get("start-after")) for page in faulty.lists]
    assert len(asked) > 1
    assert set(asked) == {("a/", "a/1")}


def test_finding_11_a_page_that_leaves_the_prefix_is_an_error(client, bucket, attempts, put, faulty):
    """Finding 11: a server that forgets the prefix on page 2 is found out before a foreign object is given out."""
    put("a/1", "a/2")
    faulty.script(Pass(on=listings), edit(lambda page: page.replace("<Key>a/2<", "<Key>b/2<")))
    found = list_objects(client, Listing(bucket=bucket, prefix="a/", page_size=1), attempts)
    assert next(found).key == "a/1"
    with pytest.raises(SourceError, match=r"leaves its prefix with 'b/2'") as caught:
        next(found)
    assert caught.value.where.stage is Stage.DISCOVER


def test_a_page_that_is_named_again_is_an_error_and_no_loop(listed, faulty):
    """A server that hands out a token for the second time would be asked for ever."""
    faulty.script(*[EmptyPage(on=listings)] * 9)
    with pytest.raises(SourceError, match="names a page again"):
        listed()
    assert len(faulty.lists) == 2


def test_a_listing_that_goes_backwards_is_an_error(listed, put, faulty):
    """Page 2 must go on where page 1 ended: a key that is not behind the last one is an error."""
    put("a", "b", "c")
    faulty.script(Pass(on=listings), edit(lambda page: page.replace("<Key>b<", "<Key>a<")))
    with pytest.raises(SourceError, match="goes backwards, from 'a' to 'a'"):
        listed(page_size=1)


def test_more_pages_without_a_token_are_an_error(listed, put, faulty):
    """A listing that says that it is cut and not where it goes on does not pass for a whole one."""
    put("a", "b")
    faulty.script(edit(lambda page: re.sub("<NextContinuationToken>.*</NextContinuationToken>", "", page)))
    with pytest.raises(SourceError, match="has more pages, and names none"):
        listed(page_size=1)


def test_a_server_that_knows_no_start_costs_requests_only(listed, put, faulty):
    """Keys up to the start key are dropped where a server lists them all the same."""
    put("a", "b", "c")
    faulty.script(edit(lambda page: page.replace("<Key>c<", "<Key>b<", 1)))
    assert listed(start_after="b") == []


def test_what_cannot_be_read_is_left_out_with_a_word(client, bucket, attempts, put):
    """Empty objects, directory markers and archives are left out, each with its reason; GLACIER_IR is no archive."""
    put("dir/", "empty", "old_$folder$", body=b"")
    put("frozen", StorageClass="GLACIER")
    put("deep", StorageClass="DEEP_ARCHIVE")
    put("cool", StorageClass="GLACIER_IR")
    put("looks-like-a-dir/")
    skipped = {}
    listing = Listing(bucket=bucket, on_skipped=lambda found, reason: skipped.update({found.key: reason}))
    assert [found.key for found in list_objects(client, listing, attempts)] == ["cool", "looks-like-a-dir/"]
    assert skipped == {
        "dir/": Skipped.MARKER,
        "old_$folder$": Skipped.MARKER,
        "empty": Skipped.EMPTY,
        "frozen": Skipped.ARCHIVED,
        "deep": Skipped.ARCHIVED,
    }
    assert "have it restored" in Skipped.ARCHIVED


def test_a_page_that_fails_is_asked_for_again(listed, put, faulty):
    """Throttling, and a page that breaks off, cost another request; nothing is missing or doubled."""
    put("a", "b", "c")
    faulty.script(
        Answer(503, "SlowDown", on=listings),
        Pass(on=listings),
        CutBody(100, on=listings),
        edit(lambda page: page[:200]),
        Answer(500, "InternalError", on=listings),
    )
    assert listed(page_size=1) == ["a", "b", "c"]
    assert len(faulty.lists) == 7


def test_a_listing_gives_up_with_a_retriable_error(client, bucket, put, faulty):
    """When the attempts are used up the error is retriable, and keeps its cause."""
    put("a")
    faulty.script(*[Answer(503, "SlowDown", on=listings)] * 9)
    with pytest.raises(RetriableError, match="SlowDown") as caught:
        list(list_objects(client, Listing(bucket=bucket), Attempts(retries=2)))
    assert caught.value.__cause__ is not None
    assert len(faulty.lists) == 3


def test_a_missing_bucket_is_named(client, attempts):
    """A bucket that is not there is an error that names it and the keys to look at."""
    with pytest.raises(SourceError, match=r"s3://no-such-bucket/: there is no such bucket: check aws.s3.bucket.name"):
        list(list_objects(client, Listing(bucket="no-such-bucket"), attempts))


def test_a_listing_stops_with_its_task(client, bucket, put, faulty):
    """No page is asked for when the task is to stop."""
    put("a", "b")
    stopping = threading.Event()
    found = list_objects(client, Listing(bucket=bucket, page_size=1), Attempts(stopping=stopping))
    next(found)
    stopping.set()
    with pytest.raises(RetriableError, match="task is to stop"):
        next(found)
    assert len(faulty.lists) == 1


def test_an_object_that_is_not_there_is_not_found(client, bucket, attempts):
    """Looking up an object that is gone gives None."""
    assert find_object(client, bucket, "gone", attempts) is None
