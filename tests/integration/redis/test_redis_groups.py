"""Streams by a consumer group: acknowledged after the commit, never before, and taken over from who died."""

from collections.abc import Callable

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.dead_letter import DeadLetter, known_headers
from headrace.framework.errors import DataError, ObjectVanishedError, SinkError, SourceError
from headrace.framework.worker.execute import make_source
from headrace.testing.engines import Engine
from headrace.testing.faulty_redis import FaultyRedis
from headrace.testing.memory import MemoryWriter
from headrace.testing.redis_harness import RedisHarness
from headrace.testing.trial import Trial, fresh_name

GROUP = "readers"
SOON_S = 0.3


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


@pytest.mark.usefixtures("every_server")
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


NO_TEXT = b"\xff"


@pytest.mark.parametrize("read_by", ["us", "gone"])
def test_what_came_before_a_value_that_cannot_be_converted(grouped, stream, add, client, read_by):
    """What a batch has before a value that cannot be converted is acknowledged, and does not come again."""
    add(stream, "0", "1", NO_TEXT, "3")
    if read_by == "gone":
        client.xgroup_create(stream, GROUP, id="0")
        client.xreadgroup(GROUP, read_by, {stream: ">"}, count=10)
    for _ in range(2):
        with pytest.raises(DataError, match="record 3"):
            grouped.run(input__format="bytes")
        assert (grouped.values(), pending(client, stream)) == (values_of(0, 2), 2)


def test_what_came_before_a_bad_record_of_the_same_entry(grouped, stream, add, client):
    """An entry of which a part has gone out stays pending, and the next run goes on behind that part."""
    add(stream, "0", "1\n2\n{bad\n4", "5")
    for _ in range(2):
        with pytest.raises(DataError, match="record 4"):
            grouped.run(input__format="jsonl", value__converter="json")
        assert (grouped.values(), pending(client, stream)) == (values_of(0, 3), 2)
    grouped.run(input__format="jsonl", value__converter="json", errors__tolerance="all")
    assert (grouped.values(), pending(client, stream)) == ([*values_of(0, 3), b"5"], 0)


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        (["0", NO_TEXT, "2"], {"input__format": "bytes"}),
        (["0", "{bad", "2"], {"input__format": "jsonl", "value__converter": "json"}),
    ],
)
def test_the_letter_of_what_was_delivered_again_names_its_entry(  # noqa: PLR0917 - fixtures
    grouped, stream, add, client, values, changes
):
    """A bad record that comes again, from before where the group stands, can be read again by its dead letter."""
    add(stream, *values)
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, "gone", {stream: ">"})
    grouped.run(errors__tolerance="all", errors__deadletterqueue__topic__name="dead", **changes)
    [headers] = [known_headers(record.headers) for record in grouped.kafka.records if record.topic == "dead"]
    letter = DeadLetter.from_headers(headers)
    changed = {key.replace("__", "."): value for key, value in changes.items()}
    source, _ = make_source({"name": "n", "bootstrap.servers": "h:1", "topic": "t", **grouped.props, **changed})
    replays = source.replays()
    client.xdel(stream, letter.source_offset["last"])
    with pytest.raises(ObjectVanishedError, match=letter.source_offset["last"]):
        list(replays.read(letter))
    replays.close()
    assert [fields[b"v"] for _, fields in client.xrange(stream)] == [b"0", b"2"]
    assert (pending(client, stream), len(grouped.values())) == (0, 3)


@pytest.mark.parametrize(("start", "expected"), [("earliest", range(6)), ("latest", range(5, 6))])
def test_where_a_new_group_begins(grouped, stream, add, start, expected):
    """A group that is made begins where redis.start says; one that is there goes on where it stands."""
    add(stream, *range(5))
    grouped.run(redis__start=start)
    add(stream, 5)
    grouped.run(redis__start=start)
    assert grouped.values() == [str(number).encode() for number in expected]


