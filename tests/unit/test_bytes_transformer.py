import io
import tracemalloc
from itertools import pairwise

import pytest

from headrace.framework.errors import ConfigError, OffsetsError, RetriableError
from headrace.framework.schema import BYTES
from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers.base import Position
from headrace.transformers.bytes import BytesTransformer


def chunked(size):
    transformer = BytesTransformer()
    transformer.configure({"transformer.max.buffer.size": str(size)})
    return transformer


def test_without_a_size_the_object_is_one_record():
    """By default an object is one record, whatever it is read in, and the place behind it is its end."""
    (batch,) = BytesTransformer().batches(ScriptedStream([b"ab\n", b"\x00", b"cd"]), Position())

    assert batch.values == [b"ab\n\x00cd"]
    assert batch.schema is BYTES
    assert batch.end == Position(records=1, byte=6)


def test_chunks_have_the_size_asked_for():
    """With a size, records are chunks of exactly that size and a shorter last one, whatever the reads were."""
    (first, last) = chunked(3).batches(ScriptedStream([b"a", b"bcdefg", b"h"]), Position())

    assert (first.values, last.values) == ([b"abc", b"def"], [b"gh"])
    assert [first.position_at(n) for n in range(3)] == [Position(records=n, byte=3 * n) for n in range(3)]
    assert last.end == Position(records=3, byte=8)


@pytest.mark.parametrize("size", [0, 1, 4096])
def test_empty_object_gives_nothing(size):
    """An object without bytes has no record."""
    assert list(chunked(size).batches(io.BytesIO(b""), Position())) == []


def test_resume_by_byte_or_by_count():
    """Reading goes on at a byte, or behind a number of chunks where only that is known."""
    by_byte = list(chunked(2).batches(io.BytesIO(b"cde"), Position(records=1, byte=2)))
    by_count = list(chunked(2).batches(io.BytesIO(b"abcde"), Position(records=1)))

    assert [batch.values for batch in by_byte] == [batch.values for batch in by_count] == [[b"cd"], [b"e"]]
    assert [batch.end for batch in by_byte] == [batch.end for batch in by_count]
    assert by_count[-1].end == Position(records=3, byte=5)


@pytest.mark.parametrize("count", [2, 25])
def test_more_chunks_to_skip_than_there_are_gives_nothing(count):
    """Progress at the end or beyond it gives nothing, as in Kafka Connect's source."""
    assert list(chunked(4).batches(io.BytesIO(b"abcde"), Position(records=count))) == []


def test_whole_object_behind_its_end_gives_nothing():
    """An object that was given out as one record is not given out again."""
    assert list(BytesTransformer().batches(io.BytesIO(b""), Position(records=1, byte=5))) == []


def test_progress_in_chunks_is_not_taken_for_whole_objects():
    """Finding 2: progress counted in chunks does not pass for whole objects, of which it would skip unread bytes."""
    values, error = drained(BytesTransformer().batches(io.BytesIO(b"abcde"), Position(records=1)))

    assert values == []
    assert isinstance(error, OffsetsError)
    assert "transformer.max.buffer.size=0" in str(error)
    assert "4096" in str(error)


@pytest.mark.parametrize("size", ["-1", "", "4k", "1.5", "2147483648", "9" * 5000, "٣"])
def test_impossible_size_is_a_fault_of_the_configuration(size):
    """A size that is no number of bytes from 0 to 2147483647 is refused with its key, its value and the range."""
    with pytest.raises(ConfigError, match=r"transformer\.max\.buffer\.size: must be 0, .* 2147483647") as raised:
        chunked(size)

    assert raised.value.faults[0].value == size


@pytest.mark.parametrize("size", ["1", "4096", " 7 ", "2147483647"])
def test_every_size_of_kafka_connect_is_taken(size):
    """Sizes from 1 to 2147483647 are accepted."""
    assert drained(chunked(size).batches(io.BytesIO(b"a"), Position())) == ([b"a"], None)


def test_error_of_the_stream_passes_through():
    """Finding 2: a stream that fails is no end: its error passes, after every complete chunk; half a chunk is none."""
    fault = RetriableError("the connection broke")

    assert drained(chunked(2).batches(ScriptedStream([b"abc", fault]), Position())) == ([b"ab"], fault)
    assert drained(BytesTransformer().batches(ScriptedStream([b"abc", fault]), Position())) == ([], fault)


def test_tiny_chunks_come_in_bounded_batches():
    """A batch has at most 5000 values, and its positions join up."""
    batches = list(chunked(1).batches(io.BytesIO(b"x" * 300_001), Position()))

    assert sum(len(batch.values) for batch in batches) == 300_001
    assert max(len(batch.values) for batch in batches) == 5000
    assert all(one.end == other.position_at(0) for one, other in pairwise(batches))


def test_memory_is_that_of_a_chunk():
    """A large object in chunks takes the memory of a chunk."""
    stream = ScriptedStream([bytes(250_000)] * 400)

    tracemalloc.start()
    try:
        total = sum(len(value) for batch in chunked(1_000_000).batches(stream, Position()) for value in batch.values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert total == 100_000_000
    assert peak < 8_000_000


def test_a_whole_object_has_a_largest_size():
    """An object of more than max.record.bytes is no record: the error names both ways out, and it is not read whole."""
    transformer = BytesTransformer()
    transformer.configure({"max.record.bytes": "5"})
    stream = ScriptedStream([b"abc", b"def", b"ghi"])

    values, error = drained(transformer.batches(stream, Position()))

    assert values == []
    assert error.where.position == "record 1"
    assert "max.record.bytes" in error.message
    assert "transformer.max.buffer.size" in error.message
    assert stream.read(9) == b"ghi"
    assert drained(transformer.batches(io.BytesIO(b"abcde"), Position())) == ([b"abcde"], None)
