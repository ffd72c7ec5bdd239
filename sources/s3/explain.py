"""Why one object was read, will be, or will not: every question that decides it, with its answer."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from headrace.framework import registry
from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import StorageObject
from headrace.framework.errors import OffsetValueError, SourceError
from headrace.framework.naming import NameTemplate
from headrace.framework.parts import Part
from headrace.framework.source_offsets import Check, Explanation, State
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore
from headrace.sources.s3.client import make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import Action, Decision, S3OffsetEntry, object_key
from headrace.sources.s3.listing import Skipped, look_up
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.parts import Cut
from headrace.sources.s3.progress import Standing, standings

__all__ = ["explain_object"]

URI = "s3://"


OFFSET = "offset"

ROLLED_UP = Check(name=OFFSET, passed=None, says="complete, rolled up: its count is not kept any more")

REASONS = {
    Action.FINISHED: (State.COMPLETE, "it was read to its end, and is not read again"),
    Action.REREAD: (
        State.CHANGED,
        "it was overwritten: a run reads it again from its first record (s3.overwrite.policy)",
    ),
    Action.IGNORE: (State.CHANGED, "it was overwritten: a run leaves it out (s3.overwrite.policy)"),
    Action.FAIL: (State.FAILS, "it was overwritten: it fails the run (s3.overwrite.policy)"),
}


def explain_object(config: S3Config, name: str, offsets: OffsetStore, tasks: int) -> Explanation:
    """Explain an object, named by its key or as `s3://bucket/key`, with one request to the bucket."""
    bucket, key = _apart(name, config.bucket)
    partition = object_key(bucket, key)
    known = offsets.get([partition]).get(partition)
    client = make_client(config.connection())
    found = look_up(client, bucket, key, config.attempts(threading.Event()))
    if found is None:
        return _of_nothing(partition, known, offsets)
    try:
        one, bad = standings([found], offsets, config.overwrite_policy)[0], None
    except OffsetValueError as error:
        one, bad = Standing(found=found, entry=None, decision=Decision(Action.FAIL)), error.message
    unread = Check(name=OFFSET, passed=False, says=bad) if bad else _unread(partition, offsets)
    checks = list(_checks(config, one))
    if unread is not None and not one.rolled_up:
        checks = [unread if check.name == OFFSET else check for check in checks]
    task = _task(config, found, tasks, in_parts=one.cut is not None and one.decision.action is Action.READ)
    checks.append(task[1])
    return _judged(one, checks, task[0], known)


def _apart(name: str, bucket: str) -> tuple[str, str]:
    if not name.startswith(URI):
        return bucket, name
    named, _, key = name.removeprefix(URI).partition("/")
    if not named or not key:
        raise SourceError(f"{name} names no object: say s3://bucket/key, or the key alone")
    return named, key


def _of_nothing(partition: OffsetManagerKey, known: Mapping[str, Any] | None, offsets: OffsetStore) -> Explanation:
    name = f"{URI}{partition.mapping['bucket']}/{partition.mapping['objectKey']}"
    gone = Check(name="in the bucket", passed=False, says="no")
    if known is None and offsets.rolled_up(partition, "") is not None:
        return Explanation(
            name=name,
            state=State.OFFSETS_ONLY,
            reason="it is not in the bucket any more; it was read to its end, and the next whole listing forgets it",
            rolled_up=True,
            checks=[gone, ROLLED_UP],
        )
    if known is None and (unread := _unread(partition, offsets)) is not None:
        return Explanation(
            name=name,
            state=State.OFFSETS_ONLY,
            reason="it is not in the bucket any more, and its entry cannot be read: headrace offsets set forgets it",
            checks=[gone, unread],
        )
    if known is None:
        return Explanation(
            name=name,
            state=State.MISSING,
            reason="it is not in the bucket, and the offsets do not know it: check the key, letter by letter",
            checks=[gone],
        )
    entry = S3OffsetEntry.stored(partition, known)
    return Explanation(
        name=name,
        state=State.OFFSETS_ONLY,
        reason="it is not in the bucket any more; its entry stays, in case it comes back",
        records_done=entry.record_count,
        byte=entry.position().byte,
        checks=[gone, _stored(entry)],
        offset=known,
    )


def _unread(partition: OffsetManagerKey, offsets: OffsetStore) -> Check | None:
    """What to say of an entry that cannot be read, where there is such a one and none that can."""
    if offsets.get([partition]) or (reason := offsets.unreadable(partition)) is None:
        return None
    says = f"what is stored cannot be read, so it counts as never read: {reason}; mend it with headrace offsets set"
    return Check(name=OFFSET, passed=None, says=says)


def _checks(config: S3Config, one: Standing) -> Iterator[Check]:
    found = one.found
    template = NameTemplate.parse(config.file_name_template)
    skipped = Skipped.reason_for(found)
    yield _check("bucket", found.bucket == config.bucket, found.bucket, f"the connector reads {config.bucket}")
    yield Check(name="in the bucket", passed=True, says=f"{found.size} bytes, etag {found.etag or 'none'}")
    yield _check(
        "prefix",
        found.key.startswith(config.prefix or ""),
        f"it begins with aws.s3.prefix {config.prefix!r}" if config.prefix else "none is asked for",
        f"it does not begin with aws.s3.prefix {config.prefix!r}",
    )
    yield _check(
        "start key",
        not config.start_key or found.key > config.start_key,
        f"it sorts after native.start.key {config.start_key!r}" if config.start_key else "none is set",
        f"it does not sort after native.start.key {config.start_key!r}, so it is not listed",
    )
    yield _check(
        "name",
        template.match(found.key) is not None,
        f"file.name.template {template.text!r} is found in it",
        f"file.name.template {template.text!r} is not found in it",
    )
    yield _check(
        "size", found.size > 0, f"{found.size} bytes", str(Skipped.MARKER if found.is_marker else Skipped.EMPTY)
    )
    yield _check("storage class", skipped is not Skipped.ARCHIVED, found.storage_class, str(Skipped.ARCHIVED))
    yield _stored(one.entry, rolled_up=one.rolled_up)
    if one.cut is not None:
        yield from _parts(one.cut)
    yield _version(one)


def _check(name: str, passed: bool, well: str, badly: str) -> Check:  # noqa: FBT001 - it is the answer itself
    return Check(name=name, passed=passed, says=well if passed else badly)


def _stored(entry: S3OffsetEntry | None, *, rolled_up: bool = False) -> Check:
    if rolled_up:
        return ROLLED_UP
    if entry is None:
        return Check(name=OFFSET, passed=None, says="nothing is stored of it")
    place = entry.position()
    end = "complete" if entry.is_complete else "no mark of completeness"
    where = f"{place.records} records, up to byte {place.byte}" if place.byte else f"{place.records} records"
    return Check(name=OFFSET, passed=None, says=f"{where}, {end}")


def _parts(cut: Cut) -> Iterator[Check]:
    ended, parts = cut.ended_parts, len(cut.entries)
    yield Check(
        name="parts", passed=None, says=f"{ended} of {parts} were read to their ends, {cut.records} records in all"
    )
    for number, entry in enumerate(cut.entries):
        if entry is not None and not entry.is_ended:
            place = entry.position()
            says = f"{place.records} records of its own, up to byte {place.byte}"
            yield Check(name=Part(number, parts).words(), passed=None, says=says)


def _version(one: Standing) -> Check:
    name = "version"
    if one.entry is None and one.rolled_up:
        return Check(name=name, passed=False, says="another one was read than the one that is there")
    if one.entry is None:
        return Check(name=name, passed=None, says="none was read")
    read, there = one.entry.get_string("etag"), one.found.etag
    if not one.entry.is_of(one.found):
        return Check(
            name=name, passed=False, says=f"{read or 'another one'} was read, and {there or 'this one'} is there"
        )
    if not read:
        return Check(name=name, passed=None, says="the entry knows no etag: it is taken for this object's")
    return Check(name=name, passed=True, says="the one that was read is the one that is there")


def _task(config: S3Config, found: S3Object, tasks: int, *, in_parts: bool) -> tuple[int | None, Check]:
    kind = registry.find("distributions", config.distribution_type)
    if in_parts:
        return None, Check(name="task", passed=None, says="each part has a task of its own: headrace plan says which")
    if tasks == 1:
        return 0, Check(name="task", passed=True, says="0, the only one")
    if issubclass(kind, BalancedDistribution):
        says = "distribution.type balanced shares out while it lists everything: headrace plan says which"
        return None, Check(name="task", passed=None, says=says)
    strategy = kind()
    strategy.configure(config.props)
    try:
        task: int = strategy.task_for(StorageObject(found.key, found.size), tasks)
    except SourceError as error:
        return None, Check(name="task", passed=False, says=str(error))
    return task, Check(
        name="task", passed=True, says=f"{task} of {tasks}, by distribution.type {config.distribution_type}"
    )


def _judged(one: Standing, checks: list[Check], task: int | None, known: Mapping[str, Any] | None) -> Explanation:
    state, reason = _verdict(one, checks)
    place = one.entry.position() if one.entry is not None and state is not State.CHANGED else one.decision.position
    return Explanation(
        name=one.found.uri,
        state=state,
        reason=reason,
        task=task,
        records_done=place.records if one.cut is None else one.cut.records,
        byte=place.byte,
        rolled_up=one.rolled_up,
        checks=checks,
        offset=known,
        found=attrs.asdict(one.found),
    )


def _verdict(one: Standing, checks: list[Check]) -> tuple[State, str]:
    failed = {check.name: check.says for check in checks if check.passed is False}
    refused = next((name for name in failed if name not in {"version", "task", OFFSET}), None)
    if refused is not None:
        return State.LEFT_OUT, f"a run does not read it ({refused}): {failed[refused]}"
    if OFFSET in failed:
        return State.FAILS, f"it would fail the run: {failed[OFFSET]}"
    action = one.decision.action
    if "task" in failed and action in {Action.READ, Action.REREAD}:
        return State.FAILS, f"it would fail the run: {failed['task']}"
    return _reading(one) if action is Action.READ else REASONS[action]


def _reading(one: Standing) -> tuple[State, str]:
    if one.entry is None:
        return State.UNSEEN, "nothing of it was read so far: a run reads it as soon as it has listed it"
    if one.cut is not None:
        left = len(one.cut.entries) - one.cut.ended_parts
        state = State.PARTIAL if one.cut.records or one.cut.ended_parts else State.UNSEEN
        return state, f"it is read in {len(one.cut.entries)} parts, of which {left} are left: a run goes on with these"
    records = one.decision.position.records
    state = State.PARTIAL if records else State.UNSEEN
    return state, f"a run goes on with record {records + 1}, and finds out where it ends"
