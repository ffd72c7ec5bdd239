import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tracemalloc
from itertools import repeat

import cramjam
import lz4.frame
import pytest

from headrace.framework.errors import ConfigError, DataError, RetriableError
from headrace.framework.stage import Stage
from headrace.testing.streams import ScriptedStream, SeekableBytes, drained
from headrace.transformers.base import Position
from headrace.transformers.compression import KINDS, check_kind, detect, open_decompressed
from headrace.transformers.jsonl import JsonlTransformer
from headrace.transformers.seeking import Cursor, SeekableStream

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def xerial(data, block=100):
    """What Java's SnappyOutputStream writes."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + block])) for at in range(0, len(data), block)]
    head = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2
    return head + b"".join(len(part).to_bytes(4, "big") + part for part in blocks)


def hadoop(data, block=100, chunk=40):
    """What Hadoop's BlockCompressorStream writes: nothing is a block of its own, and large blocks are in chunks."""
    packed = len(data[:block]).to_bytes(4, "big")
    for at in range(0, len(data), block):
        inside = data[at : at + block]
        chunks = [bytes(cramjam.snappy.compress_raw(inside[k : k + chunk])) for k in range(0, len(inside), chunk)]
        packed += len(inside).to_bytes(4, "big") * bool(at)
        packed += b"".join(len(part).to_bytes(4, "big") + part for part in chunks)
    return packed


def framed(data):
    return bytes(cramjam.snappy.compress(data))


PACKED = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
    "lz4": lambda data: lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, content_checksum=True),
    "snappy": framed,
    "snappy-xerial": xerial,
    "snappy-hadoop": hadoop,
}
EVERY = pytest.mark.parametrize("form", PACKED)
WITH_AN_END = pytest.mark.parametrize("form", ["gzip", "bz2", "xz", "zstd", "lz4"])
LINES = [json.dumps({"n": n, "text": os.urandom(20).hex()}).encode() for n in range(20)]
CONTENT = b"\n".join(LINES) + b"\n"


def kind_of(form):
    return form.partition("-")[0]


def name_of(form):
    """A name by which a form is told that has no mark."""
    return "x.snappy" if form == "snappy-hadoop" else "x"


def content(stream, size=1000):
    return b"".join(iter(lambda: stream.read(size), b""))


def jsonl(stream):
    return drained(JsonlTransformer().batches(stream, Position()))


@EVERY
@pytest.mark.parametrize("asked", ["auto", "named"])
def test_content_comes_out(form, asked):
    """Each compression gives the content back, asked for by name and told by its first bytes, whatever the reads."""
    packed = PACKED[form](CONTENT)
    stream = ScriptedStream.cut(packed, *range(1, len(packed), 7))

    opened = open_decompressed(stream, name_of(form), "auto" if asked == "auto" else kind_of(form))

    assert opened.kind == kind_of(form)
    assert content(opened, 13) == CONTENT


@EVERY
def test_members_one_after_the_other_are_one_content(form):
    """Compressed files that were put together are the contents put together."""
    packed = PACKED[form](CONTENT) + PACKED[form](b"") + PACKED[form](b"more\n")

    assert content(open_decompressed(io.BytesIO(packed), "x", kind_of(form))) == CONTENT + b"more\n"


