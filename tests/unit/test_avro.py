import io
import json
import sys
import tracemalloc
import uuid
import zlib
from decimal import Decimal
from itertools import islice

import fastavro
import pytest

from headrace.framework.errors import ConfigError, DataError, RetriableError
from headrace.framework.schema import DATE, DECIMAL, MICRO_TIMESTAMP, TIME, TIMESTAMP, UUID
from headrace.testing.streams import ScriptedStream, SeekableBytes, drained
from headrace.transformers.avro import AvroTransformer
from headrace.transformers.avro_schema import UNION, AvroSchema
from headrace.transformers.base import Position

SYNC = b"0123456789abcdef"
ROW = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}
CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")


def written(schema, values, codec="null", *, per_block=None):
    """A container as fastavro writes it."""
    target = io.BytesIO()
    blocks = [values] if per_block is None else [values[at : at + per_block] for at in range(0, len(values), per_block)]
    fastavro.writer(target, schema, blocks[0] if blocks else [], codec=codec, sync_marker=SYNC, sync_interval=10**9)
    for block in blocks[1:]:
        fastavro.writer(target, schema, block, codec=codec, sync_marker=SYNC, sync_interval=10**9)
    return target.getvalue()


def number(value):
    """A number that is not negative, as Avro writes it."""
    value, found = value * 2, b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def rows(count):
    return [{"n": number, "s": f"row {number}"} for number in range(count)]


def transformer(**props):
    made = AvroTransformer()
    made.configure({key.replace("_", "."): value for key, value in props.items()})
    return made


def read(data, start=Position(), **props):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(transformer(**props).batches(SeekableBytes(data), start))


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back(codec):
    """What fastavro writes comes back value for value, in every codec."""
    assert read(written(ROW, rows(300), codec, per_block=70)) == (rows(300), None)


def test_an_unknown_codec_is_named():
    """A codec that nobody knows makes an object a bad one, named by it and with those that are read."""
    _, error = read(written(ROW, rows(1)).replace(b"\x08null", b"\x06lz5"))

    assert isinstance(error, DataError)
    assert "the codec is 'lz5', and what is read is null, deflate" in error.message
    assert error.where.position == "record 1"


def test_a_codec_without_its_library_is_a_fault_of_the_installation(monkeypatch):
    """A codec whose library is not installed is no fault of the object: the message says what to install."""
    monkeypatch.setitem(sys.modules, "cramjam", None)

    with pytest.raises(ConfigError, match=r"pip install 'headrace\[avro\]'"):
        list(transformer().batches(io.BytesIO(written(ROW, rows(1)).replace(b"\x08null", b"\x0csnappy")), Position()))


@pytest.mark.parametrize("data", [b"", written(ROW, [])])
def test_nothing_in_it_is_no_record(data):
    """An object without bytes, and a container without blocks, have no record."""
    assert read(data) == ([], None)


def test_positions_are_blocks_and_records_in_them():
    """A place in a block is its first byte and the records of it that are done; behind its last it is the next one."""
    data = written(ROW, rows(4), per_block=2)
    (batch,) = transformer().batches(SeekableBytes(data), Position())
    begin = data.index(SYNC) + 16
    middle = data.index(SYNC, begin) + 16

    assert [batch.position_at(n) for n in range(5)] == [
        Position(records=0, byte=begin, inside=1),
        Position(records=1, byte=begin, inside=2),
        Position(records=2, byte=middle, inside=1),
        Position(records=3, byte=middle, inside=2),
        Position(records=4, byte=len(data), inside=1),
    ]


@pytest.mark.parametrize("size", [10, 100_000])
def test_small_blocks_are_one_batch_and_large_ones_are_not(size):
    """A batch has the values of as many blocks as come to two thousand values, or to a megabyte."""
    data = written(ROW, [{"n": number, "s": "x" * size} for number in range(90)], per_block=5)

    batches = list(transformer().batches(SeekableBytes(data), Position()))

    assert [len(batch.values) for batch in batches] == ([90] if size == 10 else [10] * 9)


def test_a_resume_reads_the_header_and_the_tail():
    """Reading goes on in the right block, without the blocks before it."""
    data = written(ROW, [{"n": number, "s": "x" * 1000} for number in range(2000)], per_block=100)
    batches = list(transformer().batches(SeekableBytes(data), Position()))
    start = batches[-1].position_at(len(batches[-1].values) - 150)
    stream = SeekableBytes(data)
    stream.go_to(0, wanted=1000)

    values, error = drained(transformer().batches(stream, start))

    assert error is None
    assert [value["n"] for value in values] == [*range(1850, 2000)]
    assert stream.fetched < 0.11 * len(data)


