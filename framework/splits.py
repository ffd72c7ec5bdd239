"""Discovery apart from reading: splits, the enumerator that finds them, the readers that read them (FLIP-27).

A split is the smallest unit of work: an object, a file, a partition of a stream. The enumerator is one per
connector and lives in the driver; it finds splits and gives each to one reader. Readers live in tasks, one per task.
The two never call each other: they speak through their contexts, and what they say travels with plans and reports,
so it takes a micro-batch to arrive, and after a failure it may arrive twice.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import SourceError
from headrace.framework.readiness import Readiness
from headrace.framework.replay import Replays
from headrace.framework.source_offsets import SourceOffsets
from headrace.framework.split_description import SplitDescription
from headrace.framework.task import TaskContext, Yielded
from headrace.offsets.entry import RECORD_COUNT
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import Offsets, OffsetStore

__all__ = [
    "Boundedness",
    "SourceReader",
    "SourceReaderContext",
    "Split",
    "SplitDescription",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitSerializer",
    "SplitSource",
]


class Boundedness(enum.StrEnum):
    """Of which kind a source's splits are. Whether a run ends by itself is another matter: both kinds can do both."""

    BOUNDED = "bounded"
    """Pieces that end. A run over what there is ends when they are read; any other goes on, and new ones are found."""
    UNBOUNDED = "unbounded"
    """Streams that are read on and on. A run over what there is ends where they ended when it began."""


class Split(ABC):
    """A unit of work: immutable, small, and the same thing in every process.

    Subclass it with what it takes to open the thing (attrs frozen does well), not how far it is read: offsets say that.
    """

    @property
    @abstractmethod
    def split_id(self) -> str:
        """What names the split, the same in every process and every run."""

    @property
    @abstractmethod
    def source_partition(self) -> Mapping[str, Any]:
        """The source partition under which its progress is stored."""

    @property
    def source_partitions(self) -> Sequence[Mapping[str, Any]]:
        """Every source partition whose stored progress its reader may ask for; a task is sent no others.

        More than its own where a split has a past under other names. They belong to the split's owner as its own does.
        """
        return [self.source_partition]

    @property
    def whole_id(self) -> str:
        """What names the thing that the split is a part of, for counting things: its own id where it is all of it."""
        return self.split_id

    @property
    def version(self) -> str:
        """What tells the thing from another one of the same name, as `SplitSource.finished_version` names it."""
        return ""

    @property
    def size(self) -> int:
        """How much work it is, in whatever the source's splits are compared by; 0 if nobody knows."""
        return 0

    @property
    def is_endless(self) -> bool:
        """Whether its reader never reports it as finished: a stream that is read on and on.

        A reader with such a split is never idle, so what comes new for it ends the micro-batch. One whose splits end
        gets what is new when it is through with them.
        """
        return False


S = TypeVar("S", bound=Split)
T = TypeVar("T")
S_contra = TypeVar("S_contra", bound=Split, contravariant=True)


class SplitSerializer(ABC, Generic[S]):
    """Splits as bytes. What an older version wrote is read for ever: raise `version` with every change of form."""

    version: int = 1

    @abstractmethod
    def serialize(self, split: S) -> bytes:
        """The split, in the form of `version`."""

    @abstractmethod
    def deserialize(self, version: int, data: bytes) -> S:
        """The split that `version` wrote; `ValueError` for a version from the future."""