def test_a_stream_that_goes_and_comes_again(grouped, stream, add, client):
    """A group that went with its stream is made again, and the new stream is read from its beginning; that is said."""
    add(stream, *range(3))
    with grouped.in_background(data__loss="continue") as run:
        until(lambda: len(grouped.values()) == 3)
        client.delete(stream)
        add(stream, 3, 4)
        until(lambda: len(grouped.values()) == 5)
        assert run.host.assigned
    assert grouped.values() == values_of(0, 5)
    assert len([word for word in grouped.warnings if f"the group {GROUP}" in word]) == 1


def begin_anew(client, stream):
    """The stream goes, and comes again; nobody has made its group yet."""
    client.delete(stream)
    client.xadd(stream, {"v": 10})


def set_group_aside(client, stream):
    client.xgroup_destroy(stream, GROUP)
    client.xtrim(stream, maxlen=0, approximate=False)
    client.xadd(stream, {"v": 10})


@pytest.mark.usefixtures("every_server")
@pytest.mark.parametrize("happens", [begin_anew, set_group_aside])
def test_a_group_that_had_to_be_made_anew(grouped, stream, add, client, happens):
    """A group that was there and is made anew is a loss of a size that nobody knows, until somebody says to go on."""
    add(stream, *range(10))
    grouped.run()
    happens(client, stream)
    for _ in range(2):
        with pytest.raises(SourceError, match=f"{stream}, entry .*: the group {GROUP} .*was made anew.* not known"):
            grouped.run()
    grouped.run(data__loss="continue")
    add(stream, 11)
    grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 12), 0)


def trim(client, stream, _ids):
    client.xtrim(stream, maxlen=4, approximate=False)
    return range(6, 10)


def delete(client, stream, ids):
    client.xdel(stream, ids[2], ids[5], ids[9])
    return (0, 1, 3, 4, 6, 7, 8)


@pytest.fixture(params=["gone", "test-0"])
def left_pending(request, stream, add, client):
    """Ten entries that were delivered to a consumer, and not acknowledged; with what a run takes them over."""
    ids = add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, request.param, {stream: ">"})
    return ids, {"redis__claim__idle__ms": "0" if request.param == "gone" else "3600000", "redis__read__count": "4"}


@pytest.mark.usefixtures("every_server")
@pytest.mark.parametrize("happens", [trim, delete])
def test_what_goes_while_it_is_pending_fails_the_run(grouped, stream, client, left_pending, happens):
    """Entries that go while they are pending end every run with their number, and nothing is delivered then."""
    ids, changes = left_pending
    left = happens(client, stream, ids)
    for _ in range(2):
        with pytest.raises(SourceError, match=f"{stream}, entry .*: {10 - len(left)} entries that the group {GROUP}"):
            grouped.run(**changes)
    assert (grouped.values(), pending(client, stream)) == ([], 10)


@pytest.mark.usefixtures("every_server")
@pytest.mark.parametrize("happens", [trim, delete])
def test_what_goes_while_it_is_pending_is_counted(grouped, stream, client, left_pending, happens):
    """With data.loss=continue entries that go while they are pending are counted once, and the others are delivered."""
    ids, changes = left_pending
    left = happens(client, stream, ids)
    for _ in range(2):
        grouped.run(data__loss="continue", **changes)
        assert (grouped.values(), pending(client, stream)) == ([str(number).encode() for number in left], 0)
    assert [word.split(": ")[1].split(" entries")[0] for word in grouped.warnings] == [str(10 - len(left))]


def test_what_others_have_in_hand_is_no_loss(grouped, stream, add, client):
    """An entry that goes while a consumer has it that is not idle for long is none of ours to miss."""
    ids = add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, "another", {stream: ">"}, count=5)
    client.xdel(stream, ids[2])
    grouped.run(redis__claim__idle__ms="3600000")
    assert (grouped.values(), grouped.warnings) == (values_of(5, 10), [])


