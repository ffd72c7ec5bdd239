import pytest

from headrace.sources.s3.seekable import SeekableObject
from headrace.transformers.seeking import SeekableStream

DATA = bytes(range(251)) * 4096


class Range:
    """One GET of a range, which gives at most 10,000 bytes at a time."""

    def __init__(self, start, end):
        self.start, self.end = start, len(DATA) if end is None else min(end, len(DATA))
        self.at, self.closed = start, False

    def read(self, size):
        data = DATA[self.at : min(self.end, self.at + min(size, 10_000))]
        self.at += len(data)
        return data

    def close(self):
        self.closed = True


@pytest.fixture
def ranges():
    """Every range that was opened."""
    return []


@pytest.fixture
def seekable(ranges):
    def open_range(start, end):
        ranges.append(Range(start, end))
        return ranges[-1]

    return SeekableObject(open_range, len(DATA))


def read(stream, size):
    found = b""
    while len(found) < size and (data := stream.read(size - len(found))):
        found += data
    return found


def extents(ranges):
    return [(one.start, one.end) for one in ranges]


def test_one_get_until_somebody_goes_elsewhere(seekable, ranges):
    """Read from front to back, an object is one GET of all of it, and its end is an end."""
    assert isinstance(seekable, SeekableStream)
    assert read(seekable, len(DATA) + 1) == DATA
    assert seekable.read(1) == b""
    assert extents(ranges) == [(0, len(DATA))]


def test_no_more_is_fetched_than_is_wanted(seekable, ranges):
    """Of a place that is said to be read for so many bytes, no more are asked for; reading on asks for more."""
    seekable.go_to(500_000, wanted=100)
    assert read(seekable, 100) == DATA[500_000:500_100]
    assert read(seekable, 150) == DATA[500_100:500_250]
    assert read(seekable, 100) == DATA[500_250:500_350]
    assert extents(ranges) == [(500_000, 500_100), (500_100, 500_300), (500_300, 500_700)]


def test_what_is_wanted_can_be_taken_back(seekable, ranges):
    """Whoever finds that all of it is wanted gets the rest in one range."""
    seekable.go_to(0, wanted=16)
    seekable.read(10)
    seekable.read_to_the_end()

    assert read(seekable, len(DATA)) == DATA[10:]
    assert extents(ranges) == [(0, 16), (16, len(DATA))]


def test_going_elsewhere_drops_what_is_open(seekable, ranges):
    """Going far ahead, or back, opens another range, and closes the one before it."""
    read(seekable, 100)
    seekable.go_to(900_000)
    assert read(seekable, 10) == DATA[900_000:900_010]
    seekable.go_to(5, wanted=5)
    assert read(seekable, 5) == DATA[5:10]
    assert extents(ranges) == [(0, len(DATA)), (900_000, len(DATA)), (5, 10)]
    assert [one.closed for one in ranges] == [True, True, False]


def test_a_short_way_ahead_is_read(seekable, ranges):
    """A little way ahead is read and dropped over the connection that is open, if that reaches so far."""
    read(seekable, 100)
    seekable.go_to(30_000)
    assert read(seekable, 10) == DATA[30_000:30_010]
    assert len(ranges) == 1

    seekable.go_to(500_000, wanted=100)
    seekable.go_to(500_200, wanted=10)
    assert read(seekable, 10) == DATA[500_200:500_210]
    assert extents(ranges)[1:] == [(500_200, 500_210)]


def test_going_nowhere_asks_for_nothing(seekable, ranges):
    """Going about without reading opens nothing."""
    for byte in (5, 500_000, 0):
        seekable.go_to(byte, wanted=10)
    seekable.close()

    assert ranges == []
