"""The house of an enumerator: what it does for it, and what becomes of discovery that fails."""

import attrs
import pytest

from headrace.framework.driver import enumeration
from headrace.framework.driver.enumeration import EnumeratorHost
from headrace.framework.errors import RetriableError, SourceError
from headrace.framework.splits import Split, SplitEnumerator
from headrace.offsets.memory import MemoryOffsetStore


@attrs.frozen
class Piece(Split):
    name: str

    @property
    def split_id(self):
        return self.name

    @property
    def source_partition(self):
        return {"piece": self.name}


@attrs.define
class Source:
    """As much of a source as the host needs: its enumerator does `work`, and assigns what that brings."""

    work: object

    def create_enumerator(self, context, _state):
        source = self

        class Enumerator(SplitEnumerator):
            def start(self):
                context.call_async(source.work, self.take_in)

            def take_in(self, pieces):
                for piece in pieces:
                    context.assign_split(piece, 0)
                context.note_finished(Piece("old"), 0)
                context.count("pieces_list_calls")
                context.signal_no_more_splits(0)

        return Enumerator()


def worked_off(work):
    """A host whose enumerator has been handed what its work has brought."""
    host = EnumeratorHost("orders", 1, MemoryOffsetStore(), bounded=True)
    host.start(Source(work), None)
    assert host.wake.wait(30)
    host.work_off()
    host.close()
    return host


def test_what_it_keeps():
    """Assigned splits stay known when they are finished; what is finished and counted is kept for a plan."""
    host = worked_off(lambda: [Piece("a"), Piece("b")])
    assert (host.known, host.everybody_is_told, host.is_drained) == (2, True, False)
    assert host.plan(0) == [Piece("a"), Piece("b")]
    host.take_in(0, finished=["a", "b"], wants=False, events=[])
    assert (host.known, host.is_drained) == (2, True)
    assert host.finished == [(Piece("old"), 0)]
    assert host.counted == {"pieces_list_calls": 1}


@attrs.frozen
class Version(Piece):
    number: int


def test_a_newer_version_outlives_the_report_of_the_older():
    """What was assigned while an older version of it was read is still to be read when that one is reported."""
    host = worked_off(lambda: [Version("a", 1)])
    host.plan(0)
    host.assign_split(Version("a", 2), 0)

    host.take_in(0, finished=["a"], wants=False, events=[])

    assert host.plan(0) == [Version("a", 2)]


def test_discovery_is_tried_again():
    """What another attempt can mend is tried again."""
    failures = [RetriableError("away"), RetriableError("away")]

    def work():
        if failures:
            raise failures.pop()
        return [Piece("a")]

    assert worked_off(work).known == 1


def test_patience_ends_before_the_minute(monkeypatch):
    """An attempt that would end too late is not begun: what cannot be reached fails the run within a minute."""
    monkeypatch.setattr(enumeration, "REACH_WITHIN_S", 10.0)
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(enumeration.time, "monotonic", lambda: next(clock))
    attempts = []

    def work():
        attempts.append(1)
        raise RetriableError("away")

    with pytest.raises(RetriableError, match="away"):
        worked_off(work)
    assert len(attempts) == 1


def test_any_other_error_ends_the_run():
    """What no attempt can mend is raised where the answers are worked off, with the stage and the connector."""

    def work():
        raise ValueError("odd")

    with pytest.raises(SourceError, match="discover, orders: discovery failed: ValueError: odd"):
        worked_off(work)
