"""Integers of Avro's blocks: those beyond 64 bits are found, and nothing else is taken for one."""

import io
import itertools
import re

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.transformers.avro_doubt import is_doubtful
from headrace.transformers.avro_numbers import Numbers
from headrace.transformers.avro_schema import AvroSchema

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=80)
BEYOND = st.builds(
    lambda front, last, more: bytes([*front, *more, last]),
    st.lists(st.integers(0x80, 0xFF), min_size=9, max_size=9),
    st.integers(2, 0x7F),
    st.lists(st.integers(0x80, 0xFF), max_size=3),
)
OVERLONG = re.compile(rb"[\x80-\xff]{9}[\x02-\xff]")
LEAVES = st.sampled_from(
    [
        ("int", INTS),
        ("long", LONGS),
        ("boolean", st.booleans()),
        ("double", st.floats(allow_nan=False)),
        ("float", st.floats(allow_nan=False, width=32)),
        ("string", TEXT),
        ("string", st.text(alphabet="яблоко蘋果", max_size=90)),
        ("bytes", st.binary(max_size=80)),
        (["null", "long", "string", "bytes"], st.one_of(st.none(), LONGS, TEXT, st.binary(max_size=20))),
    ]
)

_number = itertools.count()


def named(kind, **told):
    return {"type": kind, "name": f"T{next(_number)}", **told}


def record_of(members):
    fields = [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(members)]
    values = st.fixed_dictionaries({f"f{index}": values for index, (_, values) in enumerate(members)})
    return named("record", fields=fields), values


def twice(size):
    """A record whose second field has its type by name."""
    fixed, values = named("fixed", size=size), st.binary(min_size=size, max_size=size)
    return record_of([(fixed, values), (fixed["name"], values)])


NAMED = st.one_of(
    st.integers(1, 20).map(twice),
    st.builds(lambda: (named("enum", symbols=["A", "B"]), st.sampled_from("AB"))),
)
TYPES = st.recursive(
    LEAVES | NAMED,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(record_of),
        inner.map(lambda kind: ({"type": "array", "items": kind[0]}, st.lists(kind[1], max_size=4))),
        inner.map(lambda kind: ({"type": "map", "values": kind[0]}, st.dictionaries(TEXT, kind[1], max_size=3))),
    ),
    max_leaves=8,
)


def encoded(schema, value):
    target = io.BytesIO()
    fastavro.schemaless_writer(target, schema, value)
    return target.getvalue()


@st.composite
def blocks(draw):
    """A schema whose records have a long at first and one between two other values; and records, in pieces."""
    (before, befores), (behind, behinds) = draw(TYPES), draw(TYPES)
    kinds = ["long", before, "long", behind]
    schema = named("record", fields=[{"name": f"f{index}", "type": kind} for index, kind in enumerate(kinds)])
    rows = draw(st.lists(st.tuples(LONGS, befores, LONGS, behinds), min_size=1, max_size=6))
    parsed = [fastavro.parse_schema(kind) for kind in kinds]
    return schema, [[encoded(kind, value) for kind, value in zip(parsed, row, strict=True)] for row in rows]


def joined(records):
    return b"".join(itertools.chain.from_iterable(records))


@given(block=blocks(), beyond=BEYOND)
def test_nothing_is_found_in_what_was_written(block, beyond):
    """Whatever fastavro writes has no integer beyond 64 bits; one behind the last record is seen just there."""
    schema, records = block
    numbers, data = Numbers.of(AvroSchema.of(schema).wire), joined(records)

    assert numbers.first_misread(data, len(records)) is None
    assert numbers.first_misread(data + beyond, len(records)) is None
    found = numbers.first_misread(data + beyond, len(records) + 1)
    assert (found.count, found.size) == (len(records), len(data))


@given(block=blocks(), beyond=BEYOND, data=st.data())
def test_an_integer_beyond_64_bits_is_found(block, beyond, data):
    """The first record with one is found, and where it begins; its bytes are doubtful."""
    schema, records = block
    first = data.draw(st.integers(0, len(records) - 1))
    for at in {first, data.draw(st.integers(first, len(records) - 1))}:
        records[at][2] = beyond
    found = Numbers.of(AvroSchema.of(schema).wire).first_misread(joined(records), len(records))

    assert (found.count, found.size) == (first, len(joined(records[:first])))
    assert is_doubtful(joined(records))


BYTES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.integers(0, 300).map(lambda size: b"x" * size),
        st.integers(1, 12).map(lambda size: b"\x80" * size),
        st.sampled_from([b"\0", b"\1", b"\2", b"\x7f", b"\xff"]),
    ),
    max_size=20,
).map(b"".join)


@given(data=BYTES)
@settings(max_examples=400)
def test_no_bytes_that_might_be_one_are_let_through(data):
    """Bytes are doubtful exactly where nine have their highest bit and the one behind them is more than 1."""
    if OVERLONG.search(data):
        assert is_doubtful(data)
    elif is_doubtful(data):
        pytest.fail(f"nothing in {data!r} is beyond 64 bits")


@pytest.mark.parametrize("size", [0, 1, 8, 9, 10, 40, 64 * 1024 - 12, 64 * 1024 + 12, 3 * 64 * 1024])
def test_one_is_seen_wherever_it_stands(size):
    """In ASCII around it, and at the ends of what is looked through at a time, one is seen."""
    for place in range(size, size + 20):
        data = b"\x90\x03" + b"x" * place
        assert not is_doubtful(data + b"\x80" * 9 + b"\x01" + b"x" * 30)
        assert is_doubtful(data + b"\x80" * 9 + b"\x02")
        assert is_doubtful(data + b"\xff" * 10 + b"\x00" + b"x" * 30)
