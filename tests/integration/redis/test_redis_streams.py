"""Streams by our own offsets: which are read, from where, and what becomes of them."""

import threading
from collections.abc import Callable
from contextlib import contextmanager

import attrs
import pytest

from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, SourceError
from headrace.framework.worker.execute import make_source
from headrace.sources.redis.splits import RedisSplit, RedisSplitSerializer
from headrace.testing.faulty_redis import FaultyRedis
from headrace.testing.split_harness import SplitHarness


def numbers(first, last):
    return [str(number).encode() for number in range(first, last)]


class TestNames:
    def test_a_stream_is_itself_and_its_partitions(self, harness, stream, add, client):
        """A name means the stream and its partitions, in the order of their numbers, and no other key."""
        add(stream, "itself")
        for number in (0, 1, 2, 10):
            add(f"{stream}-{number}", f"partition {number}")
        add(f"{stream}-x", "another stream")
        client.set(f"{stream}-3", "no stream")
        harness.run()
        assert harness.values() == [b"itself", *(f"partition {number}".encode() for number in (0, 1, 2, 10))]
        assert harness.offset(stream=f"{stream}-10")["recordCount"] == 1

    def test_patterns(self, harness, stream, add):
        """A pattern of Redis' means every stream that it takes."""
        for name in (f"{stream}:a", f"{stream}:b", f"{stream}:c-0", f"other:{stream}"):
            add(name, name)
        harness.run(redis__streams=f"{stream}:[a-b],{stream}:?-*")
        assert sorted(harness.values()) == [f"{stream}:{name}".encode() for name in ("a", "b", "c-0")]

    def test_partitions_that_come_later_are_found(self, harness, stream, add):
        """A partition that is added while the run goes on is read from its first entry."""
        add(f"{stream}-0", "0")
        with reading(harness):
            await_values(harness, [b"0"])
            add(f"{stream}-1", "1", "2")
            await_values(harness, [b"0", b"1", b"2"])

    def test_more_tasks_look_no_more_often(self, harness, stream, add, redis_port):
        """How often streams are looked for, and how many requests that takes, has nothing to do with the tasks."""
        for number in range(16):
            add(f"{stream}:{number}", number)

        def calls(tasks):
            with (
                Looks(redis_port) as looks,
                harness._running(
                    {"redis__url": looks.url, "redis__streams": f"{stream}:*", "tasks__max": str(tasks)}, bounded=True
                ) as run,
            ):
                run.until(lambda: run.is_over)
                return run.host.counted["redis_list_calls"], looks.seen

        (listings, requests), more = calls(1), calls(8)
        assert (listings, requests) == more
        assert (listings, requests > 0) == (1, True)
        assert len(harness.values()) == 16

    def test_topics_are_called_like_their_streams(self, harness, stream, add):
        """Without `topic` the records of a stream's partitions go to the topic of the stream's name."""
        add(f"{stream}-0", "0")
        harness.props = {key: value for key, value in harness.props.items() if key != "topic"}
        harness.topic = None
        harness.run()
        assert {(record.topic, record.key) for record in harness.kafka.records} == {(stream, f"{stream}-0".encode())}

    def test_a_key_that_is_no_stream_is_named(self, harness, stream, client):
        """A name that belongs to another type ends the run at its start, with the type."""
        client.lpush(stream, "x")
        with pytest.raises(SourceError, match=rf"discover, test, {stream}: the key is a list and no stream"):
            harness.run()

    def test_a_key_that_becomes_something_else_is_named(self, harness, stream, add, client):
        """A stream that gives way to another type while it is read ends the run with its name and what to check."""
        add(stream, 1)
        with harness.running() as run:
            run.until(lambda: harness.values() == [b"1"], batch_s=0.3)
            with client.pipeline(transaction=True) as pipeline:
                pipeline.delete(stream)
                pipeline.set(stream, "text")
                pipeline.execute()
            with pytest.raises(
                SourceError, match=rf"{stream}.*: .*(is no stream|no stream|is a string).*redis\.streams"
            ):
                run.until(lambda: run.is_over)

    def test_nothing_there_is_a_run_without_records(self, harness):
        """A stream that does not exist yet is no fault: a bounded run ends."""
        harness.run()
        assert harness.values() == []