class SplitEnumeratorContext(Protocol[S_contra]):
    """What the framework does for an enumerator."""

    offsets: OffsetStore
    """The committed progress of the whole connector, as the driver sees it."""

    bounded: bool
    """Whether this run is to end when what there is now has been read."""

    planning: bool
    """Whether nothing is going to be read: the enumerator is asked for a plan, and for `note_finished`."""

    def current_parallelism(self) -> int:
        """How many readers there are."""
        ...

    def assign_split(self, split: S_contra, reader_id: int) -> None:
        """Give a split to a reader. It stays with that reader for as long as the run's generation lasts."""
        ...

    def owner(self, split_id: str) -> int | None:
        """The reader to which a split of that name was given in this run, and has to be given again."""
        ...

    def in_hand(self, split_id: str) -> bool:
        """Whether a reader has a split of that name, as far as the driver knows: it is assigned, and not finished."""
        ...

    def backlog(self) -> int:
        """How many splits the readers still have: an enumerator that has found enough may wait with finding more."""
        ...

    def keep_rolled_up(self, keep: Callable[[int], bool], *, renewed: Collection[OffsetManagerKey] = ()) -> None:
        """Drop from the roll-up, before long, what is no longer there: the names to whose marks `keep` says no.

        `renewed` are there, are rolled up in another version, and have the mark of their name to themselves: until
        this is called again, what is read of them may take that version's place.
        """
        ...

    def loads(self) -> Sequence[int]:
        """What each reader still has to read: the sum of the sizes of its splits, each at least 1."""
        ...

    def note_skipped(self, word: str, *, warn: bool) -> None:
        """Something that was found is left out on purpose: it is counted, and said, in the summary if `warn`."""
        ...

    def note_finished(self, split: S_contra, reader_id: int) -> None:
        """A split has nothing left to read; the reader is the one that it would be given to. For a plan only."""
        ...

    def count(self, name: str, by: int = 1) -> None:
        """Count, from any thread; requests as `<source>_list_calls`, what a run makes beside its plan as `..._more`."""
        ...

    def rule_met(self) -> None:
        """What was committed before meets the stop rule, a `position` or `time`: the run ends, whatever is left."""
        ...

    def signal_no_more_splits(self, reader_id: int) -> None:
        """Tell a reader that what it has is all that it gets.

        Once every reader has been told, a run ends with the last split: also one that was to go on.
        """
        ...

    def send_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """Send a reader something of the source's own: it comes with the reader's next plan, before its first poll."""
        ...

    def call_async(
        self, work: Callable[[], T], handle: Callable[[T], None], *, after_s: float = 0.0, every_s: float | None = None
    ) -> None:
        """Do slow `work` (a listing) on a thread of its own, then `handle` its answer on the enumerator's thread.

        The work begins `after_s` seconds from now, unless the run has ended by then. It is repeated `every_s` seconds
        after the last one ended, until the run ends; once where that is None. A `RetriableError` from `work` is
        retried with backoff, for less than a minute if none has ever succeeded; once one has, for a minute in a
        bounded run, and for as long as it takes in any other. Every other error ends the run with its cause.
        """
        ...


class SplitEnumerator(ABC, Generic[S]):
    """Finds splits and gives them away. One per connector, in the driver; called on one thread.

    The constructor takes the context, the configuration, and the state that an earlier enumerator of this connector
    left (`snapshot_state`), or None; it keeps the context as `context`.
    """

    context: SplitEnumeratorContext[S]

    def start(self) -> None:
        """Begin discovery; called once, before anything else."""

    def add_reader(self, reader_id: int) -> None:
        """A reader is there. Called once per reader, with 0 up to the parallelism less one, after `start`."""

    def handle_split_request(self, reader_id: int) -> None:
        """A reader has nothing left and asks for work.

        At the start of a run every reader is taken to ask. One that gets no split is remembered, and this is called
        for it again: after each discovery (`call_async`) has been handled, until a split is assigned to it or
        `signal_no_more_splits` says that none will be. While a split that was given back has no reader, everyone who
        has nothing is taken to ask, whatever was signalled.
        """

    def add_splits_back(self, splits: Sequence[S], reader_id: int) -> None:
        """A reader is lost or gives splits back; their progress is in the offsets. They need a new reader.

        Called between micro-batches under a new generation only, so that nobody else can still be reading them. It is
        said once: each of them is to be assigned again, now or later, and a bounded run does not end before. Any
        reader may get them, also the one that had them, which goes on as a reader. Unless it is overridden, each goes
        to the one that has the least to read, of the others if there are others.
        """
        loads = list(self.context.loads())
        others = [one for one in range(len(loads)) if one != reader_id] or [reader_id]
        for split in splits:
            least = min(others, key=lambda one: loads[one])
            loads[least] += max(1, split.size)
            self.context.assign_split(split, least)

    def handle_source_event(self, reader_id: int, event: Mapping[str, Any]) -> None:
        """A reader has sent something of the source's own."""

    def offsets_to_write(self) -> Offsets:
        """Entries that nobody but the enumerator can write: those of what is several splits; None forgets one.

        Called between micro-batches, often, before any split that was assigned until now goes to its reader; also once
        a run has nothing left to read. All of it is written in one transaction of the driver's, and `context.offsets`
        has it from then on; if that fails, so does the run. Only source partitions that no reader has in hand, and
        such whose splits were assigned anew with what is written here: what a reader may still be writing is not to
        be overwritten. An object that `complete` is said of counts as finished by this run.
        """
        return {}

    def snapshot_state(self) -> Mapping[str, Any] | None:
        """What the next enumerator must remember, a resolved start position for example: a flat map, as an offset is.

        Called often, before every plan, so it is to be cheap. A map other than the last one is stored beside the
        offsets before any split that was assigned until now goes to its reader; `offsets reset` forgets it. None
        stores nothing, and leaves what is stored.
        """
        return None

    def close(self) -> None:
        """End discovery and close what is open; called once, last."""


