"""How far the objects of a listing have been read: the one place that is asked, whoever asks.

The enumerator asks before it gives an object away, `headrace offsets` before it explains or moves anything. Whatever
else than single entries comes to know of finished objects is looked at here, and nowhere else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore
from headrace.sources.s3.entry import ETAG, Action, Decision, OverwritePolicy, S3OffsetEntry, object_key, what_to_do
from headrace.sources.s3.objects import S3Object, version_name
from headrace.sources.s3.parts import Cut, part_keys

__all__ = ["Standing", "standings"]


@attrs.frozen(kw_only=True)
class Standing:
    """An object that is there, what is stored of it, and what that means.

    `rolled_up` says that the topic has no entry of its own for it, but knows it from a roll-up: `entry` is then what is
    left of the one that it had, without its counts, and None where that was of another version. `overruled` says that
    the topic has one all the same, which knows no version and is not believed.

    `cut` is there for an object that is read in parts, in the version that is there. Once all have ended, it counts as
    finished, and `entry` is what is going to be written in place of theirs.
    """

    found: S3Object
    entry: S3OffsetEntry | None
    decision: Decision
    rolled_up: bool = False
    overruled: bool = False
    cut: Cut | None = None


def standings(objects: Sequence[S3Object], offsets: OffsetStore, policy: OverwritePolicy) -> list[Standing]:
    """How things stand with each of `objects`, in their order; one bulk read of the offsets."""
    keys = [object_key(found.bucket, found.key) for found in objects]
    known = offsets.get(keys)
    return [_standing(found, key, known.get(key), offsets, policy) for found, key in zip(objects, keys, strict=True)]


def _standing(
    found: S3Object,
    key: OffsetManagerKey,
    stored: Mapping[str, Any] | None,
    offsets: OffsetStore,
    policy: OverwritePolicy,
) -> Standing:
    """A roll-up knows versions, and goes before an entry that knows none: Kafka Connect's, of before the roll-up."""
    if stored is None:
        return _without_entry(found, key, offsets, policy)
    entry = S3OffsetEntry.stored(key, stored)
    if not entry.get_string(ETAG):
        one = _without_entry(found, key, offsets, policy)
        if one.rolled_up:
            return attrs.evolve(one, overruled=True)
    return _with_entry(found, entry, offsets, policy)


def _with_entry(found: S3Object, entry: S3OffsetEntry, offsets: OffsetStore, policy: OverwritePolicy) -> Standing:
    if not entry.parts:
        return Standing(found=found, entry=entry, decision=what_to_do(entry, found, policy))
    if not entry.is_of(found):
        known = offsets.get(part_keys(found, entry.parts))
        records = sum(S3OffsetEntry.stored(key, stored).record_count for key, stored in known.items())
        return Standing(found=found, entry=entry, decision=what_to_do(entry, found, policy, records=records))
    cut = Cut.of(found, entry.parts, offsets)
    if cut.is_ended:
        return Standing(found=found, entry=cut.joined(), decision=Decision(Action.FINISHED), cut=cut)
    return Standing(found=found, entry=entry, decision=Decision(Action.READ), cut=cut)


def _without_entry(found: S3Object, key: OffsetManagerKey, offsets: OffsetStore, policy: OverwritePolicy) -> Standing:
    match offsets.rolled_up(key, version_name(found.etag, found.size)):
        case True:
            entry = S3OffsetEntry.for_object(found).finished()
            return Standing(found=found, entry=entry, decision=Decision(Action.FINISHED), rolled_up=True)
        case False:
            return Standing(found=found, entry=None, decision=Decision(Action(policy.value)), rolled_up=True)
        case _:
            return Standing(found=found, entry=None, decision=Decision(Action.READ))
