"""Readers of splits, as a task like any other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headrace.framework.backoff import BackoffConfig
from headrace.framework.compat import override
from headrace.framework.config import SourceCommonConfig
from headrace.framework.splits import SourceReader, Split, SplitSource
from headrace.framework.task import AbstractSourceTask, TaskContext, Yielded
from headrace.framework.worker.plan import Ended, TaskReport
from headrace.offsets.key import OffsetManagerKey

__all__ = ["ReaderContext", "SplitSourceTask"]


@attrs.define
class ReaderContext:
    """What a reader is told, and what it has said so far in this micro-batch."""

    task: TaskContext
    wants_splits: bool = False
    events: list[Mapping[str, Any]] = attrs.field(factory=list)
    read_to_the_end: list[str] = attrs.field(factory=list)
    given_back: dict[str, None] = attrs.field(factory=dict)
    is_rule_met: bool = False

    def send_split_request(self) -> None:
        """The enumerator learns of it from the report."""
        self.wants_splits = True

    def send_source_event(self, event: Mapping[str, Any]) -> None:
        """The enumerator gets it with the report."""
        self.events.append(dict(event))

    def split_finished(self, split_id: str) -> None:
        """Counts from the next commit on."""
        self.read_to_the_end.append(split_id)

    def give_back(self, split_ids: Sequence[str]) -> None:
        """Nothing more is asked of the reader: the driver moves splits between micro-batches."""
        self.given_back.update(dict.fromkeys(split_ids))

    def rule_met(self) -> None:
        """Nothing more is asked of the reader: the run ends with what it has given by then."""
        self.is_rule_met = True


class SplitSourceTask(AbstractSourceTask):
    """Makes any `SplitSource` an `AbstractSourceTask`: a reader that is given its splits and polled.

    `finished` are the splits whose last record is committed. Each call of `get_iterator` makes a new reader on the
    splits that are not finished, so what was aborted is read again. Once a reader has given splits back, `leave` is
    called: the task's part in the micro-batch is to end where it stands.
    """

    def __init__(
        self,
        source: SplitSource[Any],
        splits: Mapping[str, Split],
        *,
        no_more_splits: bool = False,
        events: Sequence[Mapping[str, Any]] = (),
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the configured source, and the splits and events that the plan has for it."""
        self.source = source
        self.splits = dict(splits)
        self.no_more_splits = no_more_splits
        self.events = events
        self.leave = leave
        self.finished: dict[str, None] = {}
        self.given_back: dict[str, None] = {}
        self._ended: list[str] = []
        self.reader: SourceReader[Split] | None = None
        self.reader_context: ReaderContext | None = None

    @override
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        return self.source.configure(props)

    @override
    def get_iterator(self, backoff: BackoffConfig) -> Iterator[Yielded]:
        self._close_reader()
        self._ended = []
        self._pass_over_rolled_up()
        done = self.finished.keys() | self.given_back.keys()
        unfinished = [split for split_id, split in self.splits.items() if split_id not in done]
        context = self.reader_context = ReaderContext(self.context, given_back=self.given_back)
        reader = self.reader = self.source.create_reader(context)
        reader.start()
        reader.add_splits(unfinished)
        if self.no_more_splits:
            reader.notify_no_more_splits()
        for event in self.events:
            reader.handle_source_event(event)
        while not self.given_back:
            items = reader.poll()
            ended, context.read_to_the_end = context.read_to_the_end, []
            yield from items
            # Only now has the last item been taken: a commit before this line does not finish the splits.
            self._ended += ended
            if context.is_rule_met:
                return
            if not items and not self.given_back:
                if not reader.snapshot():
                    return
                yield None
        self.leave()
        yield None

    @override
    def committed(self) -> None:
        # The iterator may be adding to it: what it adds to the list that was taken counts as well.
        ended, self._ended = self._ended, []
        self.finished.update(dict.fromkeys(ended))
        if (reader := self.reader) is not None:
            reader.committed()

    @override
    def close_resources(self) -> None:
        self._close_reader()

    def tell(self, report: TaskReport) -> None:
        """Put into the report what the reader has to say to the enumerator."""
        report.finished_splits = list(self.finished)
        report.given_back = [split_id for split_id in self.given_back if split_id not in self.finished]
        if self.reader_context is not None:
            if self.reader_context.is_rule_met and report.error is None:
                report.ended = Ended.RULE_MET
            report.wants_splits = self.reader_context.wants_splits
            report.events = list(self.reader_context.events)

    def _pass_over_rolled_up(self) -> None:
        """An attempt that comes late finds splits finished, and their entries gone, since its plan was made."""
        offsets = self.context.offsets
        for name, split in self.splits.items():
            keys = map(OffsetManagerKey, split.source_partitions)
            if any(offsets.is_rolled_up(key, split.version) for key in keys):
                self.finished[name] = None

    def _close_reader(self) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()