@pytest.mark.parametrize("answers", ["dropped", "empty"])
def test_what_goes_while_it_is_taken_over(  # noqa: PLR0917 - fixtures
    grouped, stream, add, client, monkeypatch, answers
):
    """What goes between the look and the taking over is counted too, whether the server drops it or leaves it empty."""
    import redis

    ids = add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id="0")
    client.xreadgroup(GROUP, "gone", {stream: ">"})
    take_over = redis.Redis.xautoclaim

    def deleted_just_before(self, *args, **options):
        client.xdel(stream, ids[2])
        if answers == "dropped":
            return take_over(self, *args, **options)
        found = [
            (None, None) if entry_id == ids[2].encode() else (entry_id, {b"v": str(number).encode()})
            for number, entry_id in enumerate(map(str.encode, ids))
        ]
        return [b"0-0", found]

    monkeypatch.setattr(redis.Redis, "xautoclaim", deleted_just_before)
    grouped.run(data__loss="continue")
    assert grouped.values() == [*values_of(0, 2), *values_of(3, 10)]
    assert len([word for word in grouped.warnings if f"{ids[2]}: 1 entries that the group" in word]) == 1
    assert pending(client, stream) == 0


@pytest.mark.parametrize("kept", [4, 0])
def test_what_was_trimmed_before_it_was_delivered_fails_the_run(grouped, stream, add, client, kept):
    """Entries that went before the group was given them end the run with their number; nothing is delivered then."""
    add(stream, *range(10))
    grouped.run()
    add(stream, *range(10, 20))
    client.xtrim(stream, maxlen=kept, approximate=False)
    for _ in range(2):
        with pytest.raises(SourceError, match=f"{stream}, entry .*: {10 - kept} entries behind it were trimmed"):
            grouped.run()
    assert (grouped.values(), pending(client, stream)) == (values_of(0, 10), 0)


@pytest.mark.usefixtures("every_server")
def test_what_was_trimmed_before_it_was_delivered_is_counted(grouped, stream, add, client):
    """With data.loss=continue each loss is counted once, also where the server's own count stays behind by it."""
    add(stream, *range(10))
    grouped.run()
    for first, kept in ((10, 4), (20, 7)):
        add(stream, *range(first, first + 10))
        client.xtrim(stream, maxlen=kept, approximate=False)
        grouped.run(data__loss="continue", redis__read__count="3")
    add(stream, *range(30, 40))
    client.xtrim(stream, maxlen=10, approximate=False)
    grouped.run()
    assert grouped.values() == [*values_of(0, 10), *values_of(16, 20), *values_of(23, 40)]
    assert [word.split(": ")[1].split(" entries")[0] for word in grouped.warnings] == ["6", "3"]


@pytest.mark.usefixtures("every_server")
def test_what_was_trimmed_before_a_new_group_was_given_anything(grouped, stream, add, client, redis_port):
    """What goes between the making of a group and its first delivery is counted; what went before is not missed."""
    add(stream, *range(20))
    client.xtrim(stream, maxlen=15, approximate=False)

    def trim():
        client.xtrim(stream, maxlen=3, approximate=False)

    with Meanwhile(redis_port, act=trim) as faulty:
        grouped.run(data__loss="continue", redis__url=faulty.url)
    assert grouped.values() == values_of(17, 20)
    assert len([word for word in grouped.warnings if "12 entries" in word]) == 1


@pytest.mark.parametrize("policy", ["fail", "continue"])
def test_a_stream_that_goes_in_a_run_that_ends(  # noqa: PLR0917 - fixtures
    grouped, stream, add, client, redis_port, policy
):
    """A stream that is deleted before a bounded run has read what there was is a loss, by its number."""
    add(stream, *range(20))
    with Meanwhile(redis_port, act=lambda: client.delete(stream)) as faulty:
        if policy == "fail":
            with pytest.raises(SourceError, match=f"{stream}.* was deleted, and with it 20 entries"):
                grouped.run(redis__url=faulty.url)
        else:
            grouped.run(redis__url=faulty.url, data__loss="continue")
            assert any("20 entries" in word for word in grouped.warnings)
    assert grouped.values() == []


