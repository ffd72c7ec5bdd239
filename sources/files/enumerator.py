"""Lists the files, once for all tasks, and gives every file that is to be read to one of them."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.distribution.balanced import BalancedDistribution
from headrace.framework.distribution.base import ObjectDistributionStrategy, StorageObject
from headrace.framework.errors import ObjectChangedError, Where
from headrace.framework.splits import SplitEnumerator, SplitEnumeratorContext
from headrace.framework.stage import Stage
from headrace.offsets.store import Offsets
from headrace.sources.files.cleanup import Cleaner
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.cutting import FileCutter
from headrace.sources.files.entry import FILENAME, Action, FileOffsetEntry, file_key, what_to_do
from headrace.sources.files.family import Families, family_of
from headrace.sources.files.fingerprint import LocalContent
from headrace.sources.files.listing import Listed, Lister
from headrace.sources.files.objects import FoundFile, is_url
from headrace.sources.files.parts import CutFile
from headrace.sources.files.splits import FileSplit

__all__ = ["FilesEnumerator"]

LAST_LOOKS = 5
"""How often a bounded run that cleans up looks for entries that it has not read yet, once its tasks are done."""


@attrs.define
class FilesEnumerator(SplitEnumerator[FileSplit]):
    """One listing at the start, and in a continuous run another one every `discovery.interval.ms`, to its last one.

    What a file's entry says against what the listing says decides whether it is read. A file that is followed is
    given to its task again whenever it has changed; all files of a family have the same task.
    """

    context: SplitEnumeratorContext[FileSplit]
    config: FilesConfig
    _strategy: ObjectDistributionStrategy = attrs.field(init=False)
    _lister: Lister = attrs.field(init=False)
    _cleaner: Cleaner = attrs.field(init=False)
    _families: Families = attrs.field(factory=Families, init=False)
    _settled: dict[str, FoundFile] = attrs.field(factory=dict, init=False)
    _uncleaned: set[str] = attrs.field(factory=set, init=False)
    _to_clean: list[FileOffsetEntry] = attrs.field(factory=list, init=False)
    _tasks: dict[str, int] = attrs.field(factory=dict, init=False)
    _told: set[str] = attrs.field(factory=set, init=False)
    _lost: set[str] = attrs.field(factory=set, init=False)
    _looks_left: int = attrs.field(default=LAST_LOOKS, init=False)
    _is_all_listed: bool = attrs.field(default=False, init=False)
    _cutter: FileCutter = attrs.field(init=False)
    _grows: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cutter = FileCutter(self.context, self.config)
        self._grows = self.config.grows
        self._lister = Lister(self.config, self._may_be_missing)
        self._cleaner = Cleaner(self.config)
        self._strategy = registry.find("distributions", self.config.distribution_type)()
        self._strategy.configure(self.config.props)

    @override
    def start(self) -> None:
        if self.config.follow:
            self._families.learn(self._stored_names())
        once = self.context.bounded and not self._cleans
        every_s = None if once else self.config.discovery_interval_ms / 1000
        self.context.call_async(self._look, self._take_in, every_s=every_s)

    def _stored_names(self) -> Iterator[str]:
        for partition in (key.mapping for key, _ in self.context.offsets.items()):
            name = partition.get(FILENAME)
            if isinstance(name, str):
                yield name
            else:
                said = f"the stored offset of {json.dumps(dict(partition))} is of no file, and is passed over"
                self.context.note_skipped(f"{said}: forget it with headrace offsets set", warn=True)

    @override
    def add_splits_back(self, splits: Sequence[FileSplit], reader_id: int) -> None:
        if not self.config.follow:
            super().add_splits_back(splits, reader_id)
            return
        for split in splits:  # a family stays together: the others of it are this reader's as well
            self.context.assign_split(split, reader_id)

    @override
    def handle_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """A reader of a part has found another file than the one that was cut: all of it is looked at anew."""
        self._assign(self._to_read([FoundFile(**event)]))

    @override
    def offsets_to_write(self) -> Offsets:
        return self._cutter.offsets_to_write()

    @property
    def _cleans(self) -> bool:
        return self._cleaner.is_wanted and not self.context.planning

    def _may_be_missing(self, path: str) -> bool:
        if self.config.follow and not self.context.bounded:
            return True
        return bool(self.context.offsets.get([file_key(path)]))

    def _look(self) -> tuple[Listed | None, list[str]]:
        """The slow work: clean up what was found to be done, and list again."""
        done, self._to_clean = self._to_clean, []
        cleaned = self._cleaner.clean(done)
        if self._is_all_listed:
            return None, cleaned
        self.context.count("files_list_calls")
        return self._lister.list(), cleaned

    def _take_in(self, looked: tuple[Listed | None, list[str]]) -> None:
        listed, cleaned = looked
        self._uncleaned.difference_update(cleaned)
        if listed is not None:
            self._take_in_listed(listed)
            self._is_all_listed = self.context.bounded or listed.is_last
        if self._cleans:
            self._to_clean = self._complete(self._uncleaned)
        if self._is_all_listed and not self._has_work_left():
            for reader_id in range(self.context.current_parallelism()):
                self.context.signal_no_more_splits(reader_id)

    def _take_in_listed(self, listed: Listed) -> None:
        for path in listed.lost:
            self._wait_for(path)
        for found, why in listed.left_out:
            self._leave_out(found, why)
        if self._is_rule_met(listed.files):
            self.context.rule_met()
        fresh = [found for found in listed.files if self._settled.get(found.path) != found]
        if self.config.follow:
            self._families.learn(found.path for found in listed.files)
            self._follow(fresh)
        else:
            self._assign(self._to_read(fresh))
        # What is no longer there is forgotten: it may come back.
        self._settled = {found.path: found for found in listed.files}
        self._uncleaned &= self._settled.keys()

    def _wait_for(self, path: str) -> None:
        """Have it said for as long as a path is lost; the listings go on without it."""
        if path not in self._lost:
            self._lost.add(path)
            self.context.call_async(lambda: self._lister.find_again(path), self._lost.discard)

    def _is_rule_met(self, files: Sequence[FoundFile]) -> bool:
        """Whether one of the files has been read to the byte of the rule, also by a run that could not say so."""
        last = self.config.last_byte
        if last is None:
            return False
        known = self.context.offsets.get([file_key(found.path) for found in files])
        stored = ((found, known.get(file_key(found.path))) for found in files)
        entries = ((found, FileOffsetEntry.stored(found.path, one)) for found, one in stored if one is not None)
        return any(
            entry.byte >= last and self._decided(found, entry) in {Action.READ, Action.FINISHED}
            for found, entry in entries
        )

    def _complete(self, paths: Iterable[str]) -> list[FileOffsetEntry]:
        known = self.context.offsets.get([file_key(path) for path in paths])
        entries = [FileOffsetEntry(key, stored) for key, stored in known.items()]
        return [entry for entry in entries if entry.is_complete]

    def _has_work_left(self) -> bool:
        """Whether a run that ends and cleans up is not through: entries may take a moment until they are known here."""
        if not self._cleans or (not self._uncleaned and not any(self.context.loads())):
            return False
        if not any(self.context.loads()):
            self._looks_left -= 1
        return self._looks_left > 0

    def _to_read(self, files: Sequence[FoundFile]) -> list[FileSplit]:
        keys = [file_key(found.path) for found in files]
        stored = self.context.offsets.get(keys)
        entries = [FileOffsetEntry(key, stored[key]) if key in stored else None for key in keys]
        told = [(found, entry, self._action(found, entry)) for found, entry in zip(files, entries, strict=True)]
        self._note_finished([FileSplit(found) for found, _, action in told if action is Action.FINISHED])
        if self._cleans:
            self._uncleaned |= {found.path for found, _, action in told if action is not Action.IGNORE}
        splits: list[FileSplit] = []
        for found, entry, action in told:
            if action in {Action.READ, Action.REREAD}:
                splits += self._cutter.splits(found, entry, action)
            if entry is not None and entry.parts and action in {Action.READ, Action.FINISHED}:
                self._go_on(found, entry)
        return splits

    def _go_on(self, found: FoundFile, entry: FileOffsetEntry) -> None:
        self._cutter.follow(found, entry)
        ended = CutFile.of(found, entry, self.context.offsets)
        if not ended.is_ended:
            self._note_finished(ended.splits(ended=True))

    def _action(self, found: FoundFile, entry: FileOffsetEntry | None) -> Action:
        action = self._decided(found, entry)
        if action is Action.FAIL:
            raise ObjectChangedError(
                "the file was overwritten after it had been read, and files.overwrite.policy is fail: "
                "restore it, reset its offset, or choose reread or ignore",
                Where(stage=Stage.DISCOVER, connector=self.config.name, object=found.path),
            )
        if action is Action.IGNORE:
            self._leave_out(found, "it was overwritten after it had been read (files.overwrite.policy)")
        return action

    def _decided(self, found: FoundFile, entry: FileOffsetEntry | None) -> Action:
        policy, grows = self.config.overwrite_policy, self._grows
        if entry is not None and entry.parts:
            return CutFile.of(found, entry, self.context.offsets).what_to_do(policy)
        if entry is None or entry.is_version(found) or is_url(found.path):
            return what_to_do(entry, found, None, policy, grows=grows).action
        try:
            with open(found.path, "rb", buffering=0) as opened:  # noqa: PTH123 - a text
                return what_to_do(entry, found, LocalContent(opened.fileno()), policy, grows=grows).action
        except OSError:
            return Action.READ  # the reader says what is wrong with it, or finds that it has gone

    def _follow(self, files: Sequence[FoundFile]) -> None:
        known = self.context.offsets.get([file_key(found.path) for found in files])
        changed = []
        for found in files:
            stored = known.get(file_key(found.path))
            entry = None if stored is None else FileOffsetEntry.stored(found.path, stored)
            if entry is not None and entry.is_version(found) and (entry.is_complete or entry.byte == found.size):
                self._note_finished([FileSplit(found)])
            else:
                changed.append(found)
        self._learn_folders(changed)
        self._assign([self._followed(found) for found in changed])

    def _learn_folders(self, files: Sequence[FoundFile]) -> None:
        """What is rotated may lie beside a file and not be asked for."""
        for folder in {os.path.dirname(found.path) for found in files}:  # noqa: PTH120 - paths are texts here
            with contextlib.suppress(OSError):  # the reader says what is wrong
                self._families.learn(os.path.join(folder, name) for name in os.listdir(folder))  # noqa: PTH118, PTH208 - as above

    def _followed(self, found: FoundFile) -> FileSplit:
        end = found.size if self.context.bounded else None
        return FileSplit(found, end=end, family=self._families.others(found.path))

    def _note_finished(self, splits: Sequence[FileSplit]) -> None:
        if self.context.planning:
            for split, task in zip(splits, self._shared_out(splits), strict=True):
                self.context.note_finished(split, task)

    def _leave_out(self, found: FoundFile, why: str) -> None:
        version = f"{found}"
        if version not in self._told:
            self._told.add(version)
            name = found.path.encode(errors="backslashreplace").decode()
            self.context.note_skipped(f"{name} is left out: {why}", warn=True)

    def _assign(self, splits: Sequence[FileSplit]) -> None:
        for split, task in zip(splits, self._shared_out(splits), strict=True):
            self._tasks[self._unit(split)] = task
            self.context.assign_split(split, task)

    def _shared_out(self, splits: Sequence[FileSplit]) -> list[int]:
        tasks = self.context.current_parallelism()
        sizes: dict[str, int] = {}
        names: dict[str, str] = {}
        for split in splits:
            unit = self._unit(split)
            names[unit] = unit if self.config.follow else split.as_object().name
            sizes[unit] = sizes.get(unit, 0) + split.size
        held = {unit: task for unit in sizes if (task := self._owner(unit)) is not None}
        if isinstance(self._strategy, BalancedDistribution):
            wanted = [StorageObject(unit, size) for unit, size in sizes.items()]
            plan = self._strategy.plan(wanted, tasks, given=held, loads=self.context.loads())
        else:
            wished = {unit: StorageObject(names[unit], size) for unit, size in sizes.items() if unit not in held}
            plan = {unit: self._strategy.task_for(one, tasks) for unit, one in wished.items()} | held
        return [plan[self._unit(split)] for split in splits]

    def _owner(self, unit: str) -> int | None:
        """The task that has it, or had it in this run: a family's own, or a file's, which may have been given back."""
        return self._tasks.get(unit) if self.config.follow else self.context.owner(unit)

    def _unit(self, split: FileSplit) -> str:
        """What is read by one task as a whole."""
        return family_of(split.file.path) if self.config.follow else split.split_id
