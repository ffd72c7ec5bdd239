"""The house of an enumerator: what it does for it, and what becomes of discovery that fails."""

import threading

import attrs
import pytest

from headrace.framework.driver import discovery, enumeration, stall
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


def test_a_rule_that_is_met_before_anything_is_read():
    """An enumerator that finds the stop rule met by the offsets wakes the driver, whatever it has assigned."""
    host = EnumeratorHost("orders", 1, MemoryOffsetStore(), bounded=False)
    host.assign_split(Piece("a"), 0)
    host.wake.clear()
    assert not host.is_rule_met
    host.rule_met()
    assert (host.is_rule_met, host.wake.is_set(), host.is_drained) == (True, True, False)


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


def test_a_split_has_one_owner():
    """Within a generation a split stays with its reader: a second one is refused, also when it has been finished."""
    host = worked_off(lambda: [Piece("a")])
    host.plan(0)
    host.take_in(0, finished=["a"], wants=False, events=[])
    host.tasks = 2

    with pytest.raises(SourceError, match="split a belongs to reader 0 and was assigned to 1"):
        host.assign_split(Piece("a"), 1)
    with pytest.raises(SourceError, match="assigned to reader 2, and there are 2"):
        host.assign_split(Piece("b"), 2)


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
    monkeypatch.setattr(discovery, "REACH_WITHIN_S", 10.0)
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(discovery.time, "monotonic", lambda: next(clock))
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


class OnRequest(SplitEnumerator):
    """Gives a piece to who asks; `found` is what discovery has brought so far."""

    def __init__(self, context):
        self.context = context
        self.found = []
        self.asked = []

    def discovered(self, *names):
        self.context.call_async(lambda: [Piece(name) for name in names], self.found.extend)

    def handle_split_request(self, reader_id):
        self.asked.append(reader_id)
        if self.found:
            self.context.assign_split(self.found.pop(0), reader_id)


@attrs.define
class OnRequestSource:
    def create_enumerator(self, context, _state):
        return OnRequest(context)


@pytest.fixture
def on_request():
    """A host of two readers, and its enumerator that gives on request; nothing is found yet."""
    host = EnumeratorHost("orders", 2, MemoryOffsetStore(), bounded=False)
    host.start(OnRequestSource(), None)
    yield host, host._enumerator
    host.close()


def discover(host, *names):
    host._enumerator.discovered(*names)
    while not host._enumerator.found and not any(host.assigned.values()):
        assert host.wake.wait(30)
        host.wake.clear()
        host.work_off()


def test_every_reader_asks_at_the_start(on_request):
    """A reader has nothing at the start of a run, so the enumerator is asked for each of them."""
    _, enumerator = on_request
    assert enumerator.asked == [0, 1]


def test_who_asked_in_vain_is_asked_for_again(on_request):
    """A reader that got nothing gets something as soon as discovery has brought it, without asking again."""
    host, _ = on_request
    discover(host, "a", "b", "c")
    assert [host.plan(0), host.plan(1)] == [[Piece("a")], [Piece("b")]]


def test_who_was_served_is_not_asked_for_again(on_request):
    """After a split, or the word that there are no more, a reader gets no other one until it asks."""
    host, enumerator = on_request
    host.signal_no_more_splits(1)
    discover(host, "a")
    enumerator.asked.clear()
    discover(host, "b", "c")
    host.work_off()
    assert enumerator.asked == []

    host.take_in(0, finished=["a"], wants=True, events=[])
    assert enumerator.asked == [0]


def test_what_was_sent_with_a_plan_that_came_to_nothing_is_sent_again():
    """Events go with the next plan, and with the one after it if that is not known to have arrived; in their order."""
    host = worked_off(lambda: [Piece("a")])
    host.send_source_event(0, {"number": 1})
    first = host.plan_events(0)
    host.send_source_event(0, {"number": 2})
    host.put_back(0)
    second = host.plan_events(0)
    host.take_in(0, finished=[], wants=False, events=[])

    assert first == [{"number": 1}]
    assert second == [{"number": 1}, {"number": 2}]
    assert host.plan_events(0) == []


