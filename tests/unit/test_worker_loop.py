import threading
import time
from typing import ClassVar

import attrs
import pytest

from headrace.framework.errors import DataError, RetriableError, SinkError, TaskError
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.framework.worker.plan import Ended
from headrace.framework.worker.signals import TaskSignals
from headrace.testing import TaskHarness
from headrace.testing.memory import MemoryWriter
from headrace.testing.scripted import Block, Crash, Fail, Nothing, SimulatedCrash, Stumble, scripted_task

PARTITION = {"script": "script"}


def record(value, position, *, partition=None, topic="scripted", **offset):
    return SourceRecord(
        source_partition=partition or PARTITION,
        source_offset={"position": position, **offset},
        topic=topic,
        value=value,
    )


def batch(values, position, *, offset_at=None, partition=None, **offset):
    return RecordBatch(
        source_partition=partition or PARTITION,
        source_offset={"position": position, **offset},
        topic="scripted",
        values=values,
        offset_at=offset_at,
    )


class TestTheEnd:
    def test_sends_everything_and_stores_where_to_go_on(self):
        """A run to exhaustion commits every record, and the offset after the last one."""
        harness = TaskHarness(scripted_task(b"a", b"b", b"c"))

        report = harness.run()

        assert harness.values() == [b"a", b"b", b"c"]
        assert harness.offset(PARTITION) == {"position": 3}
        assert (report.ended, report.records, report.bytes) == (Ended.EXHAUSTED, 3, 3)

    def test_a_second_run_reads_only_what_is_new(self):
        """What is committed is not read again; what was added is."""
        harness = TaskHarness(scripted_task(b"a", b"b"))
        harness.run()
        harness.task.script = (b"a", b"b", b"c")

        harness.run()

        assert harness.values() == [b"a", b"b", b"c"]

    def test_none_is_not_the_end(self):
        """None means nothing right now: the framework waits, asks again, and gets the rest."""
        harness = TaskHarness(scripted_task(b"a", Nothing(), Nothing(), b"b"))

        harness.run()

        assert harness.values() == [b"a", b"b"]

    def test_resources_are_closed_once_after_success(self):
        """close_resources is called exactly once at the end."""
        harness = TaskHarness(scripted_task(b"a"))

        harness.run()

        assert harness.task.closed == [0]

    def test_the_clock_ends_a_micro_batch(self):
        """A task whose time is over commits what it has and reports that it was the clock."""
        endless = Block()
        harness = TaskHarness(scripted_task(b"a", endless), run_s=0.2)

        report = harness.run()

        assert report.ended is Ended.TIME
        assert harness.values() == [b"a"]


class TestCrashes:
    def test_after_a_crash_nothing_is_lost_and_nothing_doubled(self):
        """What was not committed is read again after a crash, what was committed is not."""
        harness = TaskHarness(
            scripted_task(b"a", b"b", Crash(), b"c"), {"transaction.boundary": "poll", "max.poll.records": "1"}
        )

        report = harness.attempt()
        assert isinstance(report.error, TaskError)
        assert isinstance(report.error.__cause__, SimulatedCrash)
        assert harness.values() == [b"a", b"b"]

        harness.run()

        assert harness.values() == [b"a", b"b", b"c"]

    def test_an_open_transaction_dies_with_the_process(self):
        """Records of an open transaction are invisible after a crash and come with the next run, once."""
        harness = TaskHarness(scripted_task(b"a", b"b", Crash(), b"c"))

        harness.attempt()
        assert harness.values() == []

        harness.run()

        assert harness.values() == [b"a", b"b", b"c"]

    def test_the_cause_of_death_is_shown(self):
        """Whatever a task raises is the cause of the error that the run reports, and stands in its message."""
        harness = TaskHarness(scripted_task(b"a", Fail(ZeroDivisionError("the disk is round"))))

        with pytest.raises(TaskError, match=r"test, task 0: .*ZeroDivisionError: the disk is round") as caught:
            harness.run()

        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def test_resources_are_closed_once_after_a_failure(self):
        """close_resources is called exactly once also when the iterator failed."""
        harness = TaskHarness(scripted_task(Fail(ValueError("no"))))

        harness.attempt()

        assert harness.task.closed == [0]

    def test_a_failed_commit_leaves_the_offsets_as_they_were(self):
        """A commit that did not happen makes nothing visible, and the next run reads again."""
        harness = TaskHarness(scripted_task(b"a", b"b"))

        report = harness.attempt(writer=MemoryWriter(harness.kafka, fail_commits=1))
        assert isinstance(report.error, SinkError)
        assert harness.values() == []
        assert harness.offset(PARTITION) is None

        harness.run()
        assert harness.values() == [b"a", b"b"]


