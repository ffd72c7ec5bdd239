"""What only a source can say about its offsets: whether one makes sense, what it means, what else there is."""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.errors import Fault, SourceError
from headrace.offsets.key import OffsetManagerKey
from headrace.offsets.store import OffsetStore

if TYPE_CHECKING:
    from headrace.framework.splits import Split

__all__ = ["Check", "Explanation", "SourceOffsets", "State", "Surveyed"]


class State(enum.StrEnum):
    """How things stand with one piece of a source."""

    COMPLETE = "complete"
    """It was read to its end, and that is known."""

    PARTIAL = "partial"
    """Records of it were read. Whether there are more, the offsets do not say: a run reads on and finds out."""

    UNSEEN = "unseen"
    """Nothing of it was read; a run reads it."""

    CHANGED = "changed"
    """It is another one than the one that was read; the source's policy says what comes of that."""

    LEFT_OUT = "left_out"
    """It is there, and a run does not read it."""

    FAILS = "fails"
    """It is there, and would fail the run."""

    OFFSETS_ONLY = "offsets_only"
    """The offsets know it, and the source has it no more."""

    MISSING = "missing"
    """Neither the source nor the offsets know it."""


@attrs.frozen(kw_only=True)
class Check:
    """One thing that decides whether a piece is read; `passed` is None where it decides nothing."""

    name: str
    passed: bool | None
    says: str


@attrs.frozen(kw_only=True)
class Explanation:
    """Why a piece was read, will be, or will not.

    `task` is None where only a run that lists everything can say it. `offset` is what is stored; `found` is what the
    source says of it.
    """

    name: str
    state: State
    reason: str
    task: int | None = None
    records_done: int = 0
    byte: int = 0
    rolled_up: bool = False
    checks: Sequence[Check] = ()
    offset: Mapping[str, Any] | None = None
    found: Mapping[str, Any] | None = None

    def as_json(self) -> Mapping[str, Any]:
        """The document that `headrace offsets explain --output json` prints."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class Surveyed:
    """One piece, of the source or of the offsets, and the offset that says of it all that is known.

    `offset` is None where there is nothing to store. `split` is there for what a run would go on reading. `rolled_up`
    says that its offset stands in a record about many pieces, and in none of its own.
    """

    key: OffsetManagerKey
    name: str
    state: State
    offset: Mapping[str, Any] | None = None
    split: "Split | None" = None
    rolled_up: bool = False


class SourceOffsets:
    """A source's word on its offsets, for `headrace offsets`; made by a configured source, on the driver.

    Nothing here writes, and no run is disturbed. The class itself is that of a source that says nothing: any flat map
    passes, and there is nothing to explain or to survey.
    """

    def faults(
        self,
        partition: Mapping[str, Any],  # noqa: ARG002 - for those who override it
        offset: Mapping[str, Any] | None,  # noqa: ARG002 - as above
    ) -> Iterable[Fault]:
        """What is wrong with an entry that somebody wants to have stored; keys are `partition.name`, `offset.name`.

        Both maps are flat. Any partition may be forgotten (`offset` None): it may be what is to be cleaned up.
        """
        return ()

    def impossible(
        self,
        partition: Mapping[str, Any],  # noqa: ARG002 - for those who override it
        offset: Mapping[str, Any],  # noqa: ARG002 - as above
    ) -> str | None:
        """What a stored entry, whoever wrote it, says that cannot be, so that a run would fail; None for nothing."""
        return None

    def notes(self, partition: Mapping[str, Any]) -> Iterable[str]:  # noqa: ARG002 - as above
        """What is odd about an entry without being wrong, for people."""
        return ()

    def in_order(self, partition: Mapping[str, Any]) -> Mapping[str, Any]:
        """The partition with its names in the order in which the source writes them."""
        return partition

    def explain(self, name: str, offsets: OffsetStore, tasks: int) -> Explanation:  # noqa: ARG002 - as above
        """Why the piece `name` was, will be or will not be read; asks the source about that piece, and no more."""
        raise SourceError(f"{name}: this source cannot explain single pieces; see headrace offsets list")

    def survey(
        self,
        offsets: OffsetStore,  # noqa: ARG002 - as above
        count: Callable[[str, int], None],  # noqa: ARG002 - as above
    ) -> Iterator[Surveyed]:
        """Compare everything that the source has with everything that the offsets know; lists once, opens nothing.

        Each piece comes once, while the listing goes on; there may be more than fit in memory. Their offsets are as a
        run of ours would have written them, wherever they came from. Requests are counted as the enumerator's are.
        """
        raise SourceError(
            "this source cannot list what it has: move its offsets with headrace offsets export and import"
        )

    def for_connect(self, surveyed: Surveyed) -> Mapping[str, Any] | None:
        """The offset of a piece as Kafka Connect's connector of the same source should find it; None for nothing."""
        return surveyed.offset