@EVERY
def test_reads_are_as_long_as_asked_for(form):
    """A read gives as many bytes as it was asked for until the content ends, so that batches are not tiny."""
    opened = open_decompressed(io.BytesIO(PACKED[form](CONTENT)), "x", kind_of(form))

    sizes = [len(opened.read(300)) for _ in range(len(CONTENT) // 300 + 2)]

    assert sizes == [300] * (len(CONTENT) // 300) + [len(CONTENT) % 300, 0]


@WITH_AN_END
def test_cut_at_every_byte_is_never_silent(form):
    """Finding 2: a compressed object cut at any byte gives its first records, then an error with a place."""
    packed = PACKED[form](CONTENT)
    for kind, cut in [(kind, cut) for kind in ("auto", form) for cut in range(1, len(packed))]:
        name = {"gzip": "x.jsonl.gz", "bz2": "x.bz2", "xz": "x.xz", "zstd": "x.jsonl.zst", "lz4": "x.lz4"}[form]
        values, error = jsonl(open_decompressed(io.BytesIO(packed[:cut]), name, kind))

        assert values == LINES[: len(values)]
        assert isinstance(error, DataError), (kind, cut)
        assert error.where.stage is Stage.TRANSFORM
        assert error.where.position is not None
        assert "ends in the middle" in str(error)


@pytest.mark.parametrize("form", ["snappy", "snappy-xerial", "snappy-hadoop"])
def test_cut_snappy_is_an_error_within_a_block(form):
    """Finding 2: Snappy cut at any byte but between two blocks, where it has no mark, is an error with a place."""
    packed = PACKED[form](CONTENT)
    ends = _block_ends(packed, form)
    for cut in range(1, len(packed)):
        _, error = drained_bytes(open_decompressed(io.BytesIO(packed[:cut]), "x.snappy", "auto"))

        assert (error is None) == (cut in ends)
        assert error is None or error.where.position.startswith("byte ")


def _block_ends(packed, form):
    if form == "snappy-hadoop":
        return {len(hadoop(CONTENT[:size])) for size in range(100, len(CONTENT), 100)}
    at, ends = (10, {10}) if form == "snappy" else (16, {16})
    while at < len(packed):
        size = packed[at + 1 : at + 4] if form == "snappy" else packed[at : at + 4]
        at += 4 + int.from_bytes(size, "little" if form == "snappy" else "big")
        ends.add(at)
    return ends


def drained_bytes(opened):
    data = b""
    try:
        while piece := opened.read(1000):
            data += piece
    except DataError as error:
        return data, error
    return data, None


@EVERY
def test_damage_is_an_error_after_what_came_before(form):
    """Finding 2: a flipped byte never changes the content in silence: it is an error with a place."""
    packed = PACKED[form](CONTENT)
    errors = 0
    for at in range(0, len(packed), 5):
        damaged = packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :]
        data, error = drained_bytes(open_decompressed(io.BytesIO(damaged), "x", kind_of(form)))
        if error:
            errors += 1
            assert error.where.position == f"byte {len(data)}"
        elif form not in {"snappy-xerial", "snappy-hadoop"}:  # which have no checksum
            assert data == CONTENT

    assert errors


@WITH_AN_END
def test_something_else_behind_the_end_is_an_error(form):
    """Finding 2: what follows compressed data and is none is an error after the content, not left out."""
    packed = PACKED[form](CONTENT) + b"and something else, which is longer than any header"

    values, error = jsonl(open_decompressed(io.BytesIO(packed), "x", form))

    assert values == LINES
    assert isinstance(error, DataError)
    assert error.where.position == f"byte {len(CONTENT)}"
    assert form in str(error)


@pytest.mark.parametrize(
    ("form", "allowed"), [("gzip", True), ("xz", True), ("bz2", False), ("zstd", False), ("lz4", False)]
)
def test_zeros_behind_the_end(form, allowed):
    """Zeros behind and between members are padding for gzip and xz; anywhere else they are damage."""
    packed = PACKED[form](CONTENT)
    zeros = bytes(70_000)

    values, error = jsonl(open_decompressed(io.BytesIO(packed + zeros + packed + zeros), "x", form))

    assert (values, error is None) == (LINES * 2 if allowed else LINES, allowed)
    assert isinstance(jsonl(open_decompressed(io.BytesIO(zeros + packed), "x", form))[1], DataError)


@EVERY
def test_error_of_the_stream_passes_through(form):
    """Finding 2: a stream that fails is no end: its error passes as it is, at every read from then on."""
    fault = RetriableError("the connection broke")
    big = b"".join(os.urandom(500) for _ in range(1000))
    packed = PACKED[form](big)
    opened = open_decompressed(ScriptedStream([packed[:-5], fault]), "x", kind_of(form))
    seen = b""

    with pytest.raises(RetriableError) as first:
        seen += content(opened)
    with pytest.raises(RetriableError) as second:
        opened.read(1)

    assert first.value is second.value is fault


@EVERY
def test_what_came_before_an_error_is_given_out(form):
    """Finding 2: records in front of the place where the stream failed are given out before its error."""
    fault = RetriableError("the connection broke")
    lines = [os.urandom(500).hex() for _ in range(2000)]
    packed = PACKED[form]("".join(f'"{line}"\n' for line in lines).encode())

    values, error = jsonl(open_decompressed(ScriptedStream([packed[:-2], fault]), "x", kind_of(form)))

    assert error is fault
    assert len(values) > len(lines) * 0.4
    assert [json.loads(value) for value in values] == lines[: len(values)]


@EVERY
def test_skip_leaves_out_what_was_read_before(form):
    """Reading goes on inside a compressed object at a byte of its content."""
    for skip in (0, 1, 777, len(CONTENT)):
        opened = open_decompressed(io.BytesIO(PACKED[form](CONTENT)), name_of(form), skip=skip)

        assert content(opened) == CONTENT[skip:]


def test_skip_beyond_the_end_is_an_error():
    """An object that has become shorter than what was read of it is an error, not the end."""
    with pytest.raises(DataError, match=r"byte 3: the object ends before byte 4"):
        open_decompressed(io.BytesIO(b"abc"), "x", "none", skip=4)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_object_without_bytes_holds_nothing(kind):
    """An object without bytes is empty under every compression and name."""
    assert content(open_decompressed(io.BytesIO(b""), "x.gz", kind)) == b""


@pytest.mark.parametrize("data", [b"plain", b"\x1f", b"\x1f\x8b", b"BZh is my name\n", b"BZh9", b"(", b"\x00" * 20])
@pytest.mark.parametrize("kind", ["none", "auto"])
def test_plain_objects_are_taken_as_they_are(data, kind):
    """What does not begin with the mark of a compression is plain."""
    opened = open_decompressed(ScriptedStream.cut(data, *range(20)), "data.jsonl", kind)

    assert opened.kind == "none"
    assert content(opened) == data


def test_none_does_not_look():
    """With none, bytes are bytes, and nothing is read before it is asked for."""
    packed = gzip.compress(b"x")
    stream = ScriptedStream([packed])

    opened = open_decompressed(stream, "x.gz", "none")

    assert stream.read(2) == packed[:2]
    assert content(opened) == packed[2:]


SKIPPED = b"\x53\x2a\x4d\x18\x04\0\0\0abcd"


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.jsonl", gzip.compress(b"", mtime=0), "gzip"),
        ("a.GZ", gzip.compress(b"", mtime=0), "gzip"),
        ("a.gz", b'{"plain": true}', "none"),
        ("a.gz", zstd.compress(b""), "gzip"),
        ("a.gz", b"\x1f", "gzip"),
        ("a.gz", b"", "none"),
        ("a.jsonl", b"\x1f\x8b", "none"),
        ("a.zst", zstd.compress(b""), "zstd"),
        ("a.zst", SKIPPED + zstd.compress(b""), "zstd"),
        ("a", SKIPPED + zstd.compress(b""), "zstd"),
        ("a.lz4", SKIPPED + lz4.frame.compress(b""), "lz4"),
        ("a", bz2.compress(b""), "bz2"),
        ("a.bz2", bz2.compress(b"x"), "bz2"),
        ("a.txt", b"BZh and so on", "none"),
        ("a", lzma.compress(b""), "xz"),
        ("a.snappy", framed(b"x"), "snappy"),
        ("a", xerial(b""), "snappy"),
        ("a.snappy", hadoop(b"x"), "snappy"),
        ("a.jsonl", hadoop(b"x"), "none"),
        ("a.SNAPPY", b'{"plain": true}', "snappy"),
        ("a.sz", bytes(cramjam.snappy.compress_raw(b"raw")), "snappy"),
        ("a.snappy", gzip.compress(b"", mtime=0), "snappy"),
        ("a.snappy", b"", "none"),
        ("a.avro.snappy", b"Obj\x01\x02\x16avro.schema", "none"),
        ("a.snappy.avro", b"Obj\x01\x02\x16avro.schema", "none"),
        ("a.snappy.parquet", b"PAR1\x15\x04\x15", "none"),
        ("a", bytes(cramjam.lz4.compress(b"x")), "lz4"),
    ],
)
def test_content_decides_and_the_name_may_object(name, head, kind):
    """A mark is believed unless the name speaks of another compression; a name alone, if the mark is cut."""
    assert detect(name, head[:16]) == kind