def test_progress_by_count_alone_passes_blocks_over():
    """With records but no block, and in a stream without another way, that many records are passed over."""
    data = written(ROW, rows(10), per_block=4)
    (batch,) = transformer().batches(SeekableBytes(data), Position())
    start = batch.position_at(5)

    assert start.records == 5
    for stream, place in (
        (SeekableBytes(data), Position(records=5)),
        (SeekableBytes(data), Position(records=5, byte=start.byte)),
        (io.BytesIO(data), start),
    ):
        assert drained(transformer().batches(stream, place)) == (rows(10)[5:], None)
    assert read(data, Position(records=99)) == ([], None)


def test_logical_types_are_carried():
    """Dates, times, decimals and UUIDs have Connect's schemas, and the numbers that stand in the file."""
    schema = {
        "type": "record",
        "name": "org.example.Logical",
        "doc": "all of them",
        "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "fine", "type": {"type": "long", "logicalType": "timestamp-micros"}, "doc": "finer"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3}},
            {
                "name": "fixed",
                "type": {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "raw", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}},
            {"name": "small", "type": {"type": "int", "connect.type": "int8"}},
        ],
    }  # fmt: skip
    number_seven = uuid.UUID(int=7)
    value = {
        "day": 19_000, "time": 5, "at": -1, "fine": 2**60, "price": Decimal("-1" + "2" * 36 + ".345"),
        "fixed": Decimal("-0.01"), "id": number_seven, "raw": number_seven.bytes, "small": 3,
    }  # fmt: skip
    (batch,) = transformer().batches(SeekableBytes(written(schema, [value, value | {"at": None}])), Position())

    ids = dict.fromkeys(("id", "raw"), str(number_seven))
    assert batch.values == [value | ids, value | ids | {"at": None}]
    assert batch.schema.name == "org.example.Logical"
    assert batch.schema.doc == "all of them"
    fields = {field.name: field.schema for field in batch.schema.fields}
    assert [fields[name].name for name in value] == [
        DATE,
        TIME,
        TIMESTAMP,
        MICRO_TIMESTAMP,
        DECIMAL,
        DECIMAL,
        UUID,
        UUID,
        None,
    ]
    assert fields["price"].parameters == {"scale": "3"}
    assert fields["at"].optional
    assert not fields["day"].optional
    assert fields["fine"].doc == "finer"
    assert fields["small"].type == "int8"


def test_a_union_of_several_types_says_which():
    """A value of a union is an object whose field is named by the value's type, exactly the one it was written as."""
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {
                "name": "u",
                "type": [
                    "null", "int", "long", "string", {"type": "enum", "name": "a.E", "symbols": ["X"]},
                    {"type": "record", "name": "b.E", "fields": [{"name": "f", "type": ["null", "bytes"]}]},
                    {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
                ],
            }
        ],
    }  # fmt: skip
    header = written(schema, [])
    body = b"\x00\x02\x0e\x04\x0e\x06\x04hi\x08\x00\x0a\x02\x02z\x0c\x02\x02k\x02\x0f\x00"
    data = header + b"\x0e" + bytes([len(body) * 2]) + body + SYNC

    (batch,) = transformer().batches(SeekableBytes(data), Position())

    assert [value["u"] for value in batch.values] == [
        None, {"int": 7}, {"long": 7}, {"string": "hi"}, {"a.E": "X"}, {"b.E": {"f": b"z"}},
        {"map": {"k": Decimal("1.5")}},
    ]  # fmt: skip
    union = batch.schema.fields[0].schema
    assert (union.name, union.optional) == (UNION, True)
    assert [field.name for field in union.fields] == ["int", "long", "string", "a.E", "b.E", "map"]


def test_a_schema_that_holds_itself_has_values_and_no_schema():
    """Connect has no word for a recursive schema: its values come without one, to any sane depth."""
    schema = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "L"]}],
    }
    value = {"n": 1, "next": {"n": 2, "next": None}}
    (batch,) = transformer().batches(SeekableBytes(written(schema, [value])), Position())

    assert batch.values == [value]
    assert batch.schema is None
    body = b"\x02\x02" * 100_000 + b"\x02\x00"
    bomb = written(schema, [value]) + b"\x02" + number(len(body)) + body + SYNC
    values, error = read(bomb)
    assert values == [value]
    assert error.where.position == "record 2"
    assert "recursion" in error.message


