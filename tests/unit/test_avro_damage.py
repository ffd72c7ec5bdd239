"""Damaged bytes of an Avro block that have no meaning by its schema."""

import io
import tracemalloc
import zlib

import fastavro
import pytest

from headrace.framework.errors import DataError
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers.avro import AvroTransformer
from headrace.transformers.base import Position

SYNC = b"0123456789abcdef"
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
MAYBE = ["null", "boolean"]
SEVERAL = ["null", "int", "string", ENUM]
TREE = {
    "type": "record",
    "name": "T",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "ok", "type": "boolean"},
        {"name": "e", "type": ENUM},
        {"name": "next", "type": ["null", "T"]},
    ],
}
BEYOND = b"\x80\x80\x80\x80\x10"
"""An int of 33 bits."""

NO_BRANCH = "a union has no branch"
NO_SYMBOL = "an enumeration has no symbol"
NO_BOOLEAN = "a boolean is neither 0 nor 1"
NO_INT = "an int has more than 32 bits"


def record_of(kind):
    return {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}


def number(value):
    """A number, as Avro writes it."""
    target = io.BytesIO()
    fastavro.schemaless_writer(target, "long", value)
    return target.getvalue()


def one_block(schema, records, codec="null"):
    """A container with a block of records that are encoded already."""
    target = io.BytesIO()
    fastavro.writer(target, schema, [], codec=codec, sync_marker=SYNC)
    body = b"".join(records)
    if codec == "deflate":
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = packer.compress(body) + packer.flush()
    return target.getvalue() + number(len(records)) + number(len(body)) + body + SYNC


def transformer(**props):
    made = AvroTransformer()
    made.configure({key.replace("_", "."): value for key, value in props.items()})
    return made


def read(data, start=Position()):  # noqa: B008 - frozen
    """The values, and the error that ended them."""
    return drained(transformer().batches(SeekableBytes(data), start))


DAMAGE = [
    ("boolean", b"\1", b"\2", NO_BOOLEAN),
    ("boolean", b"\0", b"\xff", NO_BOOLEAN),
    ("boolean", b"\1", b"\x81\0", NO_BOOLEAN),
    ("boolean", b"\0", b"\x80\x80\0", NO_BOOLEAN),
    ("int", b"\x04", BEYOND, NO_INT),
    ("int", b"\x04", b"\x81\x80\x80\x80\x10", NO_INT),
    (["int", "null"], b"\0\x04", b"\0" + BEYOND, NO_INT),
    (ENUM, b"\4", b"\1", f"{NO_SYMBOL} -1"),
    (ENUM, b"\4", b"\6", f"{NO_SYMBOL} 3"),
    (MAYBE, b"\2\1", b"\1\1", f"{NO_BRANCH} -1"),
    (MAYBE, b"\2\1", b"\4\1", f"{NO_BRANCH} 2"),
    (MAYBE, b"\2\1", b"\2\3", NO_BOOLEAN),
    (SEVERAL, b"\2\4", b"\7\4", f"{NO_BRANCH} -4"),
    (SEVERAL, b"\2\4", b"\2" + BEYOND, NO_INT),
    (SEVERAL, b"\6\4", b"\6\5", f"{NO_SYMBOL} -3"),
    ({"type": "array", "items": "boolean"}, b"\4\1\0\0", b"\4\1\3\0", NO_BOOLEAN),
    ({"type": "array", "items": "int"}, b"\4\1\1\0", b"\4\1" + BEYOND + b"\0", NO_INT),
    ({"type": "array", "items": {"type": "array", "items": ENUM}}, b"\2\2\2\0\0", b"\2\2\3\0\0", f"{NO_SYMBOL} -2"),
    ({"type": "array", "items": SEVERAL}, b"\4\0\2\2\0", b"\4\0\3\2\0", f"{NO_BRANCH} -2"),
    ({"type": "map", "values": "int"}, b"\2\2k\2\0", b"\2\2k" + BEYOND + b"\0", NO_INT),
    ({"type": "map", "values": MAYBE}, b"\2\2k\2\1\0", b"\2\2k\2\2\0", NO_BOOLEAN),
    (["null", {"type": "map", "values": ["null", "int"]}], b"\2\0", b"\2\2\2k\2" + BEYOND + b"\0", NO_INT),
    (TREE, b"\2\1\2\2\4\0\2\0", b"\2\1\2\2\4\2\2\0", NO_BOOLEAN),
    (TREE, b"\2\1\2\2\4\0\2\0", b"\2\1\2\2\4\0\1\0", f"{NO_SYMBOL} -1"),
    (TREE, b"\2\1\2\2\4\0\2\0", b"\2\1\2\2\4\0\2\3", f"{NO_BRANCH} -2"),
    (TREE, b"\2\1\2\2\4\0\2\0", b"\2\1\2\2" + BEYOND + b"\0\2\0", NO_INT),
]


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize(("kind", "good", "bad", "words"), DAMAGE)
def test_what_has_no_meaning_is_named(kind, good, bad, words, codec):
    """A number of no branch and no symbol, no boolean and an int beyond 32 bits are errors, wherever they stand."""
    schema = record_of(kind)
    fine, none = read(one_block(schema, [good] * 5, codec))

    data = one_block(schema, [good, good, bad, good, bad], codec)
    values, error = read(data)

    assert (len(fine), none) == (5, None)
    assert values == fine[:2]
    assert isinstance(error, DataError)
    assert error.where.position == "record 3"
    assert f"not of the object's schema ({words})" in error.message
    assert read(data, Position(records=1))[0] == values[1:]


