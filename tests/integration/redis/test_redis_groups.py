"""Streams by a consumer group: acknowledged after the commit, never before, and taken over from who died."""

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.errors import DataError, SinkError
from headrace.testing.engines import Engine
from headrace.testing.faulty_redis import FaultyRedis
from headrace.testing.memory import MemoryWriter
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name

GROUP = "readers"


@pytest.fixture
def grouped(harness):
    """The harness, reading by a group."""
    harness.props = {**harness.props, "redis.mode": "group", "redis.group": GROUP}
    return harness


def pending(client, stream):
    return client.xpending(stream, GROUP)["pending"]


def values_of(first, last):
    return [str(number).encode() for number in range(first, last)]


class DeadWriter(MemoryWriter):
    """Dies at its commit, which does not happen."""

    def commit(self, _offsets, _counted):
        raise SinkError("dead")


def test_what_is_committed_is_acknowledged(grouped, stream, add, client):
    """Everything is delivered, the group has nothing pending, and the next run reads only what is new."""
    add(stream, *range(2500))
    grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 2500), 0)
    add(stream, 2500)
    grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 2501), 0)


def test_nothing_is_acknowledged_before_its_commit(grouped, stream, add, client):
    """A run whose commit does not happen leaves everything pending, and the next one delivers it."""
    add(stream, *range(10))
    grouped.writer = DeadWriter
    with pytest.raises(SinkError):
        grouped.run()
    assert (grouped.values(), pending(client, stream)) == ([], 10)
    grouped.writer = MemoryWriter
    grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 10), 0)


def test_what_somebody_else_left_behind_is_taken_over(grouped, stream, add, client):
    """Entries that were delivered to a consumer that is gone are claimed at the start, before what is new."""
    add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, "gone", {stream: ">"}, count=5)
    grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 10), 0)


def test_what_is_not_idle_for_long_is_left_alone(grouped, stream, add, client):
    """With redis.claim.idle.ms what another consumer has in hand stays with it; our own is delivered again."""
    add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, "another", {stream: ">"}, count=5)
    client.xreadgroup(GROUP, "test-0", {stream: ">"}, count=2)
    grouped.run(redis__claim__idle__ms="3600000")
    assert grouped.values() == values_of(5, 10)
    assert [one["name"] for one in client.xpending(stream, GROUP)["consumers"]] == [b"another"]


def test_the_end_of_a_turn_repeats_nothing(grouped, stream, add, client):
    """What is committed at the end of a micro-batch is acknowledged with it: the next one does not repeat it."""
    add(stream, *range(100))
    changes = {"redis__read__count": "10", "transaction__boundary": "poll", "max__poll__records": "10"}
    with grouped.running(**changes) as run:
        assert run.host.wake.wait(30)
        while len(grouped.values()) < 100:
            run.turn(batch_s=0.1)
    assert grouped.values() == values_of(0, 100)
    assert pending(client, stream) == 0


def test_a_bad_record_stays_pending(grouped, stream, add, client):
    """What came before a bad record is committed and acknowledged; the bad one and what follows stay pending."""
    add(stream, '{"n":0}', '{"n":1}', "{bad", '{"n":3}')
    for _ in range(2):
        with pytest.raises(DataError):
            grouped.run(input__format="jsonl", value__converter="json")
        assert grouped.values() == [b'{"n":0}', b'{"n":1}']
        assert pending(client, stream) == 2


@pytest.mark.parametrize(("start", "expected"), [("earliest", range(6)), ("latest", range(5, 6))])
def test_where_a_new_group_begins(grouped, stream, add, start, expected):
    """A group that is made begins where redis.start says; one that is there goes on where it stands."""
    add(stream, *range(5))
    grouped.run(redis__start=start)
    add(stream, 5)
    grouped.run(redis__start=start)
    assert grouped.values() == [str(number).encode() for number in expected]


def test_a_stream_that_goes_and_comes_again(grouped, stream, add, client):
    """A group that went with its stream is made again, and the new stream is read from its beginning."""
    add(stream, *range(3))
    with grouped.in_background() as run:
        until(lambda: len(grouped.values()) == 3)
        client.delete(stream)
        add(stream, 3, 4)
        until(lambda: len(grouped.values()) == 5)
        assert run.host.assigned
    assert grouped.values() == values_of(0, 5)


