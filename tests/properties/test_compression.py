import bz2
import gzip
import io
import lzma

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.testing.streams import ScriptedStream, drained
from headrace.transformers.base import Position
from headrace.transformers.compression import open_decompressed
from headrace.transformers.jsonl import JsonlTransformer


def hadoop(data):
    """What Hadoop writes: blocks of three hundred bytes in chunks of a hundred, each behind its length."""
    packed = b"" if data else bytes(4)
    for at in range(0, len(data), 300):
        block = data[at : at + 300]
        chunks = [bytes(cramjam.snappy.compress_raw(block[k : k + 100])) for k in range(0, len(block), 100)]
        packed += len(block).to_bytes(4, "big") + b"".join(len(chunk).to_bytes(4, "big") + chunk for chunk in chunks)
    return packed


PACKERS = {
    "none": bytes,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lz4.frame.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
    "snappy-hadoop": hadoop,
}
EVERY = pytest.mark.parametrize("kind", PACKERS)
PARTS = st.lists(
    st.binary(min_size=1, max_size=300) | st.binary(min_size=1, max_size=9).map(lambda x: x * 500), max_size=3
)
PLACES = st.lists(st.integers(min_value=0), max_size=6)


@EVERY
@given(parts=PARTS, places=PLACES, size=st.integers(1, 2000))
def test_content_comes_out(kind, parts, places, size):
    """Whatever the content, its members, the reads below and the reads above, the content comes out."""
    packed = b"".join(PACKERS[kind](part) for part in parts)
    opened = open_decompressed(ScriptedStream.cut(packed, *places), "x", kind.partition("-")[0])

    assert b"".join(iter(lambda: opened.read(size), b"")) == b"".join(parts)


@EVERY
@given(numbers=st.lists(st.integers(0, 10**6), min_size=1, max_size=30), places=PLACES, data=st.data())
def test_going_on_inside_gives_the_rest(kind, numbers, places, data):
    """From any place behind a record of a compressed object come the records that follow."""
    packed = PACKERS[kind]("\n".join(map(str, numbers)).encode())
    values = [str(number).encode() for number in numbers]
    name = "x.jsonl.snappy" if kind == "snappy-hadoop" else "x.jsonl"
    done = data.draw(st.integers(1, len(numbers)))
    pairs = list(JsonlTransformer().transform(open_decompressed(io.BytesIO(packed), name), Position()))
    start = pairs[done - 1][1]

    opened = open_decompressed(ScriptedStream.cut(packed, *places), name, skip=start.byte)

    assert drained(JsonlTransformer().batches(opened, start)) == (values[done:], None)
