"""What a replay brings back once an object has been repaired, in each format, inside each compression."""

import bz2
import gzip
import io
import json
import lzma
import math
from collections import Counter
from functools import partial

import attrs
import cramjam
import fastavro
import lz4.frame
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.dead_letter import DeadLetter
from headrace.framework.worker.execute import make_converter, make_source
from headrace.testing import SplitHarness

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": lambda data: bytes(cramjam.zstd.compress(data)),
    ".lz4": lz4.frame.compress,
    ".sz": lambda data: bytes(cramjam.snappy.compress(data)),
}
TOLERANT = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
SYNC = b"0123456789abcdef"
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
ROWS = [{"n": number, "s": f"{number * 7919 % 1_000_003:030}"} for number in range(300)]
LINES = [json.dumps(row).encode() for row in ROWS]


def lines(one):
    return b"".join(line + b"\n" for line in [*LINES[:150], one, *LINES[150:]])


def array(one):
    return b"[" + b",\n ".join([*LINES[:150], one, *LINES[150:]]) + b"]"


def csv(one):
    rows = [f"{row['n']},{row['s']}".encode() for row in ROWS]
    return b"".join(line + b"\n" for line in [b"n,s", *rows[:150], one, *rows[150:]])


def avro(one):
    target = io.BytesIO()
    for at in range(0, len(ROWS), 50):
        fastavro.writer(target, SCHEMA, ROWS[at : at + 50], sync_marker=SYNC)
    blocks = target.getvalue().split(SYNC)
    return SYNC.join([*blocks[:4], one + blocks[4][len(one) :], *blocks[5:]])


def parquet(one):
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), target, row_group_size=50, use_dictionary=False, compression="none")
    data = target.getvalue()
    at = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(3).column(0).data_page_offset
    return data[:at] + one + data[at + len(one) :]


def plain(one):
    return b"x" * 5000 + one


@attrs.frozen
class Form:
    """A format: how an object is made with one piece in its middle, and such pieces: bad, and repaired in two sizes."""

    name: str
    make: object
    bad: bytes
    same: bytes
    other: bytes | None = None
    props: dict = attrs.field(factory=dict)
    mended: dict = attrs.field(factory=dict)
    compressed: bool = True


FORMS = {
    "jsonl": Form("jsonl", lines, b"{bad", b'"ok"', b'{"much":"longer"}'),
    "text": Form("text", lines, b"b\xffd", b"bad", b"much longer"),
    "csv": Form("csv", csv, b"1,2,3", b"1,2.3", b"1,much longer"),
    "json": Form("json", array, b"{bad}", b'"mad"', b'["much", "longer"]'),
    "avro": Form("avro", avro, b"\xff" * 12, b""),
    "parquet": Form("parquet", parquet, b"\xff" * 20, b"", compressed=False),
    "bytes": Form("bytes", plain, b"", b"", b"y", {"max.record.bytes": "1000"}, {"max.record.bytes": "9000"}),
    "chunks": Form("bytes", plain, b"", b"", props={"transformer.max.buffer.size": "512"}),
}


@attrs.frozen
class Replay:
    """Runs over an object, and replays of letters once another object is in its place."""

    put: object
    props: dict
    key: str

    def run(self, data, **changes):
        """What goes out of this object, and its letters."""
        self.put(self.key, data)
        run = SplitHarness({**self.props, **TOLERANT, **changes})
        run.run()
        letters = [DeadLetter.from_headers(dict(one.headers)) for one in run.kafka.records if one.topic == "dead"]
        return run.kafka.values("records"), letters

    def replayed(self, letters, data, **changes):
        """What the letters are in this object."""
        self.put(self.key, data)
        source, config = make_source(
            {"name": "test", "bootstrap.servers": "127.0.0.1:1", "topic": "records", **self.props, **changes}
        )
        converter, replays = make_converter(config, "value"), source.replays()
        try:
            return [
                value
                for letter in letters
                for batch in replays.read(letter)
                for value in converter.convert_all("records", batch.schema, batch.values)
            ]
        finally:
            replays.close()


def replay_of(place, form, kind):
    put, known = place
    return Replay(put, {**known, "input.format": form.name, **form.props}, f"one.{form.name}{kind}")