class TestRetries:
    def test_a_sink_that_may_do_better_with_another_attempt_ends_this_one(self):
        """A retriable failure of a commit ends the attempt: nobody here knows what is at the sink."""
        harness = TaskHarness(scripted_task(b"a", b"b"), {"transaction.boundary": "poll", "max.poll.records": "1"})

        report = harness.attempt(writer=MemoryWriter(harness.kafka, fail_commits=1, failure=RetriableError))

        assert isinstance(report.error, RetriableError)
        assert report.retries == 0
        assert harness.values() == []

        harness.run()
        assert harness.values() == [b"a", b"b"]

    def test_a_retriable_error_loses_no_record(self):
        """After a RetriableError the iterator is made anew on the committed offsets and everything arrives once."""
        harness = TaskHarness(scripted_task(b"a", Stumble(), b"b", Stumble(), b"c"))

        report = harness.run()

        assert harness.values() == [b"a", b"b", b"c"]
        assert report.retries == 2

    def test_with_object_boundary_a_retried_object_is_not_cut(self):
        """With the object boundary what was read of an unfinished object is taken back before the next try."""
        harness = TaskHarness(
            scripted_task(record(b"a", 1), Stumble(), record(b"b", 3, complete=True)),
            {"transaction.boundary": "object"},
        )

        harness.run()

        assert harness.values() == [b"a", b"b"]
        assert {kept.transaction for kept in harness.records()} == {1}

    def test_a_get_iterator_that_stumbles_is_called_again(self):
        """A RetriableError from get_iterator itself is one like any other."""
        calls, task = [], scripted_task(b"a")
        lists = task.get_iterator

        def stumbles(self, backoff):
            calls.append(1)
            if len(calls) < 3:
                raise RetriableError("the listing stumbled")
            return lists(self, backoff)

        task.get_iterator = stumbles
        harness = TaskHarness(task)

        report = harness.run()

        assert harness.values() == [b"a"]
        assert (len(calls), report.retries) == (3, 2)


class TestBoundaries:
    def test_poll_commits_after_as_many_records_as_a_poll_has(self):
        """With the poll boundary a transaction holds max.poll.records."""
        harness = TaskHarness(
            scripted_task(*[b"%d" % n for n in range(5)]), {"transaction.boundary": "poll", "max.poll.records": "2"}
        )

        report = harness.run()

        assert [kept.transaction for kept in harness.records()] == [1, 1, 2, 2, 3]
        assert report.transactions == 3

    def test_interval_commits_while_the_source_blocks(self):
        """The clock is not the iterator's: a source that blocks holds no transaction open."""
        block = Block()
        harness = TaskHarness(scripted_task(b"a", block, b"b"), {"transaction.boundary.interval.ms": "20"})
        running = threading.Thread(target=harness.run)
        running.start()
        assert block.reached.wait(10)

        deadline = time.monotonic() + 10
        while harness.values() != [b"a"] and time.monotonic() < deadline:
            time.sleep(0.01)
        committed_while_blocked = harness.values()
        block.release.set()
        running.join()

        assert committed_while_blocked == [b"a"]
        assert harness.values() == [b"a", b"b"]

    @pytest.mark.parametrize("boundary", ["interval", "poll"])
    def test_the_clock_sees_a_transaction_that_begins_late(self, boundary):
        """A transaction that begins after a long silence is ended by its clock like any other, not by the batch."""
        silence, block = Block(), Block()
        harness = TaskHarness(
            scripted_task(silence, b"a", block),
            {"transaction.boundary": boundary, "transaction.boundary.interval.ms": "20"},
        )
        running = threading.Thread(target=harness.run)
        running.start()
        assert silence.reached.wait(10)
        time.sleep(0.2)  # long enough for the clock to have looked and seen nothing
        silence.release.set()
        assert block.reached.wait(10)

        deadline = time.monotonic() + 10
        while harness.values() != [b"a"] and time.monotonic() < deadline:
            time.sleep(0.01)
        committed_while_blocked = harness.values()
        block.release.set()
        running.join()

        assert committed_while_blocked == [b"a"]

    def test_a_batch_ends_between_objects_that_say_no_end(self):
        """With the object boundary a micro-batch whose time is over ends where one object follows another."""
        objects = [record(b"%d" % number, 1, partition={"object": number}) for number in range(20_000)]
        harness = TaskHarness(scripted_task(*objects), {"transaction.boundary": "object"}, run_s=0.05)

        report = harness.run()

        assert report.ended is Ended.TIME
        assert harness.values() == [b"%d" % number for number in range(len(harness.values()))]

    def test_interval_commits_after_as_many_records_as_it_may_have(self):
        """transaction.boundary.max.records ends a transaction before its time."""
        harness = TaskHarness(
            scripted_task(b"a", b"b", b"c"),
            {"transaction.boundary.interval.ms": "20000", "transaction.boundary.max.records": "2"},
        )

        harness.run()

        assert [kept.transaction for kept in harness.records()] == [1, 1, 2]

    def test_an_object_becomes_visible_as_a_whole(self):
        """With the object boundary each object is one transaction, however many records it has."""
        one, two = {"object": "one"}, {"object": "two"}
        harness = TaskHarness(
            scripted_task(
                record(b"1", 1, partition=one),
                record(b"2", 2, partition=one),
                record(b"3", 1, partition=two),
                record(b"4", 2, partition=two),
            ),
            {"transaction.boundary": "object"},
        )

        harness.run()

        assert [kept.transaction for kept in harness.records()] == [1, 1, 2, 2]

    def test_a_bad_record_leaves_nothing_of_its_object_with_the_object_boundary(self):
        """With the object boundary a bad record makes its whole object invisible, and earlier objects stay."""
        one, two = {"object": "one"}, {"object": "two"}
        harness = TaskHarness(
            scripted_task(
                record(b"1", 1, partition=one, complete=True),
                record(b"2", 1, partition=two),
                Fail(DataError("bad")),
            ),
            {"transaction.boundary": "object"},
        )

        report = harness.attempt()

        assert isinstance(report.error, DataError)
        assert harness.values() == [b"1"]
        assert harness.offset(two) is None