@pytest.mark.parametrize("pack", [zstd.compress, lz4.frame.compress])
def test_frames_that_are_skipped_may_come_first(pack):
    """What begins with a frame of something else, as seekable and parallel writers have it, is unpacked by its name."""
    name = "a.zst" if pack is zstd.compress else "a.lz4"

    assert open_decompressed(io.BytesIO(SKIPPED + pack(b"content")), name).read(100) == b"content"


@pytest.mark.parametrize("skip", [0, 5])
def test_a_name_that_contradicts_the_content_is_an_error(skip):
    """An object that is of one compression by its name and of another by its first bytes is read as neither."""
    with pytest.raises(DataError, match=r"zstd by its first bytes and gzip by its name: rename it, or set file") as bad:
        open_decompressed(io.BytesIO(zstd.compress(b"content")), "a.gz", skip=skip).read(1)

    assert bad.value.where.position == "byte 0"
    assert open_decompressed(io.BytesIO(zstd.compress(b"content")), "a.gz", "zstd").read(100) == b"content"


def test_unknown_compression_is_a_fault_of_the_configuration():
    """A compression that does not exist is refused with the list of those that do."""
    with pytest.raises(ConfigError, match=r"file\.compression\.type: must be one of auto, none, gzip"):
        check_kind("brotli")