@pytest.mark.usefixtures("every_server")
class TestStart:
    def test_an_id(self, harness, stream, add):
        """Reading begins behind the id that is given."""
        ids = add(stream, *range(5))
        harness.run(redis__start=ids[2])
        assert harness.values() == numbers(3, 5)

    def test_latest_skips_nothing_after_the_first_look(self, harness, stream, add):
        """What was there at the first run is passed over; what is added later, also between runs, is read."""
        add(stream, *range(5))
        harness.run(redis__start="latest")
        add(stream, 5)
        harness.run(redis__start="latest")
        assert harness.values() == [b"5"]

    def test_latest_is_stored_before_the_first_record(self, harness, stream, add):
        """An idle stream's resolved start is stored by the first continuous run: a restart skips nothing."""
        last = add(stream, *range(5))[-1]
        with reading(harness, redis__start="latest"):
            await_true(lambda: harness.offset(stream=stream))
        assert harness.offset(stream=stream) == {"id": last, "recordCount": 0, "entriesPassed": 5}
        add(stream, 5)
        harness.run(redis__start="latest")
        assert harness.values() == [b"5"]

    def test_a_partition_that_comes_later_is_no_old_one(self, harness, stream, add):
        """With `latest`, a stream that was not there at the first look is read from its first entry."""
        add(f"{stream}-0", "old")
        with reading(harness, redis__start="latest"):
            await_true(lambda: harness.offset(stream=f"{stream}-0"))
            add(f"{stream}-1", "new")
            await_values(harness, [b"new"])

    def test_the_state_remembers_what_was_resolved(self, harness, stream, add):
        """The enumerator's state holds the resolved starts, and the next enumerator goes by them."""
        from headrace.framework.driver.enumeration import EnumeratorHost
        from headrace.offsets.memory import MemoryOffsetStore

        last = add(stream, *range(3))[-1]
        props = {"name": "n", "bootstrap.servers": "h:1", **harness.props, "redis.start": "latest"}
        source, _ = make_source(props)

        def found(state):
            host = EnumeratorHost("n", 1, MemoryOffsetStore(), bounded=False)
            host.start(source, state)
            try:
                assert host.wake.wait(30)
                host.work_off()
                return host.assigned[0], host._enumerator.snapshot_state()
            finally:
                host.close()

        splits, state = found(None)
        assert (str(splits[stream].start), state) == (last, {stream: last})
        add(stream, 3)
        add(f"{stream}-1", "later")
        splits, _ = found(state)
        assert {name: str(split.start) for name, split in splits.items()} == {stream: last, f"{stream}-1": "0-0"}


class TestValues:
    def test_fields_as_a_map(self, harness, stream, client):
        """Without a field to take, a record is the map of the entry's fields, as JSON."""
        client.xadd(stream, {"b": "ü", "a": "1"})
        harness.props = {
            key: value
            for key, value in harness.props.items()
            if key not in {"redis.value.field", "input.format", "value.converter"}
        }
        harness.run()
        assert harness.values() == ['{"b":"ü","a":"1"}'.encode()]

    def test_bytes_of_a_field(self, harness, stream, client):
        """One field's bytes go out as they are, whatever they are."""
        client.xadd(stream, {"v": b"\x00\xff\n", "other": "x"})
        harness.run(input__format="bytes", value__converter="bytes")
        assert harness.values() == [b"\x00\xff\n"]

    def test_many_records_in_one_entry(self, harness, stream, add):
        """Lines of one entry are records of their own, and a bad one among them is the place where reading goes on."""
        add(stream, '{"n":1}\n\n{"n":2}\n', '{"n":3}', '{"n":4}\n{bad\n{"n":5}')
        changes = {"input__format": "jsonl", "value__converter": "json"}
        for _ in range(2):
            with pytest.raises(DataError, match=rf"transform, test, task 0, {stream}, record 5, entry \d+-\d+: "):
                harness.run(**changes)
        assert harness.values() == [b'{"n":%d}' % number for number in range(1, 5)]
        assert harness.offset(stream=stream)["within"] == 1

    @pytest.mark.parametrize("lost", ["the entry that was begun", "one behind it"])
    def test_what_was_read_of_an_entry_is_of_that_entry(self, harness, stream, add, client, lost):
        """Where entries go meanwhile, none of the one that was begun comes again, and none of another is left out."""
        begun, behind = add(stream, '{"n":1}\n{bad', '{"n":2}\n{"n":3}')
        add(stream, '{"n":4}\n{"n":5}')
        changes = {"input__format": "jsonl", "value__converter": "json", "data__loss": "continue"}
        with pytest.raises(DataError):
            harness.run(**changes)
        client.xdel(stream, begun if lost == "the entry that was begun" else behind)
        harness.run(errors__tolerance="all", **changes)
        wanted = range(1, 6) if lost == "the entry that was begun" else (1, 4, 5)
        assert harness.values() == [b'{"n":%d}' % number for number in wanted]

    def test_a_field_that_is_missing(self, harness, stream, add, client):
        """An entry without the field is a bad record, named with its place."""
        add(stream, "1")
        client.xadd(stream, {"other": "x"})
        with pytest.raises(DataError, match=f"{stream}, record 2, .*: the entry has no field v"):
            harness.run()
        assert harness.values() == [b"1"]

    def test_fields_that_are_no_text(self, harness, stream, client):
        """A map whose fields are not UTF-8 is a bad record that says what to do."""
        client.xadd(stream, {"a": b"\xff"})
        harness.props = {k: v for k, v in harness.props.items() if k not in {"redis.value.field", "input.format"}}
        with pytest.raises(DataError, match=r"record 1, .*redis\.value\.field"):
            harness.run(value__converter="json")


