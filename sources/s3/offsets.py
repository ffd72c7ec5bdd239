"""What S3 has to say about its offsets: which are possible, and how they compare with the bucket."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, Fault, OffsetsError
from headrace.framework.naming import NameTemplate
from headrace.framework.parts import ENDED, PART, PARTS, Part
from headrace.framework.source_offsets import Explanation, SourceOffsets, State, Surveyed
from headrace.offsets.checks import count_faults, flag_faults, part_faults, partition_faults, slip_faults, text_faults
from headrace.offsets.entry import RECORD_COUNT
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore
from headrace.sources.s3.attempts import Count
from headrace.sources.s3.client import make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import (
    BYTE_OFFSET,
    COMPLETE,
    ETAG,
    LAST_MODIFIED,
    LINE,
    SIZE,
    Action,
    S3OffsetEntry,
    object_key,
)
from headrace.sources.s3.explain import explain_object
from headrace.sources.s3.listing import list_objects
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.progress import Standing, standings
from headrace.sources.s3.splits import S3Split
from headrace.transformers.bytes import CHUNK_BYTES

__all__ = ["S3Offsets", "surveyed"]

NAMES = ("bucket", "objectKey")
COUNTS = (RECORD_COUNT, BYTE_OFFSET, LINE, PARTS, SIZE, LAST_MODIFIED)
KNOWN = (*COUNTS, COMPLETE, ENDED, ETAG)
CONNECT_CHUNK = 4096
UNCOUNTED = 2**31 - 1
AT_ONCE = 1000

STATES = {
    Action.FINISHED: State.COMPLETE,
    Action.REREAD: State.CHANGED,
    Action.IGNORE: State.CHANGED,
    Action.FAIL: State.FAILS,
}


@attrs.frozen
class S3Offsets(SourceOffsets):
    """Offsets of the objects of one configuration."""

    config: S3Config

    @override
    def faults(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Iterable[Fault]:
        if offset is None:
            return
        yield from partition_faults({name: value for name, value in partition.items() if name != PART}, NAMES)
        yield from part_faults(partition, offset)
        yield from count_faults(offset, COUNTS)
        yield from flag_faults(offset, (COMPLETE, ENDED))
        yield from text_faults(offset, (ETAG,))
        yield from slip_faults(offset, KNOWN)

    @override
    def impossible(self, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> str | None:
        return S3OffsetEntry(OffsetManagerKey(partition), dict(offset)).impossible()

    @override
    def notes(self, partition: Mapping[str, Any]) -> Iterable[str]:
        if partition.get("bucket") != self.config.bucket:
            yield f"its bucket is {partition.get('bucket')}, and the connector reads {self.config.bucket}"

    @override
    def in_order(self, partition: Mapping[str, Any]) -> Mapping[str, Any]:
        return _in_order(partition)

    @override
    def explain(self, name: str, offsets: OffsetStore, tasks: int) -> Explanation:
        return explain_object(self.config, name, offsets, tasks)

    @override
    def survey(self, offsets: OffsetStore, count: Count) -> Iterator[Surveyed]:
        self._refuse_other_counting(offsets)
        seen: set[str] = set()
        left_out: set[str] = set()
        for page in self._pages(left_out, count):
            seen.update(found.key for found in page)
            for one in standings(page, offsets, self.config.overwrite_policy):
                yield surveyed(one)
                yield from _surveyed_parts(one)
        for key, offset in offsets.items():
            mapping = _in_order(key.mapping)
            if PART in mapping and mapping.get("objectKey") in seen:
                continue  # told with its object, or of a version that is gone
            ours = mapping.get("bucket") == self.config.bucket and len(mapping) == len(NAMES)
            name = mapping.get("objectKey") if ours else None
            if name is None or name not in seen:
                state = State.LEFT_OUT if name in left_out else State.OFFSETS_ONLY
                yield Surveyed(key=OffsetManagerKey(mapping), name=_name(mapping), state=state, offset=offset)

    def _pages(self, left_out: set[str], count: Count) -> Iterator[list[S3Object]]:
        """What a run would read, as many at a time as are asked for in one request."""
        template = NameTemplate.parse(self.config.file_name_template)
        listing = self.config.listing(on_skipped=lambda found, _: left_out.add(found.key), count=count)
        client = make_client(self.config.connection())
        page: list[S3Object] = []
        for found in list_objects(client, listing, self.config.attempts(threading.Event())):
            if template.match(found.key) is None:
                left_out.add(found.key)
                continue
            page.append(found)
            if len(page) == AT_ONCE:
                yield page
                page = []
        yield page

    @override
    def for_connect(self, surveyed: Surveyed) -> Mapping[str, Any] | None:
        """Without the place in bytes and lines, which Kafka Connect's connector would carry along unchanged.

        With the format `bytes` records are counted in its chunks, as far as the place of an object is known. Of an
        object that is half read in parts nothing can be told that it would understand.
        """
        if surveyed.offset is None or PART in surveyed.key.mapping:
            return None
        if PARTS in surveyed.offset and not surveyed.offset.get(COMPLETE):
            if surveyed.state is State.PARTIAL:
                raise OffsetsError(
                    f"{surveyed.name} is half read, in parts, and Kafka Connect would send all of it again: run "
                    "headrace until it is done (--available-now), or forget it with headrace offsets set"
                )
            return None
        offset = {name: value for name, value in surveyed.offset.items() if name not in {BYTE_OFFSET, LINE}}
        if surveyed.rolled_up:
            # Its count is not known any more; of an object with fewer records Kafka Connect reads nothing.
            return {**offset, RECORD_COUNT: UNCOUNTED}
        byte = surveyed.offset.get(BYTE_OFFSET)
        if self.config.input_format == "bytes" and isinstance(byte, int):
            chunk = self.config.transformer_max_buffer_size or CONNECT_CHUNK
            offset[RECORD_COUNT] = -(-byte // chunk)
        return {RECORD_COUNT: 0, **offset}

    def _refuse_other_counting(self, offsets: OffsetStore) -> None:
        """Kafka Connect has counted chunks, where an object would be one record here: its counts would mean nothing."""
        if self.config.input_format != "bytes" or self.config.transformer_max_buffer_size:
            return
        for key, stored in offsets.items():
            if ETAG not in stored and stored.get(RECORD_COUNT):
                message = (
                    f"must be what Kafka Connect's connector had ({CONNECT_CHUNK} is its default): the offset of "
                    f"{key.mapping.get('objectKey')} counts chunks of that size, and without it an object is one record"
                )
                raise ConfigError([Fault(CHUNK_BYTES, None, message)])


def surveyed(one: Standing) -> Surveyed:
    """An object of the listing as a piece, with the offset that a run would have written by now."""
    key, action = object_key(one.found.bucket, one.found.key), one.decision.action
    if one.cut is not None and one.entry is not None and action is Action.READ:
        state = State.PARTIAL if one.cut.records or one.cut.ended_parts else State.UNSEEN
        return Surveyed(key=key, name=one.found.uri, state=state, offset=one.entry.get_properties())
    if one.entry is None:
        state = STATES.get(action, State.UNSEEN)
        return Surveyed(key=key, name=one.found.uri, state=state, split=S3Split(one.found), rolled_up=one.rolled_up)
    if action is Action.READ:
        # Of an object that was overwritten before its first record was read, what was known of the old one is void.
        kept = one.entry.get_properties() if one.entry.is_of(one.found) else {}
        fresh = S3OffsetEntry.for_object(one.found)
        entry = fresh.from_properties({**kept, **fresh.get_properties()}).advanced(one.decision.position)
        state = State.PARTIAL if entry.record_count else State.UNSEEN
        return Surveyed(
            key=key, name=one.found.uri, state=state, offset=entry.get_properties(), split=S3Split(one.found)
        )
    properties = one.entry.get_properties()
    if action is Action.FINISHED:
        version = {name: value for name, value in _version(one.found).items() if name not in properties}
        properties = {**properties, **version}
    return Surveyed(key=key, name=one.found.uri, state=STATES[action], offset=properties, rolled_up=one.rolled_up)


def _surveyed_parts(one: Standing) -> Iterator[Surveyed]:
    """The parts of an object that is half read in parts, as far as anything is stored of them."""
    if one.cut is None or one.decision.action is not Action.READ:
        return
    for number, entry in enumerate(one.cut.entries):
        if entry is not None:
            name = f"{one.found.uri} ({Part(number, len(one.cut.entries)).words()})"
            state = State.COMPLETE if entry.is_ended else State.PARTIAL
            yield Surveyed(key=entry.get_manager_key(), name=name, state=state, offset=entry.get_properties())


def _version(found: S3Object) -> Mapping[str, Any]:
    known = S3OffsetEntry.for_object(found).get_properties()
    return {name: value for name, value in known.items() if name != RECORD_COUNT}


def _in_order(partition: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: partition[name] for name in NAMES if name in partition}
    return {**named, **partition}


def _name(partition: Mapping[str, Any]) -> str:
    if set(partition) == {*NAMES, PART}:
        return f"s3://{partition['bucket']}/{partition['objectKey']} (part {partition[PART]}, counted from 0)"
    if set(partition) == set(NAMES):
        return f"s3://{partition['bucket']}/{partition['objectKey']}"
    return str(dict(partition))