class TestBadRecords:
    def test_what_came_before_a_bad_record_is_committed(self):
        """A bad record fails the task after everything before it has been committed with its offsets."""
        harness = TaskHarness(scripted_task(b"a", b"b", Fail(DataError("no JSON"))))

        report = harness.attempt()

        assert isinstance(report.error, DataError)
        assert harness.values() == [b"a", b"b"]
        assert harness.offset(PARTITION) == {"position": 2}

    def test_a_value_that_cannot_be_converted_stops_at_its_place(self):
        """A batch with a bad value is sent up to that value, and the offset is the one after the last good value."""
        values = [b"a", b"b", 3, b"d"]
        harness = TaskHarness(
            scripted_task(batch(values, 4, recordCount=4, offset_at=lambda n: {"position": n, "recordCount": n}))
        )

        report = harness.attempt()

        assert isinstance(report.error, DataError)
        assert "record 3" in str(report.error)
        assert harness.values() == [b"a", b"b"]
        assert harness.offset(PARTITION) == {"position": 2, "recordCount": 2}

    def test_a_batch_that_cannot_be_cut_stands_or_falls_as_one(self):
        """Of a batch without offset_at nothing goes out when one value is bad."""
        harness = TaskHarness(scripted_task(b"a", batch([b"b", 3], 3)))

        harness.attempt()

        assert harness.values() == [b"a"]
        assert harness.offset(PARTITION) == {"position": 1}


class TestCommitted:
    def test_a_task_is_told_of_what_was_committed(self):
        """committed() is called behind each commit."""
        told = []
        task = scripted_task(b"a", b"b", b"c")
        task.committed = lambda _: told.append(len(harness.values()))
        harness = TaskHarness(task, {"transaction.boundary": "poll", "max.poll.records": "2"})

        harness.run()

        assert told[:2] == [2, 3]

    def test_a_task_is_told_nothing_of_what_was_aborted(self):
        """A stop in the middle of an object takes it back, and nobody acknowledges it."""
        told, block = [], Block()
        task = scripted_task(record(b"a", 1), block, record(b"b", 3))
        task.committed = lambda _: told.append(len(harness.values()))
        harness = TaskHarness(task, {"transaction.boundary": "object"})
        signals = TaskSignals()
        running = threading.Thread(target=lambda: harness.run(signals))
        running.start()
        assert block.reached.wait(10)

        signals.ask_stop()
        running.join(30)

        assert (harness.values(), told) == ([], [])