def test_only_news_is_work_for_a_reader_that_is_through():
    """What a reader has been through is no work for it, though its report is still to come; what is new is."""
    host = worked_off(lambda: [Piece("a")])
    host.plan(0)
    before = host.has_work(0)
    host.note_through(0)
    through = host.has_work(0)
    host.assign_split(Piece("b"), 0)

    assert (before, through, host.has_work(0)) == (True, False, True)


def test_a_plan_that_came_to_nothing_is_work_again():
    """A reader that was through, in a batch that then failed as a whole, is planned again."""
    host = worked_off(lambda: [Piece("a")])
    host.plan(0)
    host.note_through(0)
    host.put_back(0)
    assert host.has_work(0)


@attrs.frozen
class Stream(Piece):
    """A piece that never ends."""

    @property
    def is_endless(self):
        return True


def test_who_is_never_idle_is_told_of_what_is_new():
    """A reader of a stream has news once there is another stream for it, or a word; one of pieces gets them in time."""
    of_pieces, of_streams = worked_off(lambda: [Piece("a")]), worked_off(lambda: [Stream("a")])
    for host in (of_pieces, of_streams):
        host.plan(0)
    before = of_streams.has_news(0)
    for host in (of_pieces, of_streams):
        host.assign_split(Stream("b"), 0)
    after = of_streams.has_news(0)
    of_streams.plan(0)
    planned = of_streams.has_news(0)
    of_streams.send_source_event(0, {"word": 1})

    assert (before, after, planned, of_streams.has_news(0)) == (False, True, False, True)
    assert not of_pieces.has_news(0)


def test_no_stream_waits_for_others_that_never_end(monkeypatch):
    """However many streams a reader has, each plan has all of them; of pieces that end it has so many at once."""
    monkeypatch.setattr(enumeration, "PLANNED_AT_ONCE", 2)
    streams = worked_off(lambda: [Stream(name) for name in "abc"])
    pieces = worked_off(lambda: [Piece(name) for name in "abc"])

    assert [split.name for split in streams.plan(0)] == ["a", "b", "c"]
    assert [split.name for split in pieces.plan(0)] == ["a", "b"]
    assert not streams.has_news(0)


class Balanced(SplitEnumerator):
    """Gives pieces by size; what comes back goes where the framework says."""

    def __init__(self, context, sizes):
        self.context, self.sizes = context, sizes

    def start(self):
        for reader_id, size in enumerate(self.sizes):
            self.context.assign_split(Sized(f"piece-{reader_id}", size), reader_id)


@attrs.frozen
class Sized(Piece):
    size: int


@attrs.define
class BalancedSource:
    sizes: list

    def create_enumerator(self, context, _state):
        return Balanced(context, self.sizes)


def test_what_comes_back_goes_to_the_least_loaded_of_the_others():
    """Unless the enumerator says otherwise: one by one, not to the reader that had them."""
    host = EnumeratorHost("orders", 3, MemoryOffsetStore(), bounded=True)
    host.start(BalancedSource([1, 5, 3]), None)
    host.assign_split(Sized("other", 3), 0)
    kept = Sized("kept", 1)
    host.assign_split(kept, 0)

    host.hand_back(0, [Sized("other", 3), Sized("piece-0", 1)])

    assert host.plan(0) == [kept]
    assert [list(host.assigned[reader_id]) for reader_id in (1, 2)] == [["piece-1", "piece-0"], ["piece-2", "other"]]
    assert [host.owner(name) for name in ("piece-0", "other", "kept")] == [1, 2, 0]


def test_what_comes_back_stays_with_the_only_reader():
    """Where there is no other reader, it is the same one."""
    host = EnumeratorHost("orders", 1, MemoryOffsetStore(), bounded=True)
    host.start(BalancedSource([1]), None)
    host.hand_back(0, [Sized("piece-0", 1)])
    assert host.plan(0) == [Sized("piece-0", 1)]


class Hoarding(OnRequest):
    """Keeps what comes back until it is asked for."""

    def add_splits_back(self, splits, _reader_id):
        self.found += splits


@attrs.define
class HoardingSource:
    def create_enumerator(self, context, _state):
        return Hoarding(context)


