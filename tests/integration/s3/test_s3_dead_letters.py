"""Dead letters of objects on a real broker: what is fetched for a replay, in each format, and crashes in between."""

import gc
import gzip
import io
import json
from collections import Counter

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyarrow import parquet as pq

from headrace.framework.dead_letter import DeadLetter
from headrace.framework.driver.replaying import dead_letters, replay
from headrace.framework.errors import SinkError
from headrace.offsets.kafka import dead_letters as kafka
from headrace.testing import S3Harness, create_topic
from headrace.testing.dying_sink import Death, DyingKafkaSink, DyingProducer, install_dying_sink
from headrace.testing.engines import Engine
from headrace.testing.trial import Trial, fresh_name

SYNC = b"0123456789abcdef"
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
ROWS = [{"n": number, "s": "x" * 200} for number in range(5000)]


@pytest.fixture
def trial(s3_endpoint, kafka_bootstrap_servers, request):
    with S3Harness(s3_endpoint) as harness:
        yield Trial(
            harness=harness,
            engine=Engine("local"),
            bootstrap_servers=kafka_bootstrap_servers,
            name=fresh_name(request.function.__name__.removeprefix("test_")),
        )


def put(trial, key, data):
    trial.harness.client.put_object(Bucket=trial.harness.bucket, Key=key, Body=data)


def props(trial, **changes):
    return trial.props(**trial.tolerant, s3__overwrite__policy="ignore", **changes)


def lines(rows):
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def jsonl():
    good = lines(ROWS)
    at = good.index(b'{"n":3000,')
    return good, good[:at] + b"?" + good[at + 1 :]


def csv():
    good = b"n,s\n" + b"".join(b"%d,%s\n" % (row["n"], row["s"].encode()) for row in ROWS)
    at = good.index(b"3000,x")
    return good, good[:at] + b"3000;x" + good[at + 6 :]


def array():
    good = b"[" + b",\n".join(lines([row]).strip() for row in ROWS) + b"]"
    at = good.index(b'{"n":3000,')
    return good, good[:at] + b'{"n";3000,' + good[at + 10 :]


def avro():
    target = io.BytesIO()
    for at in range(0, len(ROWS), 50):
        fastavro.writer(target, SCHEMA, ROWS[at : at + 50], sync_marker=SYNC)
    good = target.getvalue()
    blocks = good.split(SYNC)
    blocks[61] = b"\xff" * 12 + blocks[61][12:]
    return good, SYNC.join(blocks)


def parquet():
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=50, use_dictionary=False, compression="none")
    good = target.getvalue()
    at = pq.ParquetFile(io.BytesIO(good)).metadata.row_group(60).column(0).data_page_offset
    return good, good[:at] + b"\xff" * 20 + good[at + 20 :]


@pytest.mark.parametrize(
    ("form", "make", "bad", "fetched"),
    [
        pytest.param("jsonl", jsonl, 1, 5_000, id="jsonl"),
        pytest.param("csv", csv, 1, 80_000, id="csv"),
        pytest.param("json", array, 1, 5_000, id="json"),
        pytest.param("avro", avro, 50, 160_000, id="avro"),
        pytest.param("parquet", parquet, 50, 120_000, id="parquet"),
    ],
)
def test_a_repaired_piece_is_fetched_alone_and_sent_once(trial, form, make, bad, fetched):
    """A run sends all but the bad piece; once that is repaired a replay fetches little else, and sends it."""
    good, damaged = make()
    put(trial, f"one.{form}", damaged)
    summary = trial.engine.run(props(trial, input__format=form))
    assert (summary.error, summary.records, summary.dead_lettered) == (None, len(ROWS) - bad, 1)
    put(trial, f"one.{form}", good)
    trial.harness.faulty.requests.clear()

    [done] = replay(props(trial, input__format=form))

    assert (done.error, done.records) == (None, bad)
    sent = [int(json.loads(value)["n"]) for value in trial.values()]
    assert sorted(sent) == list(range(len(ROWS)))
    assert list(replay(props(trial, input__format=form))) == []
    assert sum(request.sent for request in trial.harness.faulty.gets) < fetched