def test_any_type_may_be_the_record():
    """The records of a container need not be Avro records."""
    assert read(written("string", ["a", "b"])) == (["a", "b"], None)
    assert read(written({"type": "array", "items": "int"}, [[1], []])) == ([[1], []], None)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (b'{"type":"array","items":"null"}', "values without bytes"),
        (b'{"type":"record","name":"R","fields":[{"name":"f","type":"Unknown"}]}', "there is no type 'Unknown'"),
        (b'"strin"', "there is no type 'strin'"),
        (b"{", "not one JSON value"),
        (b"[" * 600 + b"]" * 600, "nested more than 500 deep"),
        (b'{"type":"bytes","logicalType":"decimal","scale":-1}', "scale"),
        (b"7", "there is no type in"),
        (
            b'{"type":"record","name":"R","fields":[{"name":"f","type":"int"},{"name":"f","type":"int"}]}',
            "two fields of one name",
        ),
    ],
)
def test_a_bad_schema_is_named(schema, words):
    """Finding 2: a schema that cannot be read is an error that says why."""
    data = b"Obj\x01\x02\x16avro.schema" + number(len(schema)) + schema + b"\x00" + SYNC + b"\x02\x02\x00" + SYNC

    values, error = read(data)

    assert values == []
    assert isinstance(error, DataError)
    assert error.where.position == "record 1"
    assert words in error.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"PAR1" + data[4:], "no Avro container begins with b'PAR1'"),
        (lambda data: b"\x1f\x8b" + data, "file.compression.type"),
        (lambda data: data[:-1] + b"?", "is not followed by the mark"),
        (lambda data: data.replace(b"row 1", b"\xffow 1"), "record 2: not of the object's schema"),
        (lambda data: data + b"\x04\x02\x00" + SYNC, "record 4: not of the object's schema"),
        (lambda data: data + b"\x02\x0a\x00\x00hey" + SYNC, "3 bytes behind its last record"),
        (lambda data: data + b"\x00\x02\x00" + SYNC, "record 4: a block of 1 bytes says that it has no records"),
        (lambda data: data + b"\x01\x02\x00" + SYNC, "record 4: a block says that it has -1 records"),
        (lambda data: data + b"\xff" * 11, "more than 64 bits"),
        (lambda data: data + b"\xfe\xff\xff\x0f\x00" + SYNC, "says that it has 16777215 records"),
        (lambda data: data + b"\x02", "record 4: the object ends in the middle"),
    ],
)
def test_damage_is_named(change, words):
    """Finding 2: whatever is damaged is an error with the record's number; never silence."""
    _, error = read(change(written(ROW, rows(3))))

    assert isinstance(error, DataError)
    assert words in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("says", [0, 1, 2])
def test_a_count_that_is_too_small_is_an_error_each_time(codec, says):
    """A block with more records than it says is an error, and so it is for whoever goes on where that one ended."""
    blocks = written(ROW, rows(9), codec, per_block=3).split(SYNC)
    blocks[2] = number(says) + blocks[2][1:]
    data = SYNC.join(blocks)
    place = Position()

    def remembered():
        nonlocal place
        for batch in transformer().batches(SeekableBytes(data), Position()):
            place = batch.end
            yield batch

    values, first = drained(remembered())
    again, second = read(data, place)

    assert values == rows(9)[: 3 + max(0, says - 1)]
    assert isinstance(first, DataError)
    assert (again, str(second)) == ([], str(first))


def test_behind_a_block_that_says_it_is_empty_reading_goes_on():
    """Where bad records are tolerated, a block that has bytes and says it has no records is a piece by itself."""
    blocks = written(ROW, rows(9), per_block=3).split(SYNC)
    blocks[2] = number(0) + blocks[2][1:]
    batches = list(transformer(errors_tolerance="all").batches(SeekableBytes(SYNC.join(blocks)), Position()))

    assert [value["n"] for batch in batches for value in batch.values] == [0, 1, 2, 6, 7, 8]
    assert [(batch.rejected.number, batch.rejected.count) for batch in batches if batch.rejected] == [(4, None)]
    assert batches[-1].end.records == 7


def test_blocks_of_no_records_are_passed_over():
    """A block that says that it is empty, and is, is none."""
    empty = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    for codec, body in (("null", b""), ("deflate", empty)):
        data = written(ROW, rows(2), codec) + b"\x00" + number(len(body)) + body + SYNC
        assert read(data) == (rows(2), None)