@pytest.fixture
def hoarding():
    """A host of two readers that have a piece each, and have been told that they get no more."""
    host = EnumeratorHost("orders", 2, MemoryOffsetStore(), bounded=True)
    host.start(HoardingSource(), None)
    for reader_id, name in enumerate("ab"):
        host.assign_split(Piece(name), reader_id)
        host.plan(reader_id)
        host.signal_no_more_splits(reader_id)
    yield host
    host.close()


def test_a_run_does_not_end_without_what_was_given_back(hoarding):
    """A split that nobody has is in the way of the end, and of the word that there is no more; status names it."""
    hoarding._enumerator.handle_split_request = lambda _: None
    hoarding.take_in(1, finished=["b"], wants=False, events=[])
    hoarding.hand_back(0, [Piece("a")])

    assert not hoarding.is_drained
    assert not hoarding.is_told_everything(0)
    assert hoarding.stalled == ["split a, which was given back, has no reader yet"]

    hoarding.assign_split(Piece("a"), 1)
    hoarding.plan(1)
    assert hoarding.is_told_everything(0)
    assert hoarding.stalled == []
    hoarding.take_in(1, finished=["a"], wants=False, events=[])
    assert hoarding.is_drained


def test_who_has_nothing_is_asked_for_what_was_given_back(hoarding):
    """An idle reader that was told that there is no more gets it all the same, before the one that had it."""
    hoarding.take_in(1, finished=["b"], wants=False, events=[])
    hoarding.hand_back(0, [Piece("a")])
    assert hoarding.plan(1) == [Piece("a")]


def test_who_comes_to_have_nothing_is_asked_as_well(hoarding):
    """As long as a split that was given back has no reader, whoever is through is taken to ask."""
    asked = hoarding._enumerator.asked
    hoarding._enumerator.add_splits_back = lambda *_: None
    hoarding.hand_back(0, [Piece("a")])
    hoarding._enumerator.found.append(Piece("a"))
    asked.clear()

    hoarding.take_in(1, finished=["b"], wants=False, events=[])

    assert (asked, hoarding.plan(0)) == ([0], [Piece("a")])


@attrs.define
class Repeated:
    """A source whose discovery goes well once, then fails `failures` times, then goes well again."""

    failures: int
    attempts: int = 0
    again: threading.Event = attrs.field(factory=threading.Event)

    def work(self):
        self.attempts += 1
        if 1 < self.attempts <= 1 + self.failures:
            raise RetriableError("the store is away")
        return self.attempts

    def create_enumerator(self, context, _state):
        source = self

        class Enumerator(SplitEnumerator):
            def start(self):
                context.call_async(source.work, self.take_in, every_s=0.01)

            def take_in(self, attempts):
                if attempts > 1:
                    source.again.set()

        return Enumerator()


def hosted(source, *, bounded):
    host = EnumeratorHost("orders", 1, MemoryOffsetStore(), bounded=bounded)
    host.start(source, None)
    try:
        while not source.again.is_set():
            assert host.wake.wait(30)
            host.wake.clear()
            host.work_off()
    finally:
        host.close()
    return host


def test_a_source_that_was_reached_may_be_away_in_a_continuous_run(monkeypatch):
    """Once discovery has succeeded, a run without an end tries again for as long as it takes, and warns of it once."""
    monkeypatch.setattr(discovery, "REACH_WITHIN_S", 0.0)
    monkeypatch.setattr(discovery, "BACK_WITHIN_S", 0.0)
    monkeypatch.setattr(stall, "SAY_AFTER_S", 0.0)

    host = hosted(Repeated(3), bounded=False)

    assert len(host.warnings) == 1
    assert "discovery stalled since" in host.warnings[0]
    assert "the store is away" in host.warnings[0]
    assert host.stalled == []


def test_a_source_that_was_reached_may_be_away_for_a_while_in_a_bounded_run(monkeypatch):
    """A run that is to end fails once discovery has failed for its time in a row, and not before."""
    assert hosted(Repeated(3), bounded=True).warnings == []

    monkeypatch.setattr(discovery, "BACK_WITHIN_S", 0.0)
    with pytest.raises(RetriableError, match="discover, orders: the store is away"):
        hosted(Repeated(3), bounded=True)
