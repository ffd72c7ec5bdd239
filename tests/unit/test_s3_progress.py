"""The one place that says how far objects have been read."""

import attrs
import pytest

from headrace.offsets.memory import MemoryOffsetStore
from headrace.sources.s3.entry import Action, Decision, OverwritePolicy, S3OffsetEntry, object_key
from headrace.sources.s3.objects import S3Object, version_name
from headrace.sources.s3.offsets import surveyed
from headrace.sources.s3.progress import Standing, standings
from headrace.transformers.base import Position

ONE = S3Object(bucket="b", key="one", etag="e1", size=10, last_modified=1)


class RollingStore(MemoryOffsetStore):
    """A store in memory with one object rolled up."""

    def rolled_up(self, key, version):
        return version == version_name("e1", 10) if key == object_key("b", "one") else None


class CountedStore(MemoryOffsetStore):
    """A store in memory that counts how often it is asked."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def get(self, keys):
        self.calls += 1
        return super().get(keys)


def test_each_object_has_its_standing():
    """Answers come in the order of the objects, with the entry that they rest on, after one look at the offsets."""
    objects = [ONE, attrs.evolve(ONE, key="begun"), attrs.evolve(ONE, key="done"), attrs.evolve(ONE, key="other")]
    store = CountedStore()
    begun = S3OffsetEntry.for_object(objects[1]).advanced(Position(records=2, byte=5))
    store.committed(
        {
            object_key("b", "begun"): begun.get_properties(),
            object_key("b", "done"): S3OffsetEntry.for_object(objects[2]).finished().get_properties(),
            object_key("b", "other"): {"recordCount": 1, "etag": "another"},
            object_key("b", "gone"): {"recordCount": 1},
        }
    )

    found = standings(objects, store, OverwritePolicy.IGNORE)

    assert [one.found for one in found] == objects
    assert [one.decision.action for one in found] == [Action.READ, Action.READ, Action.FINISHED, Action.IGNORE]
    assert [one.entry is None for one in found] == [True, False, False, False]
    assert found[1].decision.position == Position(records=2, byte=5)
    assert not any(one.rolled_up for one in found)
    assert store.calls == 1


def test_what_is_rolled_up_is_told_so_to_those_who_move_offsets():
    """A standing that rests on a record about many objects is surveyed as such, and others are not."""
    entry = S3OffsetEntry.for_object(ONE).finished()
    standing = Standing(found=ONE, entry=entry, decision=Decision(Action.FINISHED))
    assert [surveyed(one).rolled_up for one in (standing, attrs.evolve(standing, rolled_up=True))] == [False, True]


@pytest.mark.parametrize(
    ("etag", "action"), [("e1", Action.FINISHED), ("e2", Action.REREAD)], ids=["same version", "another"]
)
def test_an_entry_without_a_version_goes_behind_a_roll_up(etag, action):
    """What the roll-up says is believed, and that there is an entry all the same is told; one with an etag counts."""
    store = RollingStore()
    store.committed({object_key("b", "one"): {"recordCount": 1}, object_key("b", "two"): {"recordCount": 1}})
    found = attrs.evolve(ONE, etag=etag)
    objects = [found, attrs.evolve(found, key="two")]
    one, two = standings(objects, store, OverwritePolicy.REREAD)
    assert (one.decision.action, one.rolled_up, one.overruled) == (action, True, True)
    assert (two.decision, two.overruled) == (Decision(Action.READ, Position(records=1)), False)

    store.committed({object_key("b", "one"): {"recordCount": 1, "etag": etag}})
    (one,) = standings([found], store, OverwritePolicy.REREAD)
    assert (one.decision, one.rolled_up) == (Decision(Action.READ, Position(records=1)), False)