def until(happened):
    import threading

    waiting = threading.Event()
    for _ in range(3000):
        if happened():
            return
        waiting.wait(0.02)
    raise AssertionError("it has not happened")


def test_a_plan_leaves_the_group_alone(grouped, stream, add, client):
    """A plan shows what comes next for the group, and neither makes one nor takes anything from it."""
    from headrace.framework.driver.enumeration import EnumeratorHost
    from headrace.framework.worker.execute import make_source

    add(stream, *range(5))
    source, _ = make_source({"name": "n", "bootstrap.servers": "h:1", "topic": "t", **grouped.props})

    def planned():
        host = EnumeratorHost("n", 1, grouped.kafka.offsets, bounded=True, planning=True)
        host.start(source, None)
        try:
            assert host.wake.wait(30)
            host.work_off()
            return host.plan(0)
        finally:
            host.close()

    [split] = planned()
    assert (split.peek, str(split.start), client.xinfo_groups(stream)) == (True, "0-0", [])
    client.xgroup_create(stream, GROUP, id="0")
    [(_, delivered)] = client.xreadgroup(GROUP, "another", {stream: ">"}, count=3)
    [split] = planned()
    assert str(split.start).encode() == delivered[-1][0]


def test_a_run_says_what_it_delivers(redis_port, kafka_bootstrap_servers):
    """On a real broker: everything is delivered, and the summary says at least once, and why."""
    with RedisHarness(redis_port) as harness:
        trial = Trial(
            harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=fresh_name("group")
        )
        trial.add("one", 50)
        trial.add("two", 50)
        summary = trial.run(redis__mode="group", redis__group=GROUP, tasks__max="2")
        again = trial.run(redis__mode="group", redis__group=GROUP, tasks__max="2")
        left = [harness.client.xpending(f"{trial.name}:{piece}", GROUP)["pending"] for piece in ("one", "two")]
        harness.close()
    assert sorted(trial.values()) == sorted(trial.everything())
    assert (summary.delivery, again.records, left) == ("at_least_once", 0, [0, 0])
    assert any("at least once" in warning for warning in summary.warnings)


@attrs.define
class AckWatch(FaultyRedis):
    """Notes, before an acknowledgement reaches the server, what will be acknowledged then and what is committed."""

    trial: Trial | None = None
    seen: list = attrs.field(factory=list)

    @override
    def fault_for(self, request):
        if b"XACK" in request:
            # An array of strings: the command, the stream, the group, and the entries.
            entries = int(request[1 : request.index(b"\r\n")]) - 3
            self.seen.append((self.acknowledged() + entries, len(self.trial.values())))
        return super().fault_for(request)

    def acknowledged(self):
        (group,) = self.trial.harness.client.xinfo_groups(f"{self.trial.name}:one")
        return group["entries-read"] - group["pending"]


@pytest.fixture(params=["local", "spark"])
def engine(request):
    if request.param == "local":
        return Engine("local")
    return Engine("spark", spark=request.getfixturevalue("spark_on_threads"))


@pytest.mark.xdist_group("kafka")
def test_xinfo_shows_no_entry_acknowledged_before_its_commit(redis_port, kafka_bootstrap_servers, engine):
    """At every acknowledgement of a run on a real broker all that XINFO then shows as done is on the topic."""
    harness = RedisHarness(redis_port)
    watch = harness.faulty = AckWatch(redis_port)
    with harness:
        trial = watch.trial = Trial(
            harness=harness, engine=engine, bootstrap_servers=kafka_bootstrap_servers, name=fresh_name("acknowledged")
        )
        trial.add("one", 100)
        trial.run(
            redis__mode="group",
            redis__group=GROUP,
            redis__read__count="5",
            transaction__boundary__max__records="20",
        )
        done = watch.acknowledged()
        harness.close()
    assert (done, trial.values()) == (100, trial.everything())
    assert len(watch.seen) > 1
    assert [moment for moment in watch.seen if moment[0] > moment[1]] == []