class TestStopping:
    def test_a_stop_commits_what_was_taken(self):
        """An orderly stop sends and commits what came out of the iterator before it."""
        block = Block()
        harness = TaskHarness(scripted_task(b"a", b"b", block, b"c"), {"transaction.boundary.interval.ms": "20000"})
        signals, reports = TaskSignals(), []
        running = threading.Thread(target=lambda: reports.append(harness.run(signals)))
        running.start()
        assert block.reached.wait(10)

        signals.ask_stop()
        running.join(30)

        assert harness.values()[:2] == [b"a", b"b"]
        assert reports[0].ended in {Ended.STOPPED, Ended.EXHAUSTED}
        assert harness.offset(PARTITION)["position"] == len(harness.values()) + (len(harness.values()) > 2)

    def test_a_task_that_does_not_listen_is_left_behind(self):
        """A task that blocks in its own code for ever does not hold up the stop, and loses nothing that it gave."""
        block = Block(deaf=True)
        harness = TaskHarness(scripted_task(b"a", block), {"transaction.boundary.interval.ms": "20000"})
        signals = TaskSignals()
        running = threading.Thread(target=lambda: harness.run(signals))
        running.start()
        assert block.reached.wait(10)

        signals.ask_stop()
        running.join(30)
        ended = not running.is_alive()
        block.release.set()

        assert ended
        assert harness.values() == [b"a"]

    def test_a_stop_cuts_no_object_in_two(self):
        """With the object boundary a stop takes back what was sent of an unfinished object."""
        block = Block()
        harness = TaskHarness(
            scripted_task(record(b"a", 1), block, record(b"b", 3)), {"transaction.boundary": "object"}
        )
        signals = TaskSignals()
        running = threading.Thread(target=lambda: harness.run(signals))
        running.start()
        assert block.reached.wait(10)

        signals.ask_stop()
        running.join(30)

        assert harness.values() == []
        assert harness.offset(PARTITION) is None


class TestOffsetsSeenByTheTask:
    def test_a_retry_starts_from_what_is_committed(self):
        """Whenever get_iterator is called again, nothing of an aborted transaction counts as read."""
        harness = TaskHarness(
            scripted_task(record(b"a", 1), Fail(RetriableError("for ever"))),
            {"transaction.boundary": "object"},
            run_s=0.3,
        )

        harness.attempt()

        assert harness.values() == []
        assert harness.offset(PARTITION) is None


@attrs.define
class PatientWriter(MemoryWriter):
    """Its commits wait until the task is asked for what comes next."""

    asked: threading.Event = attrs.field(factory=threading.Event)

    def commit(self, offsets, counted):
        assert self.asked.wait(10)
        super().commit(offsets, counted)


class TestAFullTransaction:
    PROPS: ClassVar = {"transaction.boundary": "poll", "max.poll.records": "2"}

    def test_what_comes_next_is_read_while_it_is_committed(self):
        """A commit does not keep the task from reading on; what was read meanwhile is in the next transaction."""
        next_one = Block()
        next_one.release.set()
        harness = TaskHarness(scripted_task(b"a", b"b", next_one, b"c", b"d"), self.PROPS)

        report = harness.attempt(writer=PatientWriter(harness.kafka, asked=next_one.reached))

        assert report.error is None
        assert [(one.value, one.transaction) for one in harness.records()] == [
            (b"a", 1),
            (b"b", 1),
            (b"c", 2),
            (b"d", 2),
        ]

    def test_a_commit_that_fails_has_nothing_of_what_was_read_meanwhile(self):
        """Nothing of it is visible, nor an offset of it, and the attempt is over."""
        next_one = Block()
        next_one.release.set()
        harness = TaskHarness(scripted_task(b"a", b"b", next_one, b"c"), self.PROPS)

        report = harness.attempt(writer=PatientWriter(harness.kafka, asked=next_one.reached, fail_commits=1))

        assert isinstance(report.error, SinkError)
        assert (harness.values(), harness.offset(PARTITION)) == ([], None)

    def test_a_failure_behind_it_takes_nothing_of_it_back(self):
        """Whatever fails a task behind a full transaction, that one is committed."""
        harness = TaskHarness(scripted_task(b"a", b"b", Fail(ValueError("torn"))), self.PROPS)

        report = harness.attempt()

        assert isinstance(report.error, TaskError)
        assert harness.values() == [b"a", b"b"]

    def test_whatever_acknowledging_raises_ends_the_task(self):
        """An error of the task's own in `committed` is the report's, on whatever thread it comes."""

        def fail(_task):
            raise ValueError("cannot acknowledge")

        task = scripted_task(b"a", b"b", b"c")
        task.committed = fail
        harness = TaskHarness(task, self.PROPS)

        report = harness.attempt()

        assert isinstance(report.error, TaskError)
        assert "cannot acknowledge" in str(report.error)