def test_letters_are_committed_with_the_records_around_them(trial, tmp_path, monkeypatch):
    """Wherever a task dies, no letter is there twice in the end, and none is missing; nor is a record."""
    install_dying_sink(tmp_path, monkeypatch)
    for name in "abc":
        put(trial, name, b'{"n":1}\nbad\n{"n":2}\n{"n":3}\nbad\n')
    stepwise = {"transaction__boundary": "poll", "max__poll__records": "1", "transaction__timeout__ms": "1500"}
    deaths = 0
    for step in (2, 3, 4, 5, 6, 11, 1000):
        death = DyingKafkaSink.to_die_before(step)
        trial.attempt(**trial.tolerant, **stepwise, sink="dying")
        deaths += death.has_come

    assert deaths == 6
    assert Counter(trial.values()) == dict.fromkeys([b'{"n":1}', b'{"n":2}', b'{"n":3}'], 3)
    letters = Counter((letter.source_partition["objectKey"], letter.number) for letter in trial.dead_letters())
    assert letters == {(name, line): 1 for name in "abc" for line in (2, 5)}


def test_only_the_bytes_of_a_line_are_fetched(trial):
    """A piece of lines in an object that has not changed costs its own bytes, beside a look at the object's first."""
    put(trial, "one.jsonl", lines(ROWS[:3000]) + b'"%s"\n' % (b"y" * 500) + lines(ROWS[3000:]))
    trial.engine.run(props(trial, max__record__bytes="400"))
    trial.harness.faulty.requests.clear()

    [done] = replay(props(trial))

    assert (done.error, done.records) == (None, 1)
    assert sum(request.sent for request in trial.harness.faulty.gets) < 1000


