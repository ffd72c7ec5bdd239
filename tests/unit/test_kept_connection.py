"""GETs over a kept connection: every answer of a stated length, however it arrives, and no other."""

import socket
import threading
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sources.s3.kept_connection import KeptConnection

MOST = 100
WITHIN_S = 20
CONTENT = b"0123456789"
PLAIN = b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "v: 1"\r\nX-Two: a\r\nX-Two: b\r\n\r\n' + CONTENT


@contextmanager
def asked(*pieces, ends=True):
    """A connection that has asked for something, to a server that answers with these pieces."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.settimeout(WITHIN_S)
        for piece in pieces:
            theirs.sendall(piece)
        if ends:
            theirs.shutdown(socket.SHUT_WR)
        connection = KeptConnection(mine)
        connection.ask("/a%20b?c", {"host": "example.com", "if-match": '"v"'})
        yield connection, theirs


def answer_to(*pieces):
    with asked(*pieces) as (connection, _):
        return connection.answer(MOST), connection.is_open


def test_a_request_is_what_was_asked():
    """A request has the target and the headers that were given, in their order, and nothing else."""
    with asked(PLAIN) as (_, server):
        assert server.recv(1000) == b'GET /a%20b?c HTTP/1.1\r\nhost: example.com\r\nif-match: "v"\r\n\r\n'


@given(cuts=st.sets(st.integers(1, len(PLAIN) - 1)))
def test_an_answer_is_the_same_however_it_arrives(cuts):
    """Wherever the network cuts an answer, it is read whole, and the connection goes on."""
    places = [0, *sorted(cuts), len(PLAIN)]
    pieces = [PLAIN[start:end] for start, end in pairwise(places)]
    mine, theirs = socket.socketpair()

    class Slow:
        """A socket that gives out one piece at a time."""

        def recv(self, _size):
            return pieces.pop(0)

        def __getattr__(self, name):
            return getattr(mine, name)

    with mine, theirs:
        connection = KeptConnection(Slow())
        connection.ask("/", {})
        answer = connection.answer(MOST)

        assert (answer.status, answer.reason, answer.content) == (200, "OK", CONTENT)
        assert answer.headers["etag"] == '"v: 1"'
        assert connection.is_open


def test_one_answer_after_the_other_is_read():
    """A connection that is open has nothing left of the answer before."""
    with asked(PLAIN, ends=False) as (connection, server):
        first = connection.answer(MOST)
        server.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n")
        connection.ask("/other", {})
        second = connection.answer(MOST)

        assert (first.status, second.status, second.reason, second.content) == (200, 404, "Not Found", b"")
        assert connection.is_open


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: Close", CONTENT),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 10", CONTENT),
        (b"HTTP/1.1 200 OK\r\nServer: x", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 101", None),
        (b"HTTP/1.1 100 Continue", None),
        (b"HTTP/1.1 304\r\nETag: x", None),
    ],
)
def test_behind_an_answer_of_another_kind_the_connection_is_closed(head, content):
    """What is of no stated length, or too long, is not read; nothing is asked over a connection with a rest in it."""
    answer, is_open = answer_to(head + b"\r\n\r\n" + CONTENT)

    assert (answer.status, answer.content) == (int(head.split()[1]), content)
    assert not is_open


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (PLAIN[:30], "closed the connection"),
        (PLAIN[:-1], "closed the connection"),
        (PLAIN + b"!", "more than the 10 bytes"),
        (PLAIN.replace(b"ETag", b"Content-Length"), "two lengths"),
        (b"SSH-2.0-x\r\n\r\n", "not answer in HTTP"),
        (b"HTTP/1.1 2xx OK\r\n\r\n", "not answer in HTTP"),
        (b"HTTP/2 200\r\n\r\n", "not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "headers are more"),
    ],
)
def test_an_answer_that_is_none_is_an_error(answer, said):
    """A broken answer is never taken for an object."""
    with asked(answer) as (connection, _):
        with pytest.raises(OSError, match=said):
            connection.answer(MOST)
        assert not connection.is_open


def test_a_server_that_closes_before_it_answers_is_an_error_of_asking():
    """What a kept connection that was closed meanwhile says is said before anything of an answer is there."""
    with pytest.raises(OSError, match="closed the connection"), asked():
        pass


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\r"])
def test_a_header_does_not_end_within(value):
    """A value with a line end in it is refused before anything is sent."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        with pytest.raises(ValueError, match="line end"):
            KeptConnection(mine).ask("/", {"x": value})
        mine.close()
        assert theirs.recv(10) == b""


def test_closing_breaks_what_another_thread_waits_for():
    """Whoever waits for an answer does not wait on when the connection is closed."""
    mine, theirs = socket.socketpair()
    failures = []

    def wait():
        try:
            connection.ask("/", {})
        except OSError as error:
            failures.append(error)

    with mine, theirs:
        mine.settimeout(WITHIN_S)
        connection = KeptConnection(mine)
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert theirs.recv(1000)
        connection.close()
        waiting.join(WITHIN_S / 2)

        assert not waiting.is_alive()
        assert failures
