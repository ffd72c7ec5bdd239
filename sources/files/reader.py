"""Reads the files of one task, one after the other."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence

import attrs

from headrace.framework import registry
from headrace.framework.compat import override
from headrace.framework.config import DataLoss
from headrace.framework.errors import ObjectVanishedError, PipelineError, Where
from headrace.framework.naming import NameTemplate
from headrace.framework.record import RecordBatch
from headrace.framework.splits import SourceReader, SourceReaderContext
from headrace.framework.stage import Stage
from headrace.framework.task import Yielded
from headrace.offsets.key import OffsetManagerKey
from headrace.sources.files.config import FilesConfig
from headrace.sources.files.entry import FileOffsetEntry, file_key
from headrace.sources.files.follower import Follower
from headrace.sources.files.objects import FoundFile
from headrace.sources.files.part_reader import PartsOfFiles
from headrace.sources.files.portion import Portions
from headrace.sources.files.splits import FileSplit
from headrace.sources.files.until import up_to
from headrace.sources.files.whole import WholeFiles
from headrace.transformers.bytes import CHUNK_BYTES

__all__ = ["FilesReader"]

log = logging.getLogger(__name__)


@attrs.define
class FilesReader(SourceReader[FileSplit]):
    """One file at a time, from where its entry says that reading goes on."""

    context: SourceReaderContext
    config: FilesConfig
    _splits: deque[FileSplit] = attrs.field(factory=deque, init=False)
    _current: Iterator[Yielded] | None = attrs.field(default=None, init=False)
    _portions: Portions = attrs.field(init=False)
    _is_rule_met: bool = attrs.field(default=False, init=False)

    @override
    def start(self) -> None:
        transformer = registry.find("transformers", self.config.input_format)()
        transformer.configure({**self.config.props, CHUNK_BYTES: str(self.config.transformer_max_buffer_size)})
        self._portions = Portions(
            config=self.config,
            transformer=transformer,
            template=NameTemplate.parse(self.config.file_name_template),
            stopping=self.context.task.stopping,
        )

    @override
    def add_splits(self, splits: Sequence[FileSplit]) -> None:
        keys = {OffsetManagerKey(partition) for split in splits for partition in split.source_partitions}
        self.context.task.offsets.populate_offset_manager(keys)
        self._splits.extend(splits)

    @override
    def snapshot(self) -> Sequence[FileSplit]:
        return tuple(self._splits)

    @override
    def poll(self) -> Sequence[Yielded]:
        while self._splits and not self._is_rule_met:
            if self._current is None:
                self._current = self._read(self._splits[0])
            for item in self._current:
                return (item,)
            self._end_file()
        return ()

    @override
    def close(self) -> None:
        current, self._current = self._current, None
        if current is not None and hasattr(current, "close"):
            current.close()

    def _read(self, split: FileSplit) -> Iterator[Yielded]:
        where = Where(stage=Stage.READ, object=split.file.path)
        try:
            batches, last = self._batches(split), self.config.last_byte
            yield from batches if last is None else up_to(last, batches, self._meet_rule)
        except ObjectVanishedError as error:
            if self.config.data_loss is DataLoss.FAIL:
                raise error.located(where) from error.__cause__
            self._leave_out(f"{split.file.path} was deleted before it was read to its end")
        except PipelineError as error:
            raise error.located(where) from error.__cause__

    def _end_file(self) -> None:
        self._current = None
        if not self._is_rule_met:
            self.context.split_finished(self._splits.popleft().split_id)

    def _batches(self, split: FileSplit) -> Iterator[RecordBatch]:
        if split.part is not None:
            parts = PartsOfFiles(self._portions, self.context.task.offsets, self._tell_changed)
            return parts.read(split, split.part)
        if self.config.follow:
            return Follower(self._portions, self._stored, self._leave_out, self.config).follow(split)
        return WholeFiles(self._portions, self._stored, self._leave_out, self.config).read(split)

    def _meet_rule(self) -> None:
        self._is_rule_met = True
        self.context.rule_met()

    def _tell_changed(self, found: FoundFile) -> None:
        self.context.send_source_event(attrs.asdict(found))

    def _stored(self, path: str) -> FileOffsetEntry | None:
        return self.context.task.offsets.get_entry(file_key(path), lambda known: FileOffsetEntry(file_key(path), known))

    def _leave_out(self, why: str) -> None:
        log.warning("%s: %s", self.config.name, why)
        self.context.task.metrics.leave_out(why)
