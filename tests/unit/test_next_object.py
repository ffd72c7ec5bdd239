"""The request for the next object, which is made before its turn."""

import threading

import attrs
import pytest

from headrace.framework.errors import SourceError
from headrace.sources.s3.next_object import NextObject
from headrace.sources.s3.objects import S3Object

WITHIN_S = 30


@attrs.define
class Stream:
    """As much of a stream as there is before anybody reads."""

    closed: threading.Event = attrs.field(factory=threading.Event)

    def close(self):
        self.closed.set()


@pytest.fixture
def first():
    return S3Object(bucket="b", key="first", etag="1", size=1_000_000, last_modified=0)


@pytest.fixture
def second(first):
    return attrs.evolve(first, key="second")


def test_an_object_that_was_asked_for_comes_with_its_stream(first):
    """Once; its counts are its own."""
    stream = Stream()

    def begin(_found, _stopping, count):
        count("gets", 1)
        return stream

    coming = NextObject(begin, threading.Event())
    coming.ask(first)
    begun, again = coming.take(first), coming.take(first)

    assert (begun.stream, begun.counts, again) == (stream, {"gets": 1}, None)
    assert not stream.closed.is_set()


def test_an_object_that_was_not_asked_for_is_nobodys(first, second):
    """Another one's stream stays for its own turn."""
    coming = NextObject(lambda *_: Stream(), threading.Event())
    coming.ask(first)

    assert coming.take(second) is None
    assert coming.take(first).stream is not None


def test_a_failure_is_left_to_the_reader(first):
    """What could not be asked for has no stream, and its request is counted all the same."""

    def begin(_found, _stopping, count):
        count("gets", 1)
        raise SourceError("no")

    coming = NextObject(begin, threading.Event())
    coming.ask(first)
    begun = coming.take(first)

    assert (begun.stream, begun.counts) == (None, {"gets": 1})


def test_who_is_asked_for_next_takes_the_place(first, second):
    """One connection is open at the most; asking again for the same object changes nothing."""
    streams = {first: Stream(), second: Stream()}
    coming = NextObject(lambda found, *_: streams[found], threading.Event())

    coming.ask(first)
    coming.ask(first)
    coming.ask(second)

    assert streams[first].closed.wait(WITHIN_S)
    assert coming.take(second).stream is streams[second]


def test_an_answer_that_comes_after_the_end_is_dropped(first):
    """Its connection is not left open."""
    stream, answer = Stream(), threading.Event()
    coming = NextObject(lambda *_: stream if answer.wait(WITHIN_S) else None, threading.Event())

    coming.ask(first)
    coming.close()
    answer.set()

    assert stream.closed.wait(WITHIN_S)


def test_a_stop_waits_for_no_answer(first):
    """Where the task is to stop, nobody waits for what is still under way."""
    stream, answer, stopping = Stream(), threading.Event(), threading.Event()
    coming = NextObject(lambda *_: stream if answer.wait(WITHIN_S) else None, stopping)

    coming.ask(first)
    stopping.set()
    assert coming.take(first) is None
    answer.set()

    assert stream.closed.wait(WITHIN_S)