def pairs(*, but, packed):
    """Formats and compressions: from files each with each, from S3 some."""
    known = [
        (name, form, kind)
        for name, form in FORMS.items()
        for kind in PACKERS
        if name != but and (kind or not (packed and form.compressed)) and (form.compressed or not kind)
    ]
    return [
        pytest.param(place, form, kind, id=f"{place}-{name}{kind}")
        for place, kinds in (("files", set(PACKERS)), ("s3", {"", ".gz"}))
        for name, form, kind in known
        if kind in kinds
    ]


@pytest.mark.parametrize(("place", "form", "kind"), pairs(but="chunks", packed=False), indirect=["place"])
def test_a_repaired_piece_is_just_what_was_missing(place, form, kind):
    """Whether a repair keeps the size of an object or not, a replay of its letter gives the records that had not gone.

    With what had gone out these are the records of the repaired object, each once.
    """
    replay, pack = replay_of(place, form, kind), PACKERS[kind]
    sent, letters = replay.run(pack(form.make(form.bad)))
    assert len(letters) == 1

    for one in [form.same, *([form.other] if form.other else [])]:
        good = pack(form.make(one))
        again = replay.replayed(letters, good, **form.mended)
        assert Counter(sent + again) == Counter(replay.run(good, **form.mended)[0])


REAL = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "double"}, {"name": "s", "type": "string"}]}


def real_avro(x, s):
    target = io.BytesIO()
    rows = [{"x": float(number), "s": "-"} for number in range(30)]
    rows[14] = {"x": x, "s": s}
    fastavro.writer(target, REAL, rows, sync_marker=SYNC, sync_interval=60)
    return target.getvalue()


def real_parquet(x, s):
    target = io.BytesIO()
    rows = [{"x": float(number), "s": "-"} for number in range(30)]
    rows[14] = {"x": x, "s": s}
    pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=5)
    return target.getvalue()


@pytest.mark.parametrize("place", ["files", "s3"], indirect=True)
@pytest.mark.parametrize(("form", "make"), [("avro", real_avro), ("parquet", real_parquet)])
@pytest.mark.parametrize("text", ["-", "much longer" * 20])
def test_a_value_that_the_converter_refused_is_replayed(place, form, make, text):
    """Once it is repaired, in as many bytes or more, also where its letter says nothing of bytes, as older ones do."""
    replay = replay_of(place, Form(form, make, b"", b""), "")
    sent, [letter] = replay.run(make(math.nan, "-"))
    old = attrs.evolve(letter, start=None, end=None)
    assert letter.number == 15
    assert len(sent) == 29

    again = [replay.replayed([one], make(0.5, text)) for one in (letter, old)]

    assert [json.loads(value) for [value] in again] == [{"x": 0.5, "s": text}] * 2


@pytest.mark.parametrize("place", ["files", "s3"], indirect=True)
def test_a_row_of_many_lines_that_the_converter_refused_is_replayed(place):
    """It is read where it begins, in a repaired object of the same size and in one of another."""
    form = Form("csv", csv, b"", b"", props={"csv.types": "n:string,d:decimal(2)", "max.record.bytes": "100"})
    replay, content = replay_of(place, form, ""), b'n,d\n\n"x\ny",1\n\n"a\nb\nc",%b\n"z",2\n'
    sent, letters = replay.run(content % b"1e99999")

    again = [replay.replayed(letters, content % repaired) for repaired in (b"0001.25", b"1.25")]

    assert len(sent) == 2
    assert [json.loads(value)["n"] for [value] in again] == ["a\nb\nc"] * 2


@pytest.mark.parametrize(("place", "form", "kind"), pairs(but=None, packed=True), indirect=["place"])
def test_a_whole_copy_is_just_what_was_cut_off(place, form, kind):
    """Where an object was cut, a whole copy in its place gives what its letter has not had, and nothing else."""
    form = attrs.evolve(form, props={**form.props, **form.mended})
    replay, whole = replay_of(place, form, kind), PACKERS[kind](form.make(form.same))
    sent, letters = replay.run(whole[: len(whole) * 2 // 3])
    again = replay.replayed(letters, whole)
    assert Counter(sent + again) == Counter(replay.run(whole)[0])
