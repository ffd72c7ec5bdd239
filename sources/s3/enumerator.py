"""Lists the bucket, once for all tasks, and gives every object that is to be read to one of them."""

import threading
from collections.abc import Sequence

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.framework.errors import ObjectChangedError, Where
from headrace.framework.naming import NameTemplate
from headrace.framework.splits import SplitEnumerator, SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.sources.s3.client import S3Client, make_client
from headrace.sources.s3.config import S3Config
from headrace.sources.s3.entry import Action, S3OffsetEntry, object_key, what_to_do
from headrace.sources.s3.listing import Skipped, list_objects
from headrace.sources.s3.objects import S3Object
from headrace.sources.s3.splits import S3Split

__all__ = ["Listed", "S3Enumerator"]


@attrs.define
class Listed:
    """What a listing has brought: the objects that the name template takes, and those left out, with a word."""

    objects: list[S3Object] = attrs.field(factory=list)
    left_out: list[tuple[S3Object, Skipped]] = attrs.field(factory=list)


@attrs.define
class S3Enumerator(SplitEnumerator[S3Split]):
    """One listing at the start, and in a continuous run another one every `discovery.interval.ms`.

    What an object's entry says against what the listing says decides whether it is read; finished objects are known
    from their entries and never fetched again.
    """

    context: SplitEnumeratorContext[S3Split]
    config: S3Config
    _template: NameTemplate = attrs.field(init=False)
    _strategy: ObjectDistributionStrategy = attrs.field(init=False)
    _client: S3Client | None = attrs.field(default=None, init=False)
    _closed: threading.Event = attrs.field(factory=threading.Event, init=False)
    _settled: dict[str, str] = attrs.field(factory=dict, init=False)
    _tasks: dict[str, int] = attrs.field(factory=dict, init=False)
    _told: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._template = NameTemplate.parse(self.config.file_name_template)
        self._strategy = registry.find("distributions", self.config.distribution_type)()
        self._strategy.configure(self.config.props)

    @override
    def start(self) -> None:
        every_s = None if self.context.bounded else self.config.discovery_interval_ms / 1000
        self.context.call_async(self._list, self._take_in, every_s=every_s)

    @override
    def close(self) -> None:
        self._closed.set()

    def _list(self) -> Listed:
        if self._client is None:
            self._client = make_client(self.config.connection())
        listed = Listed()
        listing = self.config.listing(
            on_skipped=lambda found, why: listed.left_out.append((found, why)), count=self.context.count
        )
        for found in list_objects(self._client, listing, self.config.attempts(self._closed)):
            if self._template.match(found.key) is not None:
                listed.objects.append(found)
        return listed

    def _take_in(self, listed: Listed) -> None:
        for found, why in listed.left_out:
            if why is not Skipped.MARKER and self._template.match(found.key) is not None:
                self._leave_out(found, str(why), warn=why is Skipped.ARCHIVED)
        fresh = [found for found in listed.objects if self._settled.get(found.key) != found.etag]
        self._assign(self._to_read(fresh))
        # What is no longer there is forgotten: it may come back.
        self._settled = {found.key: found.etag for found in listed.objects}
        if self.context.bounded:
            for reader_id in range(self.context.current_parallelism()):
                self.context.signal_no_more_splits(reader_id)

    def _to_read(self, objects: Sequence[S3Object]) -> list[S3Object]:
        keys = [object_key(found.bucket, found.key) for found in objects]
        known = self.context.offsets.get(keys)
        actions = [self._action(found, known.get(key)) for found, key in zip(objects, keys, strict=True)]
        told = list(zip(objects, actions, strict=True))
        if self.context.planning:
            self._note_finished([found for found, action in told if action is Action.FINISHED])
        return [found for found, action in told if action in {Action.READ, Action.REREAD}]

    def _note_finished(self, objects: Sequence[S3Object]) -> None:
        for found, task in zip(objects, self._shared_out(objects), strict=True):
            self.context.note_finished(S3Split(found), task)

    def _action(self, found: S3Object, stored: dict[str, object] | None) -> Action:
        entry = None if stored is None else S3OffsetEntry(object_key(found.bucket, found.key), stored)
        action = what_to_do(entry, found, self.config.overwrite_policy).action
        if action is Action.FAIL:
            raise ObjectChangedError(
                "the object was overwritten after it had been read, and s3.overwrite.policy is fail: "
                "restore it, reset its offset, or choose reread or ignore",
                Where(stage=Stage.DISCOVER, connector=self.config.name, object=found.uri),
            )
        if action is Action.IGNORE:
            self._leave_out(found, "it was overwritten after it had been read (s3.overwrite.policy)", warn=True)
        return action

    def _leave_out(self, found: S3Object, why: str, *, warn: bool) -> None:
        version = f"{found.uri}@{found.etag}"
        if version not in self._told:
            self._told.add(version)
            self.context.note_skipped(f"{found.uri} is left out: {why}", warn=warn)

    def _assign(self, objects: Sequence[S3Object]) -> None:
        for found, task in zip(objects, self._shared_out(objects), strict=True):
            self._tasks[found.key] = task
            self.context.assign_split(S3Split(found), task)

    def _shared_out(self, objects: Sequence[S3Object]) -> list[int]:
        tasks = self.context.current_parallelism()
        wanted = [StorageObject(found.key, found.size) for found in objects]
        if isinstance(self._strategy, BalancedDistribution):
            plan = self._strategy.plan(wanted, tasks, given=self._tasks, loads=self.context.loads())
            return [plan[one.name] for one in wanted]
        return [self._strategy.task_for(one, tasks) for one in wanted]
