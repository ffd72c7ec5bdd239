"""Damage in Avro's blocks: an error of its record, unless the bytes are a sound encoding of other values."""

import io
import itertools
import math
import struct

import attrs
import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.framework.errors import DataError
from headrace.testing.streams import SeekableBytes, drained
from headrace.transformers.avro import AvroTransformer
from headrace.transformers.avro_schema import AvroSchema
from headrace.transformers.base import Position

SYNC = b"0123456789abcdef"
INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-2, 70)
TEXT = st.text(max_size=5)

_number = itertools.count()


def named(kind, **told):
    return {"type": kind, "name": f"T{next(_number)}", **told}


def record_of(members):
    fields = [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(members)]
    values = st.fixed_dictionaries({f"f{index}": values for index, (_, values) in enumerate(members)})
    return named("record", fields=fields), values


def twice(kind):
    """A record whose second field has its type by name."""
    schema, values = kind
    return record_of([(schema, values), (schema["name"], values)])


ENUMS = st.integers(1, 4).map(lambda size: (named("enum", symbols=list("ABCD"[:size])), st.sampled_from("ABCD"[:size])))
LEAVES = st.sampled_from(
    [
        ("int", INTS),
        ("int", SMALL),
        (["null", "int"], st.none() | SMALL),
        ("long", LONGS),
        ("boolean", st.booleans()),
        ("boolean", st.booleans()),
        (["boolean", "null"], st.none() | st.booleans()),
        ("double", st.floats(allow_nan=False)),
        ("float", st.floats(allow_nan=False, width=32)),
        ("string", TEXT),
        ("bytes", st.binary(max_size=4)),
        (["null", "int", "string", "boolean"], st.one_of(st.none(), SMALL, TEXT, st.booleans())),
    ]
)
TYPES = st.recursive(
    LEAVES | ENUMS | ENUMS.map(twice),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(record_of),
        inner.map(lambda kind: ({"type": "array", "items": kind[0]}, st.lists(kind[1], max_size=3))),
        inner.map(lambda kind: ({"type": "map", "values": kind[0]}, st.dictionaries(TEXT, kind[1], max_size=2))),
    ),
    max_leaves=6,
)
RECORDS = st.lists(TYPES, min_size=1, max_size=4).map(record_of)

TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "ok", "type": "boolean"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "left", "type": ["null", "Tree"]},
        {"name": "more", "type": {"type": "array", "items": "Tree"}},
    ],
}
TREES = st.recursive(
    st.none(),
    lambda inner: st.fixed_dictionaries(
        {
            "n": SMALL,
            "ok": st.booleans(),
            "kind": st.sampled_from("AB"),
            "left": inner,
            "more": st.lists(inner.filter(bool), max_size=2),
        }
    ),
    max_leaves=4,
).filter(bool)


class Bad(Exception):  # noqa: N818 - no error of the code under test
    pass


@attrs.define
class Plainly:
    """Avro's encoding by the letter of its specification, a byte at a time."""

    data: bytes
    at: int = 0
    is_shortest: bool = True
    named: dict = attrs.field(factory=dict)

    def take(self, size):
        if not 0 <= size <= len(self.data) - self.at:
            raise Bad
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self, bits=64):
        found, more, count = 0, True, 0
        while more:
            (byte,) = self.take(1)
            found, more, count = found | (byte & 127) << 7 * count, byte > 127, count + 1
        if count > 10 or found >= 2**bits:
            raise Bad
        self.is_shortest &= count == 1 or byte > 0
        return (found >> 1) ^ -(found & 1)

    def one_of(self, given):
        index = self.long()
        if not 0 <= index < len(given):
            raise Bad
        return given[index]

    def boolean(self):
        (byte,) = self.take(1)
        if byte > 1:
            raise Bad
        return byte == 1

    def text(self):
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError:
            raise Bad from None

    def float(self, form):
        (found,) = struct.unpack(form, self.take(struct.calcsize(form)))
        self.is_shortest &= not math.isnan(found)  # there are many ways to write what is no number
        return found

    def items(self, item):
        found = []
        while count := self.long():
            if count < 0 or found:
                self.is_shortest = False
            if count < 0:
                self.long()
            found += [item() for _ in range(abs(count))]
        return found

    def value(self, node):
        if isinstance(node, list):
            return self.value(self.one_of(node))
        kind = node if isinstance(node, str) else node["type"]
        if not isinstance(node, str) and "name" in node:
            self.named[node["name"]] = node
        simple = {
            "null": lambda: None,
            "boolean": self.boolean,
            "int": lambda: self.long(32),
            "long": self.long,
            "float": lambda: self.float("<f"),
            "double": lambda: self.float("<d"),
            "string": self.text,
            "bytes": lambda: self.take(self.long()),
            "enum": lambda: self.one_of(node["symbols"]),
            "record": lambda: {field["name"]: self.value(field["type"]) for field in node["fields"]},
            "array": lambda: self.items(lambda: self.value(node["items"])),
            "map": lambda: self.members(node["values"]),
        }
        return simple[kind]() if kind in simple else self.value(self.named[kind])

    def members(self, node):
        pairs = self.items(lambda: (self.text(), self.value(node)))
        found = dict(pairs)
        self.is_shortest &= len(found) == len(pairs)
        return found