@pytest.mark.parametrize(("kind", "library"), [("zstd", "backports"), ("snappy", "cramjam"), ("lz4", "lz4.frame")])
def test_missing_library_is_named_with_its_extra(kind, library, monkeypatch):
    """Without its library a compression is refused with the extra that brings it; the others go on."""
    if kind == "zstd" and sys.version_info >= (3, 14):
        library = "compression"
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(ConfigError, match=rf"{kind} needs {library.partition('.')[0]}.*headrace\[avro\]"):
        open_decompressed(io.BytesIO(PACKED[kind](b"x")), "x", kind)
    assert content(open_decompressed(io.BytesIO(gzip.compress(b"x")), "x")) == b"x"


def test_importing_takes_no_library_with_it():
    """The libraries that extras bring are imported when they are used."""
    code = (
        "import sys, headrace.transformers.compression, headrace.transformers.jsonl, headrace.converters.json\n"
        "print({'cramjam', 'backports.zstd', 'lz4', 'msgspec', 'orjson'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


@EVERY
def test_memory_is_bounded_however_well_it_is_compressed(form):
    """Two hundred megabytes that pack into next to nothing take a few megabytes of memory."""
    stream = _packed_zeros(form)

    tracemalloc.start()
    try:
        opened = open_decompressed(stream, "x", kind_of(form))
        total = sum(map(len, iter(lambda: opened.read(256 * 1024), b"")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert total == 200_000_000
    assert peak < 16_000_000


def _packed_zeros(form):
    if form == "gzip":
        return io.BytesIO(gzip.compress(bytes(50_000_000), 1) * 4)
    if form == "snappy-xerial":
        return ScriptedStream([xerial(b""), *repeat(xerial(bytes(1_000_000), 32_768)[16:], 200)])
    if form == "snappy-hadoop":
        return ScriptedStream([*repeat(hadoop(bytes(1_000_000), 250_000, 100_000), 200)])
    return io.BytesIO(PACKED[form](bytes(200_000_000)))


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz", "zstd", "lz4"])
def test_a_bomb_is_named_before_it_is_unpacked(kind):
    """What unpacks to more than 64 MB, and to more than max_ratio times its size, is an error with the place in it."""
    bomb = PACKED[kind](bytes(70_000_000))
    cursor = Cursor(open_decompressed(io.BytesIO(bomb), f"x.{kind}", kind, max_ratio=10))

    with pytest.raises(DataError, match=r"more than 10 times .* max\.decompression\.ratio") as raised:
        cursor.exactly(70_000_000)

    assert 60_000_000 < cursor.position <= 64 * 1024 * 1024
    assert raised.value.where.position.startswith("byte 6")


def test_what_is_not_compressed_can_be_gone_about_in():
    """A plain object stays a stream that goes anywhere; a compressed one goes forward only."""
    plain = open_decompressed(SeekableBytes(b"0123456789"), "x", skip=4)
    assert isinstance(plain, SeekableStream)
    assert (plain.size, plain.read(2)) == (10, b"45")
    plain.go_to(1, wanted=3)
    assert plain.read(99) == b"123"

    packed = open_decompressed(SeekableBytes(PACKED["gzip"](b"0123456789")), "x.gz", skip=4)
    assert not isinstance(packed, SeekableStream)
    cursor = Cursor(packed)
    cursor.go_to(3)
    assert (cursor.read(1), cursor.position) == (b"7", 4)
    with pytest.raises(ValueError, match="does not go back to 1"):
        cursor.go_to(1)
    with pytest.raises(DataError, match="ends before byte 9"):
        cursor.go_to(9)


@pytest.mark.parametrize("name", ["a.snappy", "a.sz"])
@pytest.mark.parametrize(
    "data",
    [b"a plain line\n", b"x", bytes(20), bytes(cramjam.snappy.compress_raw(CONTENT))],
    ids=["a line", "a letter", "zeros", "without a frame"],
)
def test_snappy_that_cannot_be_told_is_an_error(name, data):
    """What is named like Snappy and has no form of it that is known, plain or raw, is no record but an error."""
    for kind in ("auto", "snappy"):
        values, error = jsonl(open_decompressed(io.BytesIO(data), name, kind))

        assert values == []
        assert isinstance(error, DataError)
        assert error.where.position == "byte 0"
        assert "set file.compression.type=none if it is plain" in error.message
    assert content(open_decompressed(io.BytesIO(data), name, "none")) == data


def test_hadoop_writes_nothing_as_an_empty_block():
    """An empty block at the beginning or the end is none; two of them are bytes that were lost."""
    empty = bytes(4)
    for packed in (empty, empty + hadoop(CONTENT), hadoop(CONTENT) + empty, hadoop(CONTENT) + empty + hadoop(b"")[4:]):
        found = drained_bytes(open_decompressed(io.BytesIO(packed), "x.snappy"))
        assert found == (CONTENT if len(packed) > 4 else b"", None)

    data, error = drained_bytes(open_decompressed(io.BytesIO(hadoop(CONTENT) + empty * 2), "x.snappy"))

    assert data == CONTENT
    assert error.where.position == f"byte {len(CONTENT)}"


def sizes(*numbers):
    return b"".join(number.to_bytes(4, "big") for number in numbers)


RAW = bytes(cramjam.snappy.compress_raw(b"y" * 50))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (sizes(64 * 1024 * 1024 + 1), "has a block of 67108865 bytes"),
        (sizes(50, 64 * 1024 * 1024 + 1), "has a chunk of 67108865 bytes"),
        (sizes(49, len(RAW)) + RAW, "has a chunk of 50 bytes where 49 are left"),
        (sizes(51, len(RAW)) + RAW + sizes(len(RAW)) + RAW, "has a chunk of 50 bytes where 1 are left"),
        (sizes(50, 1) + b"\0", "has a chunk of 0 bytes"),
        (sizes(50, 0), "is damaged"),
        (sizes(50, 5) + b"\xff\xff\xff\xff\x0f", "has a block that unpacks to more than 67108864 bytes"),
        (sizes(50, len(RAW)) + b"\x32" + b"\xff" * (len(RAW) - 1), "is damaged"),
    ],
)
def test_a_hadoop_block_that_is_not_what_it_says_is_an_error(block, words):
    """A block or chunk of another size than is said, or a larger one than any, is an error behind what came before."""
    data, error = drained_bytes(open_decompressed(io.BytesIO(hadoop(CONTENT) + block), "x.snappy"))

    assert data[: len(CONTENT)] == CONTENT
    assert words in error.message
    assert error.where.position == f"byte {len(data)}"