@pytest.mark.usefixtures("every_server")
class TestLoss:
    def fill(self, harness, stream, add):
        add(stream, *range(10))
        harness.run()
        add(stream, *range(10, 20))

    def test_trimming_behind_the_place_is_none(self, harness, stream, add, client):
        """What is trimmed after it was read is nobody's loss."""
        self.fill(harness, stream, add)
        client.xtrim(stream, maxlen=10, approximate=False)
        harness.run()
        assert harness.values() == numbers(0, 20)
        client.xtrim(stream, maxlen=0, approximate=False)
        add(stream, 20)
        harness.run()
        assert harness.values() == numbers(0, 21)

    @pytest.mark.parametrize("kept", [4, 0])
    def test_what_was_trimmed_unread_fails_the_run(self, harness, stream, add, client, kept):
        """Entries that were trimmed before they were read end the run with their number and the place."""
        self.fill(harness, stream, add)
        place = harness.offset(stream=stream)["id"]
        client.xtrim(stream, maxlen=kept, approximate=False)
        add(stream, 20)
        for _ in range(2):
            with pytest.raises(SourceError, match=rf"read, test, task 0, {stream}, entry {place}: {10 - kept} entries"):
                harness.run()
        assert harness.values() == numbers(0, 10)

    def test_what_was_trimmed_unread_is_counted(self, harness, stream, add, client):
        """With data.loss=continue the rest is read, and the summary says how many were lost, once."""
        self.fill(harness, stream, add)
        client.xtrim(stream, maxlen=4, approximate=False)
        harness.run(data__loss="continue")
        add(stream, 20)
        harness.run()
        assert harness.values() == [*numbers(0, 10), *numbers(16, 21)]
        assert len([word for word in harness.warnings if "6 entries" in word]) == 1

    def test_a_server_that_does_not_count(self, harness, stream, add, client, monkeypatch):
        """Where the server has no count of what was added, as before Redis 7, a warning says what cannot be missed."""
        from headrace.sources.redis.info import StreamInfo

        known = StreamInfo.from_answer
        monkeypatch.setattr(StreamInfo, "from_answer", lambda answer: attrs.evolve(known(answer), added=None))
        for name in (stream, f"{stream}-0"):
            add(name, *range(10))
            client.xtrim(name, maxlen=4, approximate=False)
        harness.run(redis__read__count="2")
        assert harness.values() == [*numbers(6, 10), *numbers(6, 10)]
        assert ["does not count" in word for word in harness.warnings] == [True]

    def test_what_was_deleted_unread(self, harness, stream, add, client):
        """Single entries that were deleted before they were read are a loss as well."""
        self.fill(harness, stream, add)
        victims = client.xrange(stream)[12:15]
        client.xdel(stream, *(entry_id for entry_id, _ in victims))
        for _ in range(2):
            with pytest.raises(SourceError, match="3 entries"):
                harness.run()
        harness.run(data__loss="continue")
        harness.run()
        assert harness.values() == [*numbers(0, 12), *numbers(15, 20)]

    def test_what_was_removed_before_the_first_run_is_none(self, harness, stream, add, client):
        """What had gone before a connector first looked is not missed, however it went."""
        ids = add(stream, *range(10))
        client.xtrim(stream, maxlen=8, approximate=False)
        client.xdel(stream, ids[5])
        harness.run(redis__read__count="2")
        add(stream, 10)
        harness.run()
        assert harness.values() == [*numbers(2, 5), *numbers(6, 11)]

    @pytest.mark.parametrize("entries", [3, 30])
    def test_a_stream_that_was_begun_anew(self, harness, stream, add, client, entries):
        """A stream that was deleted and begun anew, or whose server lost entries, is told from what was read."""
        self.fill(harness, stream, add)
        client.delete(stream)
        for number in range(entries):
            client.xadd(stream, {"v": f"new {number}"}, id=f"{number + 1}-0")
        with pytest.raises(SourceError, match="begun anew"):
            harness.run()
        harness.run(data__loss="continue")
        harness.run()
        assert harness.values() == [*numbers(0, 10), *(f"new {number}".encode() for number in range(entries))]

    @pytest.mark.parametrize("kept", [150, 120, 20])
    def test_a_stream_that_was_begun_anew_behind_the_place(self, harness, stream, add, client, kept):
        """A new stream whose ids go on behind the old one's is told by its counts, and read once."""
        add(stream, *range(100))
        harness.run()
        client.delete(stream)
        add(stream, *range(100, 250))
        client.xtrim(stream, maxlen=kept, approximate=False)
        for _ in range(2):
            with pytest.raises(SourceError, match=f"{stream}, entry .* (begun anew|trimmed)"):
                harness.run()
        harness.run(data__loss="continue")
        add(stream, 250)
        harness.run()
        assert harness.values() == [*numbers(0, 100), *numbers(250 - kept, 251)]

    def test_a_long_stream_that_was_begun_anew(self, harness, stream, add, client):
        """A new stream is read once also where it takes many reads, and goes on to grow."""
        add(stream, *range(10))
        harness.run()
        client.delete(stream)
        add(stream, *range(10, 100))
        harness.run(data__loss="continue", redis__read__count="7")
        add(stream, *range(100, 110))
        harness.run(redis__read__count="7")
        assert harness.values() == numbers(0, 110)
        assert len([word for word in harness.warnings if "begun anew" in word]) == 1

    @pytest.mark.parametrize("newer", [3, 5, 9])
    def test_a_server_that_has_lost_entries(self, harness, stream, client, newer):
        """Of a stream that is back at an older state and has grown since, what is behind the place is read, once."""
        add_at(client, stream, *range(1, 101))
        harness.run()
        client.delete(stream)
        add_at(client, stream, *range(1, 96), *range(201, 201 + newer))
        with pytest.raises(SourceError, match="its server has lost entries"):
            harness.run()
        harness.run(data__loss="continue")
        add_at(client, stream, 301)
        harness.run()
        assert harness.values() == [*numbers(1, 101), *numbers(201, 201 + newer), b"301"]

    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_no_loss_is_seen_where_there_is_none(self, harness, stream, add, client, start):
        """Trimming and deleting behind the place, and counts that an operator sets, are no other stream."""
        add(stream, *range(50))
        harness.run(redis__start=start)
        client.xdel(stream, *(entry_id for entry_id, _ in client.xrange(stream, count=20)))
        add(stream, *range(50, 60))
        client.xtrim(stream, maxlen=10, approximate=False)
        harness.run()
        client.execute_command("XSETID", stream, "9999999999999-0", "ENTRIESADDED", "60", "MAXDELETEDID", "0-1")
        client.xadd(stream, {"v": 60}, id="9999999999999-1")
        harness.run()
        assert harness.values() == numbers(50 if start == "latest" else 0, 61)

    def test_a_stream_that_is_deleted_in_a_run_that_ends(self, harness, stream, add, client, redis_port):
        """A stream that goes before a bounded run has read what there was is a loss, of so many entries."""
        add(stream, *range(20))
        said = rf"{stream}, entry \d+-\d+: the stream was deleted, .* 15 entries"
        by_fives = {"redis__read__count": "5", "transaction__boundary": "poll", "max__poll__records": "5"}
        with (
            meanwhile(redis_port, lambda: client.delete(stream), at=2) as changes,
            pytest.raises(SourceError, match=said),
        ):
            harness.run(**changes, **by_fives)
        assert harness.values() == numbers(0, 5)

    def test_a_stream_that_is_deleted_in_a_run_that_ends_is_counted(self, harness, stream, add, client, redis_port):
        """With data.loss=continue the run ends, and its summary says how many entries went with the stream."""
        add(stream, *range(20))
        with meanwhile(redis_port, lambda: client.delete(stream), at=1) as changes:
            harness.run(**changes, data__loss="continue")
        assert (harness.values(), len(harness.warnings)) == ([], 1)
        assert "20 entries before they were read" in harness.warnings[0]

    def test_a_stream_that_is_deleted_when_all_was_read(self, harness, stream, add, client, redis_port):
        """A stream that goes once a bounded run has read what there was is no loss."""
        add(stream, *range(20))
        with meanwhile(redis_port, lambda: client.delete(stream), at=2) as changes:
            harness.run(**changes)
        assert (harness.values(), harness.warnings) == (numbers(0, 20), [])

    @pytest.mark.parametrize("newer", [3, 30])
    def test_a_stream_that_is_begun_anew_before_a_run_reads(  # noqa: PLR0917 - fixtures
        self, harness, stream, add, client, redis_port, newer
    ):
        """One that is deleted and begun anew before a bounded run's first read is a loss; the new one comes next."""

        def begin_anew():
            client.delete(stream)
            add(stream, *range(20, 20 + newer))

        add(stream, *range(20))
        with meanwhile(redis_port, begin_anew, at=1) as changes:
            harness.run(**changes, data__loss="continue")
        assert any("begun anew" in word for word in harness.warnings)
        harness.run()
        assert harness.values() == numbers(20, 20 + newer)

    def test_a_stream_that_gives_way_to_another_type(self, harness, stream, add, client, redis_port):
        """A key that becomes another type in a bounded run ends it, whatever data.loss says."""

        def replace():
            client.delete(stream)
            client.set(stream, "text")

        add(stream, *range(20))
        said = f"{stream}.*: the key is no stream"
        with meanwhile(redis_port, replace, at=1) as changes, pytest.raises(SourceError, match=said):
            harness.run(**changes, data__loss="continue")

    def test_a_stream_that_is_deleted_while_it_is_read(self, harness, stream, add, client):
        """A stream that goes after all of it was committed is no loss, and one of its name that comes is found out."""
        add(stream, *range(3))
        with reading(harness, data__loss="continue"):
            await_values(harness, numbers(0, 3))
            client.delete(stream)
            client.xadd(stream, {"v": "new"}, id="5-0")
            await_values(harness, [*numbers(0, 3), b"new"])
        assert any("begun anew" in word for word in harness.warnings)

    def test_a_stream_that_is_deleted_unread(self, harness, stream, add, client, monkeypatch):
        """A stream that goes before what had been seen of it was read is named, and fails the run."""
        from headrace.sources.redis import enumerator

        monkeypatch.setattr(enumerator, "COMMITTED_WITHIN_S", 0.0)
        add(stream, *range(3))
        with harness.running() as run:
            assert run.host.wake.wait(30)
            run.host.work_off()
            client.delete(stream)
            with pytest.raises(SourceError, match=f"{stream}: the stream was deleted before it was read"):
                work_off_for_ever(run.host)