def test_a_block_of_many_small_records_is_bounded():
    """A few bytes that unpack to millions of records are decoded piece by piece, and read on from any of them."""
    count = 3_000_000
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(count)) + packer.flush()
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    data = written(schema, [], "deflate") + number(count) + number(len(packed)) + packed + SYNC
    next(transformer().batches(SeekableBytes(written(schema, [{"n": 1}], "deflate")), Position()))

    tracemalloc.start()
    try:
        batches = list(islice(transformer().batches(SeekableBytes(data), Position(records=5000)), 3))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [(batch.position_at(0).records, len(batch.values)) for batch in batches] == [
        (5000, 1000),
        (6000, 2000),
        (8000, 2000),
    ]
    assert peak < 20_000_000


def test_the_records_of_a_large_block_come_back():
    """A block that is decoded piece by piece has the values and the places that it has at one go."""
    data = written(ROW, rows(30_000))
    batches = list(transformer().batches(SeekableBytes(data), Position()))

    assert [value for batch in batches for value in batch.values] == rows(30_000)
    assert batches[-1].end == Position(records=30_000, byte=len(data), inside=1)
    start = batches[7].position_at(11)
    assert read(data, start) == (rows(30_000)[start.records :], None)


def test_records_without_bytes_are_records():
    """A record without fields has no bytes: a block may have as many as it likes, up to what is taken for a bomb."""
    schema = {"type": "record", "name": "R", "fields": []}
    header = written(schema, [])

    assert read(header + number(5000) + b"\x00" + SYNC) == ([{}] * 5000, None)
    assert "says that it has" in read(header + number(10**9) + b"\x00" + SYNC)[1].message


@pytest.mark.parametrize("codec", CODECS[1:])
def test_damaged_blocks_are_named(codec):
    """Finding 2: a block that cannot be unpacked is an error, after the blocks before it."""
    good = written(ROW, rows(2), codec)
    data = good + b"\x02\x10garbage!" + SYNC

    values, error = read(data)

    assert values == rows(2)
    assert error.where.position == "record 3"
    assert f"{codec} data is damaged" in error.message


def test_what_is_unpacked_has_a_limit():
    """A block that unpacks to more than max.record.bytes, or is larger than that, is an error, and not in memory."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packed.compress(bytes(100_000_000)) + packed.flush()
    data = written("bytes", [b"good"], "deflate") + b"\x02" + number(len(bomb)) + bomb + SYNC

    values, error = read(data)
    assert values == [b"good"]
    assert error.where.position == "record 2"
    assert "max.record.bytes" in error.message
    _, error = read(data, max_record_bytes="0")
    assert "max.decompression.ratio" in error.message
    assert "more than" in read(written("bytes", [b"x" * 2000]), max_record_bytes="1000")[1].message


def test_a_stream_that_fails_is_no_end():
    """Finding 2: the stream's error passes as it is, after every block that was complete."""
    fault = RetriableError("the connection broke")
    data = written(ROW, rows(4), per_block=2)

    assert drained(transformer().batches(ScriptedStream([data[:-20], fault]), Position())) == (rows(2), fault)


def test_a_large_block_comes_in_bounded_batches():
    """A batch has at most 2000 values, and its positions join up."""
    batches = list(transformer().batches(SeekableBytes(written(ROW, rows(12_000))), Position()))

    assert [len(batch.values) for batch in batches] == [2000] * 6
    assert [batch.end for batch in batches[:-1]] == [batch.position_at(0) for batch in batches[1:]]


BEYOND = b"\x84" + b"\x80" * 8 + b"\x02"
"""An integer of 65 bits, of which 64 are the number two."""