def test_a_cut_object_is_finished_by_its_whole_copy(trial):
    """What is cut in its compression is a letter from there on; a whole copy in its place gives just the rest."""
    whole = gzip.compress(lines(ROWS))
    put(trial, "one.jsonl.gz", whole[: len(whole) // 2])
    summary = trial.engine.run(props(trial))
    assert (summary.error, summary.dead_lettered) == (None, 1)
    assert 0 < summary.records < len(ROWS)
    put(trial, "one.jsonl.gz", whole)

    [done] = replay(props(trial))

    assert (done.error, done.records) == (None, len(ROWS) - summary.records)
    assert [json.loads(value)["n"] for value in trial.values()] == list(range(len(ROWS)))


def test_avro_that_was_laid_out_anew_stays_a_letter(trial):
    """Where a repair has moved the blocks nobody knows which records are missing: nothing is sent, and it is said."""
    _, damaged = avro()
    put(trial, "one.avro", damaged)
    trial.engine.run(props(trial, input__format="avro"))
    target = io.BytesIO()
    fastavro.writer(target, SCHEMA, ROWS)
    put(trial, "one.avro", target.getvalue())
    before = trial.values()

    [done] = replay(props(trial, input__format="avro"))

    assert "no block begins where the piece was" in done.error
    assert trial.values() == before
    assert len(list(dead_letters(props(trial, input__format="avro")))) == 1


def bury(trial, letters):
    """Write headers of dead letters on the topic."""
    producer = Producer({"bootstrap.servers": trial.bootstrap_servers})
    for changes in letters:
        own = {"connector": trial.name, "source.partition": '{"a":1}', "source.offset": '{"b":1}', **changes}
        headers = [(f"headrace.{name}", text.encode()) for name, text in own.items()]
        producer.produce(trial.dead_topic, b"", headers=headers)
        producer.poll(0)
    producer.flush()


def test_a_damaged_letter_holds_up_no_other(trial, caplog):
    """A letter whose headers somebody has damaged is named by its place; the others are listed and replayed."""
    put(trial, "one.jsonl", b"bad\n")
    trial.engine.run(props(trial))
    bury(trial, [{"record": "one"}, {"source.partition": "{"}, {"replayed": "?"}])
    put(trial, "one.jsonl", lines(ROWS[:1]))

    [letter] = dead_letters(props(trial))
    [done] = replay(props(trial))

    assert (letter.letter.number, done.records) == (1, 1)
    assert caplog.text.count("is passed over: the headers of a dead letter cannot be read") == 4


def test_many_letters_are_read_one_by_one(trial):
    """Whoever reads letters holds none but the one at hand, and gets those that are not done, in their order."""
    create_topic(trial.bootstrap_servers, trial.dead_topic)
    bury(trial, [{"record": str(number)} for number in range(1, 301)])
    bury(trial, [{"replayed": f"0:{number}"} for number in range(0, 300, 2)])
    numbers, held = [], []
    gc.collect()

    for found in dead_letters(props(trial)):
        numbers.append(found.letter.number)
        if found.letter.number % 100 == 0:
            held.append(sum(isinstance(one, DeadLetter) for one in gc.get_objects()))

    assert numbers == [*range(2, 301, 2)]
    assert max(held) <= 2


def test_a_record_that_is_too_large_for_the_producer_is_a_letter(trial):
    """Beyond the producer's limit a record is a letter, without bytes where these are too large as well."""
    put(trial, "one.jsonl", lines([ROWS[0], {"n": "z" * 1_500_000}, ROWS[1]]))

    large = f"{trial.name}-large"
    create_topic(trial.bootstrap_servers, large, config={"max.message.bytes": "4000000"})

    summary = trial.engine.run(props(trial))
    [stays] = replay(props(trial))
    [done] = replay(props(trial, producer__override__max__request__size="3000000", topic=large))

    assert (summary.error, summary.records, summary.dead_lettered) == (None, 2, 1)
    assert "max.request.size" in stays.error
    assert "one.jsonl, line 2" in stays.error
    assert (done.error, done.records) == (None, 1)
    assert [len(value) for value in trial.values(large)] == [1_500_008]


def test_without_tolerance_what_comes_before_a_large_record_is_delivered(trial):
    """A record that is too large fails every run behind what came before it; with a higher limit the rest is sent."""
    large = f"{trial.name}-large"
    create_topic(trial.bootstrap_servers, large, config={"max.message.bytes": "4000000"})
    put(trial, "one.jsonl", lines([*ROWS[:30], {"n": "z" * 1_500_000}, ROWS[30]]))

    failed = [trial.attempt(topic=large) for _ in range(2)]
    before = trial.values(large)
    trial.run(topic=large, producer__override__max__request__size="3000000")

    assert all("one.jsonl, line 31" in summary.error for summary in failed)
    assert [json.loads(value)["n"] for value in before] == [*range(30)]
    assert [str(json.loads(value)["n"])[:3] for value in trial.values(large)] == [*map(str, range(30)), "zzz", "30"]


def test_a_replay_that_dies_anywhere_sends_each_record_once(trial, monkeypatch):
    """Whichever call to Kafka a replay dies before, the next one sends what it did not, and nothing twice."""
    put(trial, "one.jsonl", b"bad\n" * 3 + lines(ROWS[:2]))
    trial.engine.run(props(trial))
    put(trial, "one.jsonl", lines(ROWS[2:5] + ROWS[:2]))
    living = kafka.TransactionalProducer
    for step in range(1, 30):
        death = Death(step)
        monkeypatch.setattr(kafka, "TransactionalProducer", lambda *them, death=death: Mortal(living(*them), death))
        try:
            list(replay(props(trial)))
        except SinkError:
            continue
        break

    assert step > 3
    assert sorted(json.loads(value)["n"] for value in trial.values()) == [0, 1, 2, 3, 4]
    assert list(dead_letters(props(trial))) == []


class Mortal(DyingProducer):
    """A producer that is alive until it has its id."""

    def init(self):
        self.living.init()


def test_a_second_replay_ends_the_first(trial):
    """Of two replays at once the later one goes on; the other has sent nothing that counts."""
    put(trial, "one.jsonl", b"bad\nbad\n")
    trial.engine.run(props(trial))
    put(trial, "one.jsonl", lines(ROWS[:2]))
    first = replay(props(trial))
    assert next(first).error is None

    [second] = replay(props(trial))

    assert (second.error, second.records) == (None, 1)
    assert len(trial.values()) == 2
    first.close()