def add_at(client, stream, *numbers):
    """Adds entries of these values under ids of the same numbers."""
    for number in numbers:
        client.xadd(stream, {"v": number}, id=f"{number}-0")


@attrs.define
class Meanwhile(FaultyRedis):
    """Does something before one of the reads reaches the server."""

    act: Callable[[], object] | None = None
    at: int = 1

    @override
    def fault_for(self, request):
        if b"XREAD" in request and b"BLOCK" not in request:
            self.at -= 1
            if self.at == 0:
                self.act()
        return super().fault_for(request)


@attrs.define
class Looks(FaultyRedis):
    """Counts the requests that look for keys."""

    seen: int = 0

    @override
    def fault_for(self, request):
        self.seen += request.count(b"\r\nSCAN\r\n") + request.count(b"\r\nTYPE\r\n$6")
        return super().fault_for(request)


@contextmanager
def meanwhile(port, act, *, at):
    """What to change so that a run does something before one of its reads."""
    with Meanwhile(port, act=act, at=at) as faulty:
        yield {"redis__url": faulty.url}


def work_off_for_ever(host):
    while True:
        host.wake.wait(1)
        host.work_off()


class TestConfiguration:
    @pytest.mark.parametrize(
        ("props", "key"),
        [
            ({"redis.url": "http://x"}, "redis.url"),
            ({"redis.url": "redis://a:1,b:2"}, "redis.url"),
            ({"redis.url": "redis://a:x"}, "redis.url"),
            ({"redis.start": "yesterday"}, "redis.start"),
            ({"redis.mode": "group"}, "redis.group"),
            ({"redis.group": "g"}, "redis.group"),
            ({"redis.mode": "group", "redis.group": "g", "exactly.once.support": "required"}, "exactly.once.support"),
            ({"redis.mode": "group", "redis.group": "g", "transaction.boundary": "object"}, "transaction.boundary"),
            ({"redis.cluster": "true", "redis.sentinel.master": "m"}, "redis.sentinel.master"),
            ({"redis.tls.ca": "ca.pem"}, "redis.tls.ca"),
            ({"redis.streams": "a[z-a]"}, "redis.streams"),
            ({"redis.colour": "red"}, "redis.colour"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, harness, props, key):
        """What cannot work is a fault before anything is asked of a server, with the key to mend."""
        harness.props = {**harness.props, **props}
        with pytest.raises(ConfigError) as caught:
            harness.run()
        assert [fault.key for fault in caught.value.faults] == [key]

    def test_a_format_needs_a_field(self, harness):
        """A format without a field to read is refused: a map of fields has none."""
        harness.props = {key: value for key, value in harness.props.items() if key != "redis.value.field"}
        with pytest.raises(ConfigError, match=r"redis\.value\.field"):
            harness.run()

    def test_a_run_without_an_end_has_no_objects(self, harness, stream, add):
        """The boundary `object` is good for bounded runs; a continuous one says that streams have no end."""
        add(stream, *range(3))
        harness.run(transaction__boundary="object")
        assert harness.kafka.transactions == 1
        with pytest.raises(ConfigError, match="have no end"), harness.running(transaction__boundary="object"):
            pass

    def test_passwords_are_not_shown(self, harness):
        """Neither the password's own key nor a URL's user and password are in what a configuration shows."""
        props = {**harness.props, "name": "n", "bootstrap.servers": "h:1"}
        _, config = make_source(props | {"redis.url": "redis://me:hush@h", "redis.password": "quiet"})
        assert not {word for word in ("hush", "quiet") if word in f"{config!r}{config.connection()!r}"}


def test_version_1_of_a_split_is_read_for_ever():
    """What version 1 wrote is read, byte for byte as it was written; a version from the future is refused."""
    from headrace.sources.redis.ids import StreamId

    written = b'{"stream":"orders-0","start":"5-1","passed":7,"end":"9-0","length":3,"peek":false}'
    split = RedisSplit(stream="orders-0", start=StreamId(5, 1), passed=7, end=StreamId(9), length=3)
    serializer = RedisSplitSerializer()
    assert serializer.deserialize(1, written) == split
    with pytest.raises(ValueError, match="newer"):
        serializer.deserialize(3, written)


def test_version_2_of_a_split_says_what_had_been_added():
    """What version 2 wrote is read as it was written, and still written like that."""
    from headrace.sources.redis.ids import StreamId

    written = b'{"stream":"orders-0","start":"5-1","passed":7,"end":"9-0","length":3,"added":10,"peek":false}'
    split = RedisSplit(stream="orders-0", start=StreamId(5, 1), passed=7, end=StreamId(9), length=3, added=10)
    serializer = RedisSplitSerializer()
    assert serializer.deserialize(2, written) == split
    assert serializer.serialize(split) == written


def reading(harness: SplitHarness, **changes):
    """A continuous run on a thread of its own while the block lasts."""
    return harness.in_background(**changes)


def await_true(happened):
    done = threading.Event()
    for _ in range(3000):
        if happened():
            return
        done.wait(0.02)
    raise AssertionError("it has not happened")


def await_values(harness, expected):
    await_true(lambda: len(harness.values()) >= len(expected))
    assert harness.values() == expected
