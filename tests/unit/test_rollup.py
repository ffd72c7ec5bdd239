import pytest

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets import rollup
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.rollup import MOST_IN_SHARD, SHARDS, RolledUp, decode_shard, encode_shard, name_mark, version_mark

LITERAL = bytes.fromhex("0124000000038000000000000000c00000001bffffffc7fffffffdc00000a8")
LITERAL_NAMES = [3 << 38, (3 << 38) + 7, (4 << 38) - 1]
LITERAL_VERSIONS = [1, (1 << 28) - 1, 42]


def key(number, bucket="b"):
    return OffsetManagerKey({"bucket": bucket, "objectKey": f"in/{number:06d}.jsonl"})


TWINS = [OffsetManagerKey({"bucket": "b", "objectKey": f"in/{n}.jsonl"}) for n in ("3768907ca6eb", "597893490347")]
"""Two names with the same mark."""


def rolled_up(versions):
    made = RolledUp()
    for shard, value in made.changed((name_mark(one), version_mark(two)) for one, two in versions.items()).items():
        made.take(shard, value)
    return made


def test_what_was_rolled_up_is_known_in_its_version_and_in_no_other():
    """Of a piece: True in the version that was read, False in another one, None if it was never rolled up."""
    known = rolled_up({key(number): f"etag-{number}" for number in range(5000)})
    assert len(known) == 5000
    assert all(known.knows(key(number), f"etag-{number}") is True for number in range(5000))
    assert all(known.knows(key(number), "another") is False for number in range(5000))
    assert all(known.knows(key(number), f"etag-{number}") is None for number in range(5000, 20_000))
    assert all(known.knows(key(number, "c"), f"etag-{number}") is None for number in range(5000))


def test_the_order_of_the_names_does_not_matter():
    """A piece is the same in whichever order its names were once written."""
    known = rolled_up({OffsetManagerKey({"objectKey": "k", "bucket": "b"}): "1"})
    assert known.knows(OffsetManagerKey({"bucket": "b", "objectKey": "k"}), "1") is True


def test_a_name_that_is_added_again_has_its_newer_version():
    """An object that was overwritten and read again is known in its new version, and no longer in its old one."""
    known = rolled_up({key(1): "old", key(2): "same"})
    for shard, value in known.changed([(name_mark(key(1)), version_mark("new"))]).items():
        known.take(shard, value)
    assert (known.knows(key(1), "new"), known.knows(key(1), "old")) == (True, False)
    assert known.knows(key(2), "same") is True
    assert len(known) == 2


def taken_in(known, finished, **renewed):
    fits = known.fitting(finished, **renewed)
    for shard, value in known.changed(fits.values()).items():
        known.take(shard, value)
    return set(fits)


def test_a_mark_stands_for_one_name():
    """Of two names with one mark the first is rolled up and the second is left out, in one go or in two."""
    first, second = TWINS
    assert name_mark(first) == name_mark(second)
    together, later = RolledUp(), rolled_up({first: "1"})
    assert taken_in(together, {first: "1", second: "2"}) == {first}
    assert taken_in(later, {second: "2"}) == set()
    assert [known.knows(first, "1") for known in (together, later)] == [True, True]


def test_twins_of_one_version_are_both_rolled_up():
    """Where the versions have one mark as well, it answers for both names."""
    first, second = TWINS
    known = RolledUp()
    assert taken_in(known, {first: "1", second: "1"}) == {first, second}
    assert (len(known), known.knows(first, "1"), known.knows(second, "1")) == (1, True, True)


def test_a_newer_version_takes_the_place_of_an_older_one_only_where_it_is_its_own():
    """What is known to have the mark to itself is renewed; its twin, of which that is not known, waits."""
    first, second = TWINS
    known = rolled_up({first: "old"})
    assert taken_in(known, {first: "new"}) == set()
    assert taken_in(known, {second: "2", first: "new"}, renewed={first}) == {first}
    assert (known.knows(first, "new"), known.knows(first, "old")) == (True, False)


def test_what_is_not_kept_leaves_and_a_shard_without_anything_is_a_tombstone():
    """Deleted pieces leave; an empty shard takes no room."""
    known = rolled_up({key(number): "v" for number in range(100)})
    stays = {name_mark(key(number)) for number in range(0, 100, 2)}
    changed = known.changed(keep=stays.__contains__)
    for shard, value in changed.items():
        known.take(shard, value)
    assert len(known) == 50
    assert [known.knows(key(number), "v") for number in range(4)] == [True, None, True, None]
    assert None in changed.values()


def test_a_million_pieces_take_less_than_eight_bytes_each():
    """The records of a roll-up of n pieces take less than 7.5 bytes a piece where a million share the shards."""
    of_one_shard = 1_000_000 // SHARDS
    step = (1 << 38) // of_one_shard
    data = encode_shard([(number * step, number) for number in range(of_one_shard)])
    assert len(data) < 7.5 * of_one_shard


@pytest.mark.parametrize("lie", ["evenly", "at the beginning", "at the end"])
def test_the_record_of_a_full_shard_stays_below_its_limit(lie):
    """However the names of as many pieces as a shard takes lie, its record has at most 512 KB."""
    step = {"evenly": (1 << 38) // MOST_IN_SHARD}.get(lie, 1)
    first = (1 << 38) - MOST_IN_SHARD if lie == "at the end" else 0
    data = encode_shard([(first + number * step, (1 << 28) - 1) for number in range(MOST_IN_SHARD)])
    assert len(data) <= 512 * 1024


def test_what_finds_its_shard_full_is_left_out(monkeypatch):
    """A full shard takes nothing new, in one go or in two, but newer versions of what it has; the others go on."""
    monkeypatch.setattr(rollup, "MOST_IN_SHARD", 3)
    some = [key(number) for number in range(30_000) if name_mark(key(number)) >> 38 == 7]
    other = next(key(number) for number in range(30_000) if name_mark(key(number)) >> 38 == 8)
    known = rolled_up({some[0]: "1"})
    assert known.full == 0
    assert taken_in(known, dict.fromkeys([*some[:5], other], "1")) == {*some[:3], other}
    assert taken_in(known, dict.fromkeys(some, "1")) == set(some[:3])
    assert taken_in(known, {some[0]: "2", some[4]: "1"}, renewed={some[0]}) == {some[0]}
    assert (known.full, len(known)) == (1, 4)


def test_a_shard_of_the_first_form_is_read_for_ever():
    """The literal was written by the first version that rolled up."""
    names, versions = decode_shard(3, LITERAL)
    assert list(names) == LITERAL_NAMES
    assert list(versions) == LITERAL_VERSIONS
    assert encode_shard(zip(names, versions, strict=True)) == LITERAL


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"\x02\x24\x00\x00\x00\x00",
        LITERAL[:-4],
        b"\x01\x24\x00\x00\x00\x09",
        LITERAL[:5] + b"\x7f" + LITERAL[6:],
    ],
    ids=["empty", "no head", "another form", "cut", "nothing behind the head", "too few"],
)
def test_a_shard_that_cannot_be_read_is_an_error_with_its_number(value):
    """Nothing is guessed: what the shard held may have been finished, or not."""
    known = RolledUp()
    known.take(name_mark(key(1)) >> 38, value)
    with pytest.raises(MalformedOffsetError, match=f"shard {name_mark(key(1)) >> 38} of the roll-up"):
        known.knows(key(1), "v")