def plainly(schema, data, count):
    """The records before the first bad one, whether there is one, and whether each is written as a writer would."""
    reading, values = Plainly(data), []
    try:
        for _ in range(count):
            values.append(reading.value(schema))  # noqa: PERF401 - what came before an error counts
    except Bad:
        return values, True, False
    if reading.at < len(data):
        return values[:-1], True, False
    return values, False, reading.is_shortest


def encoded(schema, value):
    target = io.BytesIO()
    fastavro.schemaless_writer(target, schema, value)
    return target.getvalue()


def number(value):
    return encoded("long", value)


def read(schema, data, count):
    """The values of one block of those bytes, and where the error is that ended them."""
    header = io.BytesIO()
    fastavro.writer(header, schema, [], sync_marker=SYNC)
    block = number(count) + number(len(data)) + data + SYNC
    made = AvroTransformer()
    made.configure({})
    values, error = drained(made.batches(SeekableBytes(header.getvalue() + block), Position()))
    assert error is None or isinstance(error, DataError)
    return values, error and error.where.position


def check(schema, wire, data, count):
    """What is read is what the specification says; where no error is, no other bytes are written for these values."""
    sound, is_bad, is_shortest = plainly(wire, data, count)
    values, position = read(schema, data, count)

    assert repr(values) == repr(sound)
    assert position == (f"record {len(sound) + 1}" if is_bad else None)
    if is_shortest:
        parsed = fastavro.parse_schema(wire)
        assert b"".join(encoded(parsed, value) for value in values) == data


@st.composite
def blocks(draw, records=RECORDS):
    schema, values = draw(records)
    wire = AvroSchema.of(schema).wire
    parsed, rows = fastavro.parse_schema(schema), draw(st.lists(values, min_size=1, max_size=4))
    return schema, wire, [encoded(parsed, row) for row in rows]


BLOCKS = blocks() | blocks(st.just((TREE, TREES)))


@given(block=BLOCKS)
def test_what_is_sound_is_what_fastavro_reads(block):
    """The values of sound records are those that fastavro alone reads."""
    schema, wire, records = block
    parsed = fastavro.parse_schema(wire)
    alone = [fastavro.schemaless_reader(io.BytesIO(record), parsed) for record in records]

    assert read(schema, b"".join(records), len(records)) == (alone, None)
    check(schema, wire, b"".join(records), len(records))


@given(block=BLOCKS, data=st.data())
@settings(max_examples=300)
def test_a_damaged_byte_is_an_error_or_a_sound_encoding(block, data):
    """Whatever byte becomes another one, what is read is what the specification says that it is."""
    schema, wire, records = block
    whole = b"".join(records)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255) | st.integers(0, 7).map(lambda bit: whole[at] ^ 1 << bit))

    check(schema, wire, whole[:at] + bytes([byte]) + whole[at + 1 :], len(records))


SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "ok", "type": "boolean"},
        {"name": "empty", "type": "string"},
        {"name": "maybe", "type": ["null", "boolean"]},
        {"name": "n", "type": ["null", "int"]},
        {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}},
        {"name": "any", "type": ["null", "int", {"type": "map", "values": ["E", "boolean"]}]},
    ],
}
ROWS = [
    {"ok": True, "empty": "", "maybe": False, "n": -(2**31), "kind": "C", "any": {"k": "B", "l": True}},
    {"ok": False, "empty": "", "maybe": None, "n": 5, "kind": "A", "any": 2**31 - 1},
]


WHOLE = b"".join(encoded(SCHEMA, row) for row in ROWS)


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_every_change_of_a_byte_is_seen(at):
    """Each byte of a block with whatever can be damaged is each other byte once."""
    wire = AvroSchema.of(SCHEMA).wire

    for byte in range(256):
        check(SCHEMA, wire, WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :], len(ROWS))