class SourceReaderContext(Protocol):
    """What the framework does for a reader."""

    task: TaskContext
    """The task that the reader reads for: its offsets, its metrics, and whether it is to stop."""

    def send_split_request(self) -> None:
        """Ask the enumerator for work: when the last split in hand is finished, or before that."""
        ...

    def send_source_event(self, event: Mapping[str, Any]) -> None:
        """Send the enumerator something of the source's own."""
        ...

    def rule_met(self) -> None:
        """What `poll` returns next, or has just returned, meets the rule's `position` or `time`: the whole run ends."""
        ...

    def split_finished(self, split_id: str) -> None:
        """Nothing is left in this split. The enumerator's side learns of it once what was read is committed."""
        ...

    def give_back(self, split_ids: Sequence[str]) -> None:
        """Have these splits read by another reader, if there is one: this one cannot, or has too much.

        Leave them out of `snapshot` from now on. What `poll` returns next, or has just returned, is the last that is
        taken in this micro-batch; it is committed, but for what the `object` boundary would cut in two, which is read
        again. The other splits stay. One that comes back too often with nothing read of it in between fails the run.
        """
        ...


class SourceReader(ABC, Generic[S]):
    """Reads splits. One per task, in an executor; called on the task's thread.

    Where to go on in a split the reader asks of `context.task.offsets`.
    """

    def start(self) -> None:
        """Open what all splits share; called once, first."""

    @abstractmethod
    def poll(self) -> Sequence[Yielded]:
        """The next records, or nothing: it does not wait for a source that has none right now.

        It is called again and again while there are splits in hand. What it returns goes out in that order.
        """

    @abstractmethod
    def add_splits(self, splits: Sequence[S]) -> None:
        """These splits are now this reader's, besides those that it has."""

    def notify_no_more_splits(self) -> None:
        """What the reader has is all that it gets."""

    def handle_source_event(self, event: Mapping[str, Any]) -> None:
        """The enumerator has sent something of the source's own."""

    def committed(self) -> None:
        """Something of what `poll` returned is committed: `context.task.offsets` says up to where, in each split.

        Called after each commit, from any of the framework's threads, also while `poll` runs: the place to acknowledge
        to a source that wants it. A crash between the commit and this call is possible. It must not fail or take long.
        """

    @abstractmethod
    def snapshot(self) -> Sequence[S]:
        """The splits in hand that are not finished."""

    def close(self) -> None:
        """Close what is open, also after an error; called once, last."""


class SplitSource(Readiness, ABC, Generic[S]):
    """The factory of a source's parts, and what is known of it as a whole: what the plugin names.

    Made without arguments and configured once, in the driver and in every task.
    """

    config_class: ClassVar[type[SourceCommonConfig]] = SourceCommonConfig
    """What `configure` returns; `headrace plugins` shows the options that it declares."""

    @abstractmethod
    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        """Read and check the configuration; open nothing. `ConfigError` with all faults at once."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Of which kind its splits are, after `configure`: for programs that start runs, not for the framework.

        What ends a run is `--available-now`, `stop.rule`, or the enumerator's `signal_no_more_splits`.
        """

    @property
    def exactly_once(self) -> bool:
        """Whether what it reads can be delivered exactly once: it can read again from any stored offset."""
        return True

    @property
    @abstractmethod
    def split_serializer(self) -> SplitSerializer[S]:
        """How its splits travel and are stored."""

    def describe(self, split: S, offset: Mapping[str, Any] | None) -> SplitDescription:
        """What is known of a split, with what is stored of it: for `headrace plan`, on the driver, after `configure`.

        It opens nothing. Override it where the source's offsets say more than a count of records.
        """
        count = (offset or {}).get(RECORD_COUNT)
        return SplitDescription(key=split.split_id, records_done=count if isinstance(count, int) else 0)

    def finished_version(self, offset: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - for sources that can tell
        """The version that a stored offset says was read to its end; None if it was not, or its version is not known.

        Entries that say so are rolled up once there are many: `context.offsets.rolled_up` knows what has no entry.
        """
        return None

    def source_offsets(self) -> SourceOffsets:
        """What the source can say about offsets beyond their form: for `headrace offsets`, after `configure`."""
        return SourceOffsets()

    def replays(self) -> Replays:
        """What reads single pieces of the source again, on the driver, after `configure`; the caller closes it."""
        raise SourceError("this source cannot read what stands on the dead-letter topic again")

    @abstractmethod
    def create_enumerator(
        self, context: SplitEnumeratorContext[S], state: Mapping[str, Any] | None
    ) -> SplitEnumerator[S]:
        """The enumerator, in the driver, with the state that an earlier one left."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext) -> SourceReader[S]:
        """A reader, in a task."""