def test_a_stream_that_goes_before_the_group_was_given_it(grouped, stream, add, client, monkeypatch):
    """In a continuous run a stream that is deleted before the group was given it is named, and fails the run."""
    from headrace.sources.redis import enumerator

    monkeypatch.setattr(enumerator, "COMMITTED_WITHIN_S", 0.0)
    add(stream, *range(3))
    with grouped.running() as run:
        assert run.host.wake.wait(30)
        run.host.work_off()
        client.delete(stream)
        with pytest.raises(SourceError, match=f"{stream}: the stream was deleted before it was read"):
            work_off_for_ever(run.host)


def work_off_for_ever(host):
    while True:
        host.wake.wait(1)
        host.work_off()


def test_a_stream_that_goes_when_the_group_was_given_all_of_it(grouped, stream, add, client, caplog):
    """A stream that is deleted once the group was given all of it, by whomever, is no loss."""
    caplog.set_level("INFO")
    add(stream, *range(3))
    client.xgroup_create(stream, GROUP, id="$")
    with grouped.running() as run:
        run.until(lambda: grouped.offset(stream=stream), batch_s=SOON_S)
        client.delete(stream)
        run.until(lambda: "was deleted; what was known of it had been read" in caplog.text, batch_s=SOON_S)
    assert (grouped.values(), grouped.warnings) == ([], [])


@pytest.mark.usefixtures("every_server")
def test_where_the_server_cannot_say(grouped, stream, add, client):
    """Where a group was made in the middle of a stream the server does not know what lies before it: that is said."""
    ids = add(stream, *range(10))
    client.xgroup_create(stream, GROUP, id=ids[4])
    grouped.run(redis__read__count="2")
    assert grouped.values() == values_of(5, 10)
    assert ["does not say" in word for word in grouped.warnings] == [True]


@pytest.mark.usefixtures("every_server")
def test_deleting_what_was_acknowledged_is_no_loss(grouped, stream, add, client):
    """Entries that are deleted and trimmed behind the group are nobody's loss."""
    for first in range(0, 50, 10):
        ids = add(stream, *range(first, first + 10))
        grouped.run()
        client.xdel(stream, *ids[2:])
    add(stream, *range(50, 60))
    client.xtrim(stream, maxlen=10, approximate=False)
    grouped.run()
    assert (grouped.values(), grouped.warnings) == (values_of(0, 60), [])


def test_from_our_own_offsets_to_a_group(grouped, stream, add, client):
    """A connector that turns from its own offsets to a group begins where the group does, and misses nothing."""
    add(stream, *range(5))
    grouped.props = {key: value for key, value in grouped.props.items() if key not in {"redis.mode", "redis.group"}}
    grouped.run()
    client.xgroup_create(stream, GROUP, id="0")
    grouped.run(redis__mode="group", redis__group=GROUP)
    assert (grouped.values(), grouped.warnings) == ([*values_of(0, 5), *values_of(0, 5)], [])


@attrs.define
class Meanwhile(FaultyRedis):
    """Does something before the first thing that is asked of a group once it is made."""

    act: Callable[[], object] | None = None
    has_group: bool = False

    @override
    def fault_for(self, request):
        if b"CREATE" in request:
            self.has_group = True
        elif self.has_group and b"XINFO" in request and self.act is not None:
            act, self.act = self.act, None
            act()
        return super().fault_for(request)


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


def test_a_run_of_so_many_records_acknowledges_just_those(redis_port, kafka_bootstrap_servers):
    """Where a rule cuts what was delivered at once, the rest stays pending, and the next run repeats nothing."""
    with RedisHarness(redis_port) as harness:
        trial = Trial(
            harness=harness, engine=Engine("local"), bootstrap_servers=kafka_bootstrap_servers, name=fresh_name("cut")
        )
        trial.add("one", 10)
        changes = {"redis__mode": "group", "redis__group": GROUP}
        with trial.running(stop__rule="count:4", **changes) as running:
            first = running.ended()
        left = pending(harness.client, f"{trial.name}:one")
        again = trial.run(**changes)
        harness.close()
    assert (first.records, left, again.records) == (4, 6, 6)
    assert trial.values() == trial.everything()


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