@pytest.mark.parametrize(("kind", "good", "bad", "words"), DAMAGE)
def test_it_is_seen_without_a_record_around_it(kind, good, bad, words):
    """It is an error too where the records of the container are no Avro records, and of no other record."""
    values, error = read(one_block(kind, [good, bad, good]))

    assert values == read(one_block(kind, [good]))[0]
    assert error.where.position == "record 2"
    assert words in error.message


@pytest.mark.parametrize(("kind", "good", "bad"), [("boolean", b"\1", b"\2"), ("int", b"\4", BEYOND)])
def test_it_is_seen_in_large_blocks(kind, good, bad):
    """In a block that is decoded piece by piece the record is named, and every one before it comes."""
    data = one_block(record_of(kind), [*[good] * 50_000, bad, good])

    values, error = read(data)

    assert len(values) == 50_000
    assert error.where.position == "record 50001"
    assert [len(given) for given, _ in (read(data, Position(records=done)) for done in (1999, 49_999))] == [48_001, 1]


@pytest.mark.parametrize(("kind", "good", "bad", "words"), DAMAGE)
def test_the_rest_of_its_block_is_a_rejected_piece(kind, good, bad, words):
    """Where bad records are tolerated, what is behind them in their block is one piece, and the next block is read."""
    schema = record_of(kind)
    bare, whole = one_block(schema, []), one_block(schema, [good] * 3)
    block = whole[len(bare) - len(b"\0\0" + SYNC) :]
    data = one_block(schema, [good, bad, good]) + block

    batches = list(transformer(errors_tolerance="all").batches(SeekableBytes(data), Position()))

    pieces = [batch.rejected for batch in batches if batch.rejected]
    assert [(piece.number, piece.count) for piece in pieces] == [(2, 2)]
    assert words in pieces[0].error.message
    assert [value for batch in batches for value in batch.values] == read(whole)[0] + read(whole)[0][:1]
    assert batches[-1].end == Position(records=6, byte=len(data), inside=1)


def test_the_ends_of_32_bits_come_back():
    """The least and the greatest int are read, also where they are written in more bytes than they need."""
    numbers = {
        b"\xff\xff\xff\xff\x0f": -(2**31),
        b"\xfe\xff\xff\xff\x0f": 2**31 - 1,
        b"\xfe\xff\xff\xff\x8f\0": 2**31 - 1,
    }

    values, error = read(one_block(record_of("int"), numbers))

    assert error is None
    assert [value["v"] for value in values] == [*numbers.values()]


def test_bytes_that_look_like_long_booleans_are_none():
    """A boolean beside bytes that could be the second half of one is what its own byte says."""
    fields = [{"name": "raw", "type": {"type": "fixed", "name": "F", "size": 2}}, {"name": "ok", "type": "boolean"}]
    schema = {"type": "record", "name": "R", "fields": fields}
    records = {b"\x80\0\1": True, b"\x81\0\0": False, b"\0\0\0": False, b"\x80\0\0": False}

    values, error = read(one_block(schema, records))

    assert error is None
    assert [value["ok"] for value in values] == [*records.values()]


def test_bytes_behind_the_last_record_that_could_be_more_are_an_error():
    """Bytes behind a block's last record are an error, also where they would do for a block of further items."""
    values, error = read(one_block(record_of("int"), [b"\2", b"\4\0\2\6"]))

    assert values == [{"v": 1}]
    assert error.where.position == "record 2"
    assert "3 bytes behind its last record" in error.message


def test_bytes_behind_records_without_bytes_make_no_records():
    """Records without bytes are as many as the block says, whatever number stands behind them."""
    data = one_block({"type": "record", "name": "R", "fields": []}, [b"", b"", number(2_000_000)])

    tracemalloc.start()
    try:
        values, error = read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert values == [{}, {}]
    assert "bytes behind its last record" in error.message
    assert peak < 10_000_000


@pytest.mark.parametrize("name", ["E", "org.example.E"])
def test_types_are_known_by_their_names_within_unions_and_behind_them(name):
    """A type that a union of several has first may be named elsewhere, and the other way round."""
    enum = {**ENUM, "name": name}
    first = record_of(["int", enum])
    first["fields"].append({"name": "w", "type": name})
    second = record_of(enum)
    second["fields"].append({"name": "w", "type": ["int", name]})

    assert read(one_block(first, [b"\2\4\2"])) == ([{"v": {"E": "C"}, "w": "B"}], None)
    assert read(one_block(second, [b"\4\2\2"])) == ([{"v": "C", "w": {"E": "B"}}], None)