TREE = {"type": "record", "name": "T", "fields": [{"name": "s", "type": "string"}, {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", "T"]}]}  # fmt: skip


def one_block(schema, records, codec="null"):
    """A container with a block of records that are encoded already."""
    body = b"".join(records)
    if codec == "deflate":
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = packer.compress(body) + packer.flush()
    return written(schema, [], codec) + number(len(records)) + number(len(body)) + body + SYNC


def row(value, text=b"x"):
    return value + number(len(text)) + text


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("count", [1, 5, 30_000])
def test_an_integer_beyond_64_bits_is_named(codec, count):
    """A block's integer that 64 bits cannot hold is an error with its record, after the records before it."""
    records = [row(number(at)) for at in range(count)]

    for damaged in (BEYOND, b"\x80" * 10 + b"\x00", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"):
        data = one_block(ROW, [*records, row(damaged), row(b"\x02")], codec)
        values, error = read(data)
        assert [value["n"] for value in values] == [*range(count)]
        assert isinstance(error, DataError)
        assert error.where.position == f"record {count + 1}"
        assert "an integer is beyond 64 bits" in error.message
        assert read(data, Position(records=count - 1))[0] == values[-1:]


def test_integers_of_64_bits_come_back():
    """The integers at both ends of 64 bits are as they were, and so is one that is written longer than it must be."""
    numbers = {
        b"\xfe" + b"\xff" * 8 + b"\x01": 2**63 - 1,
        b"\xff" * 9 + b"\x01": -(2**63),
        b"\x82" + b"\x80" * 8 + b"\0": 1,
    }

    values, error = read(one_block(ROW, [row(value) for value in numbers]))

    assert error is None
    assert [value["n"] for value in values] == [*numbers.values()]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int", b"\x04", BEYOND),
        ("string", b"\x04ab", BEYOND + b"ab"),
        ("bytes", b"\x04ab", BEYOND + b"ab"),
        (["null", "int", "string"], b"\x04\x04ab", BEYOND + b"\x04ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, b"\x04", BEYOND),
        ({"type": "array", "items": "int"}, b"\x04\x01\x01\0", BEYOND + b"\x01\x01\0"),
        ({"type": "array", "items": "int"}, b"\x03\x04\x01\x01\0", b"\x03" + BEYOND + b"\x01\x01\0"),
        ({"type": "array", "items": "float"}, b"\x04" + bytes(8) + b"\x02" + bytes(4) + b"\0", BEYOND + bytes(9)),
        ({"type": "map", "values": "int"}, b"\x02\x02a\x01\x01\x06\x02b\x01\0", b"\x02" + BEYOND + b"ab\x01\0"),
        (TREE, b"\x02a\x02\x02\x02b\x04\0", b"\x02a\x02\x02\x02b" + BEYOND + b"\0"),
        ({"type": "array", "items": ["null", TREE]}, b"\x04\0\x02\x02a\x02\0\0", b"\x04\0\x02\x02a" + BEYOND + b"\0\0"),
    ],
)
def test_whatever_is_beyond_64_bits_is_named(kind, good, bad):
    """Lengths of texts, counts of items, kinds and symbols are integers too, wherever they stand."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
    fine, none = read(one_block(schema, [good] * 3))

    values, error = read(one_block(schema, [good, good, bad, good]))

    assert (len(fine), none) == (3, None)
    assert values == fine[:2]
    assert error.where.position == "record 3"
    assert "beyond 64 bits" in error.message


@pytest.mark.parametrize("words", ["яблоко\U0001f34e", "蘋果樹上的蘋果", "\x7fé"])
def test_texts_that_look_like_large_integers_come_back(words):
    """Texts of whatever letters are no integers, in blocks of any size."""
    for count in (1, 50, 12_000):
        values = [{"n": -(2**63) + at, "s": words * (at % 90)} for at in range(count)]
        assert read(written(ROW, values)) == (values, None)


@pytest.mark.parametrize(
    ("records", "place", "words"),
    [
        ([row(b"\x02"), row(b"\x02", b"\xff"), row(BEYOND)], 2, "utf-8"),
        ([row(b"\x02"), b"\x02\x01" + b"\xff" * 20, row(BEYOND)], 2, "Expected -1 bytes"),
        ([row(b"\x02"), row(b"\x02"), b"\x02\xfe\xff\x03" + "яблоко".encode()], 3, "Expected"),
        ([row(b"\x02"), b"\x02\x04" + b"\xff" * 40], 2, "utf-8"),
    ],
)
def test_what_is_damaged_first_is_named_first(records, place, words):
    """Where a record before it cannot be decoded, or nobody knows where one ends, that is the error."""
    values, error = read(one_block(ROW, records))

    assert len(values) == place - 1
    assert error.where.position == f"record {place}"
    assert words in error.message


def test_decimals_are_exact():
    """A decimal of a thousand digits keeps them all."""
    written_as = {"type": "bytes", "logicalType": "decimal", "precision": 1000, "scale": 500}
    found = AvroSchema.of(written_as).fix(int("7" * 1000).to_bytes(417, "big"))

    assert json.dumps(str(found)) == json.dumps("7" * 500 + "." + "7" * 500)
