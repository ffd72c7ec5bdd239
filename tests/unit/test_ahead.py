"""Objects that are fetched before their turn."""

import threading

import attrs

from headrace.framework.errors import SourceError
from headrace.sources.s3.ahead import AT_ONCE, MOST_HELD, MOST_HELD_BYTES, WHOLE_BYTES, Ahead
from headrace.sources.s3.objects import S3Object


def objects(count, size=3):
    return [S3Object(bucket="b", key=f"k{n}", etag=str(n), size=size, last_modified=0) for n in range(count)]


def always(_):
    return True


def never(_):
    return False


def test_so_many_are_under_way_at_once():
    """Requests wait for their answers side by side, and each object's bytes and counts are its own."""
    together = threading.Barrier(AT_ONCE, timeout=30)

    def fetch(found, _stopping, count):
        together.wait()
        count("gets", 1)
        return found.key.encode()

    ahead = Ahead(fetch, threading.Event())
    coming = objects(AT_ONCE)
    ahead.ask(coming, unless=never)
    taken = [ahead.take(found) for found in coming]
    ahead.close()

    assert [result.content for result in taken] == [found.key.encode() for found in coming]
    assert [result.counts for result in taken] == [{"gets": 1}] * AT_ONCE


def test_what_is_held_is_bounded():
    """No more than so many objects are asked for, each once; large, empty and excluded ones are not."""
    asked = []
    ahead = Ahead(lambda found, _stopping, _count: asked.append(found.key) or b"x", threading.Event())
    many = objects(MOST_HELD * 2)
    for _ in range(3):
        ahead.ask(many, unless=never)
    held = [ahead.take(found) for found in many[:MOST_HELD]]
    beyond = [ahead.take(found) for found in many[MOST_HELD:]]
    ahead.ask([*objects(1, size=WHOLE_BYTES + 1), *objects(1, size=0)], unless=never)
    ahead.ask(many, unless=always)
    ahead.close()

    assert all(held)
    assert beyond == [None] * MOST_HELD
    assert sorted(asked) == sorted(found.key for found in many[:MOST_HELD])


def test_the_bytes_that_are_held_are_bounded():
    """As many objects as may be held at once are asked for, in their order, and more when half of them are taken."""
    asked = []
    ahead = Ahead(lambda found, _stopping, _count: asked.append(found.key) or b"x", threading.Event())
    fit = MOST_HELD_BYTES // WHOLE_BYTES
    many = [*objects(fit + 1, size=WHOLE_BYTES), *(attrs.evolve(found, key="small") for found in objects(1))]
    ahead.ask(many, unless=never)
    had_room = ahead.has_room
    known = [found for found in many if ahead.has_asked_for(found)]
    for found in many[: fit // 2]:
        ahead.take(found)
    has_room = ahead.has_room
    ahead.ask(many[fit // 2 :], unless=never)
    held = [ahead.take(found) for found in many[fit // 2 :]]
    ahead.close()

    assert known == many[:fit]
    assert (had_room, has_room) == (False, True)
    assert [result is not None for result in held] == [True] * len(held)
    assert sorted(asked) == sorted(found.key for found in many)


def test_a_failure_is_left_to_the_reader():
    """What could not be fetched has no bytes, and the others come all the same."""

    def fetch(found, _stopping, count):
        count("gets", 1)
        if found.key == "k1":
            raise SourceError("no")
        return b"x"

    ahead = Ahead(fetch, threading.Event())
    ahead.ask(objects(3), unless=never)
    taken = [ahead.take(found) for found in objects(3)]
    ahead.close()

    assert [result.content for result in taken] == [b"x", None, b"x"]
    assert taken[1].counts == {"gets": 1}


def test_a_stop_waits_for_no_answer():
    """Where the task is to stop, nobody waits for what is still under way."""
    stopping, answer = threading.Event(), threading.Event()
    ahead = Ahead(lambda *_: b"x" if answer.wait(30) else b"", stopping)
    (found,) = objects(1)
    ahead.ask([found], unless=never)
    stopping.set()

    assert ahead.take(found) is None
    ahead.close()
    answer.set()


def test_what_was_given_up_is_dropped():
    """An answer that comes when nobody waits for its object any more is kept by nobody."""
    stopping, answer, asked = threading.Event(), threading.Event(), threading.Event()

    def fetch(*_):
        asked.set()
        return b"x" if answer.wait(30) else b""

    ahead = Ahead(fetch, stopping)
    (found,) = objects(1)
    ahead.ask([found], unless=never)
    assert asked.wait(30)
    stopping.set()
    assert ahead.take(found) is None
    stopping.clear()
    answer.set()

    assert ahead.take(found) is None
    ahead.close()


class Watched(threading.Event):
    """Says when somebody who waits has looked at it."""

    def __init__(self):
        super().__init__()
        self.looked = threading.Event()

    def is_set(self):
        self.looked.set()
        return super().is_set()


def test_whoever_waits_gets_on_when_it_is_closed():
    """Closing it ends the waiting for an answer that is still under way."""
    stopping, answer, taken = Watched(), threading.Event(), []
    ahead = Ahead(lambda *_: b"x" if answer.wait(30) else b"", stopping)
    (found,) = objects(1)
    ahead.ask([found], unless=never)
    waiting = threading.Thread(target=lambda: taken.append(ahead.take(found)))
    waiting.start()
    assert stopping.looked.wait(30)
    ahead.close()
    waiting.join(10)
    ended = not waiting.is_alive()
    answer.set()

    assert ended
    assert taken == [None]
