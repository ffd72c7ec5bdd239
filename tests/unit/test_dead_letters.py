"""Dead letters of a task, on a Kafka in memory: conversions that fail, records that are too large, and who is told."""

import contextlib
import gzip
import io
import json
import logging
import math
import tracemalloc
from pathlib import Path

import attrs
import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from headrace.framework.check import check
from headrace.framework.dead_letter import DeadLetter
from headrace.framework.errors import ConfigError, DataError, PipelineError, RecordTooLargeError
from headrace.framework.record import RecordBatch, SourceRecord
from headrace.testing import SplitHarness, TaskHarness
from headrace.testing.memory import MemoryWriter
from headrace.testing.scripted import Fail, scripted_task

PARTITION = {"script": "script"}
TOLERANT = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "value.converter": "json",
    "key.converter": "string",
}


def harness(*script, **changes):
    changed = {key.replace("__", "."): value for key, value in changes.items()}
    return TaskHarness(scripted_task(*script), {**TOLERANT, **changed})


def letters(run):
    return [dict(record.headers) for record in run.records("dead")]


def record(value, position, *, complete=False, **more):
    return SourceRecord(
        source_partition=PARTITION,
        source_offset={"position": position, **({"complete": True} if complete else {})},
        topic="scripted",
        value=value,
        **more,
    )


def batch(values, position, *, source_partition=PARTITION, **more):
    return RecordBatch(
        source_partition=source_partition,
        source_offset={"position": position},
        topic="scripted",
        values=values,
        **more,
    )


@attrs.define
class SmallWriter(MemoryWriter):
    """Takes values of ten bytes at most, as a producer does: those before a larger one are written."""

    def write(self, topic, key, values, **more):
        for index, value in enumerate(values):
            if len(value or b"") > 10:
                error = RecordTooLargeError("too large")
                error.index = index
                raise error
            super().write(topic, key, [value], **more)


class TestValues:
    def test_a_value_that_cannot_be_converted_is_a_letter(self):
        """A task's records that the converter refuses are letters with their origin; the others go out, and offsets."""
        run = harness(record({1, 2}, 1, key="k"), record("a", 2), record(b"\xff", 3), value__converter="string")

        report = run.run()

        assert run.values("scripted") == [b"a"]
        assert (report.records, report.dead_lettered) == (1, 2)
        assert run.offset({"script": "script"}) == {"position": 3}
        first, second = run.records("dead")
        assert (first.key, first.value, second.value) == (b"k", None, b"\xff")
        letter = DeadLetter.from_headers(dict(first.headers))
        assert (letter.connector, letter.source_partition) == ("test", {"script": "script"})
        assert letter.source_offset == {"position": 1}

    @pytest.mark.parametrize("offset_at", [None, lambda count: {"position": count}])
    def test_a_batch_goes_out_but_for_its_bad_values(self, offset_at):
        """Whether a batch can be cut or not, each bad value of it is a letter, and all others go out in their order."""
        run = harness(batch([1, {1}, 2, {2}, 3], 5, offset_at=offset_at))

        report = run.run()

        assert run.values("scripted") == [b"1", b"2", b"3"]
        assert (report.records, report.dead_lettered) == (3, 2)
        offsets = [json.loads(headers["headrace.source.offset"]) for headers in letters(run)]
        assert offsets == ([{"position": 2}, {"position": 4}] if offset_at else [{"position": 5}] * 2)

    def test_a_bad_key_makes_letters_of_its_values(self):
        """Where the key cannot be converted none of its values can be sent."""
        run = harness(record(1, 1, key=b"\xff"), record(2, 2, key="good"))

        report = run.run()

        assert (run.values("scripted"), report.dead_lettered) == ([b"2"], 1)
        assert letters(run)[0]["__connect.errors.stage"] == b"convert"

    def test_records_that_are_too_large_are_letters(self):
        """What the sink does not take for its size is a letter; what was written before it is not sent twice."""
        run = harness(batch([1, "x" * 20, 2, "y" * 20, 3], 5, offset_at=lambda count: {"position": count}))

        report = run.attempt(writer=SmallWriter(run.kafka))

        assert run.values("scripted") == [b"1", b"2", b"3"]
        assert (report.error, report.records, report.dead_lettered) == (None, 3, 2)
        assert [headers["__connect.errors.stage"] for headers in letters(run)] == [b"produce"] * 2
        assert [one.value for one in run.records("dead")] == [None, None]

    def test_without_tolerance_they_fail_the_task(self):
        """A record that is too large fails the task, and is named, once all before it is committed with its offset."""
        script = [record(0, 1), batch([1, 2, "x" * 20, 3], 5, offset_at=lambda count: {"position": 1 + count})]
        run = harness(*script, errors__tolerance="none")

        report = run.attempt(writer=SmallWriter(run.kafka))

        assert isinstance(report.error, RecordTooLargeError)
        assert "produce" in str(report.error)
        assert run.values("scripted") == [b"0", b"1", b"2"]
        assert run.offset(PARTITION) == {"position": 3}
        assert (report.records, report.bytes) == (3, 3)

    def test_the_first_that_is_bad_fails_the_task(self):
        """Of a batch with one that is too large and one that cannot be converted, all before the first stays."""
        script = [batch([1, "x" * 20, {2}], 3, offset_at=lambda count: {"position": count})]
        run = harness(*script, errors__tolerance="none")

        report = run.attempt(writer=SmallWriter(run.kafka))

        assert isinstance(report.error, RecordTooLargeError)
        assert (run.values("scripted"), run.offset(PARTITION)) == ([b"1"], {"position": 1})

    def test_of_a_batch_that_cannot_be_cut_nothing_stays(self):
        """Without offsets between its records a batch is sent as a whole or not at all, and its transaction with it."""
        run = harness(record(0, 1), batch([1, "x" * 20], 3), errors__tolerance="none")

        report = run.attempt(writer=SmallWriter(run.kafka))

        assert isinstance(report.error, RecordTooLargeError)
        assert (run.values("scripted"), run.offset(PARTITION)) == ([], None)

    def test_an_object_of_which_one_is_too_large_is_not_seen_by_half(self):
        """With the object boundary nothing of that object becomes visible, and what came before it stays."""
        one = record(0, 1, complete=True)
        script = [one, batch([1, "x" * 20], 3, source_partition={"o": 2}, offset_at=lambda count: {"position": count})]
        run = harness(*script, errors__tolerance="none", transaction__boundary="object")

        report = run.attempt(writer=SmallWriter(run.kafka))

        assert isinstance(report.error, RecordTooLargeError)
        assert (run.values("scripted"), run.offset({"o": 2})) == ([b"0"], None)

    def test_a_task_that_raises_itself_fails(self):
        """What a task's own iterator raises cannot be passed over: it has ended, and nobody knows where to go on."""

        run = harness(record(1, 1), Fail(DataError("this one")))

        assert isinstance(run.attempt().error, DataError)
        assert run.values("scripted") == [b"1"]


class TestTheLetter:
    def test_it_has_connects_headers(self):
        """Kafka Connect's names are all there, with its stage in our word, unless they are not wanted."""
        run = harness(record({1}, 1))
        run.run()
        names = ("topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name")
        names += tuple(f"exception.{name}" for name in ("class.name", "message", "stacktrace"))
        [headers] = letters(run)
        assert {name for name in headers if name.startswith("__connect")} == {f"__connect.errors.{n}" for n in names}
        assert headers["__connect.errors.class.name"] == b"headrace.converters.json.JsonConverter"
        assert headers["__connect.errors.exception.class.name"] == b"headrace.framework.errors.DataError"
        assert headers["__connect.errors.topic"] == b"scripted"

        bare = harness(record({1}, 1), errors__deadletterqueue__context__headers__enable="false")
        bare.run()
        assert {name.partition(".")[0] for name in letters(bare)[0]} == {"headrace"}

    @pytest.mark.parametrize(
        "damage",
        [
            {"headrace.source.partition": b"{"},
            {"headrace.source.partition": b"[]"},
            {"headrace.source.offset": b"1"},
            {"headrace.connector": b"\xff"},
            {"headrace.record": b"one"},
            {"headrace.byte.start": b""},
            {"headrace.position": b'{"bytes":1}'},
            {"headrace.position": b"[" * 100_000},
            {"headrace.error": b"\xff"},
        ],
    )
    def test_damaged_headers_are_an_error_that_says_so(self, damage):
        """Headers that somebody else has written are no letter, and nothing else than a DataError."""
        run = harness(record({1}, 1))
        run.run()
        [headers] = letters(run)
        with pytest.raises(DataError, match="the headers of a dead letter cannot be read"):
            DeadLetter.from_headers({**headers, **damage})

    def test_without_a_topic_it_is_counted_only(self):
        """No topic, no letters: the number is in the report, and the summary's warning says that they are dropped."""
        run = harness(record({1}, 1), errors__deadletterqueue__topic__name="")
        with pytest.raises(ConfigError):
            run.run()
        props = {key: value for key, value in TOLERANT.items() if "queue" not in key}
        run = TaskHarness(scripted_task(record({1}, 1)), props)

        report = run.run()

        assert (report.dead_lettered, run.records()) == (1, [])
        assert any("dropped" in warning for warning in report.warnings)

    def test_records_do_not_go_to_its_topic(self):
        """Letters have a topic of their own: a fault of the configuration, or an error of the task, otherwise."""
        with pytest.raises(ConfigError, match="is the topic of the records"):
            check({**harness().full_props, "topic": "dead"})
        with pytest.raises(ConfigError, match="is the topic of the offsets"):
            check({**harness().full_props, "offset.storage.topic": "dead"})
        run = harness(SourceRecord(source_partition={"a": 1}, source_offset={"b": 1}, topic="dead", value=1))
        with pytest.raises(PipelineError, match="it is the topic of the dead letters"):
            run.run()

    def test_the_log_has_some_of_them(self, caplog):
        """With errors.log.enable ten in ten seconds are logged, and the number of the others; content if asked."""
        script = [record(b"\xffsecret", number) for number in range(1, 31)]
        text = {"value__converter": "string"}
        with caplog.at_level(logging.ERROR, "headrace"):
            harness(*script, **text).run()
            assert caplog.text == ""
            harness(*script, **text, errors__log__enable="true").run()
            assert (caplog.text.count("is passed over"), "secret" in caplog.text) == (10, False)
            assert caplog.text.count("20 more bad records were passed over") == 1
            harness(*script, **text, errors__log__enable="true", errors__log__include__messages="true").run()
            assert caplog.text.count("it begins with b'\\xffsecret'") == 10


def read(tmp_path, form, data, writer=MemoryWriter, **changes):
    """A run over one file of these bytes; with `errors__tolerance="none"` it has no letters."""
    (tmp_path / "one").write_bytes(data)
    dead = {} if "errors__tolerance" in changes else {key: TOLERANT[key] for key in TOLERANT if "errors" in key}
    props = {"connector.class": "files", "files.paths": str(tmp_path), "input.format": form, **dead}
    run = SplitHarness({**props, **{key.replace("__", "."): value for key, value in changes.items()}}, writer=writer)
    run.run()
    return run


NUMBERS = [{"n": math.nan if number in {2, 3, 7} else float(number)} for number in range(10)]
SYNC = b"0123456789abcdef"


class TestPlaces:
    def test_a_value_of_avro_has_the_bytes_of_its_block(self, tmp_path):
        """Wherever in a block the converter refuses a record, the first, in the middle or the last of it."""
        schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "double"}]}
        target = io.BytesIO()
        fastavro.writer(target, schema, NUMBERS, sync_interval=24, sync_marker=SYNC)
        header, *blocks, _ = target.getvalue().split(SYNC)
        starts = [len(header) + len(SYNC)]
        for block in blocks:
            starts.append(starts[-1] + len(block) + len(SYNC))

        found = dead_of(read(tmp_path, "avro", target.getvalue()))

        assert len(blocks) == 4
        assert [letter.number for letter in found] == [3, 4, 8]
        assert [(letter.start, letter.end) for letter in found] == [(starts[at], starts[at + 1]) for at in (0, 1, 2)]
        assert [letter.position.byte for letter in found] == [starts[0], starts[1], starts[2]]

    def test_a_row_of_parquet_has_the_bytes_of_its_row_group(self, tmp_path):
        """Whichever row of a row group the converter refuses."""
        target = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(NUMBERS), target, row_group_size=3, use_dictionary=False)
        footer = pq.ParquetFile(io.BytesIO(target.getvalue())).metadata
        chunks = [footer.row_group(number).column(0) for number in (0, 1, 2)]

        found = dead_of(read(tmp_path, "parquet", target.getvalue()))

        assert [letter.number for letter in found] == [3, 4, 8]
        starts = [chunk.data_page_offset for chunk in chunks]
        assert [letter.start for letter in found] == starts
        assert [letter.end - letter.start for letter in found] == [chunk.total_compressed_size for chunk in chunks]

    def test_a_row_that_the_converter_refuses_is_named_by_its_first_line(self, tmp_path):
        """As one that is none: not by the row's number, nor by its last line, nor by a blank line in front of it."""
        row, types = b'"a\nb\nc",1e99999\n', {"csv__types": "n:string,d:decimal(2)"}
        data = b'n,d\n\n"x\ny",1\n\n' + row + b'"z",2\n'

        run = read(tmp_path, "csv", data, **types)

        [letter] = dead_of(run)
        assert "one, line 6: " in letter.error
        assert (letter.number, data[letter.start : letter.end]) == (6, row)
        assert (letter.position.byte, letter.position.line) == (letter.start, 5)
        with pytest.raises(DataError, match="one, line 6: "):
            read(tmp_path, "csv", data, **types, errors__tolerance="none")

    @pytest.mark.parametrize(("form", "before"), [("jsonl", b"1\n\n\n"), ("text", b"1\n2\n3\n")])
    def test_a_line_that_is_too_large_for_the_producer_is_named_by_its_number(self, tmp_path, form, before):
        """Blank lines are counted, and are none of its bytes."""
        line = b'"%b"\n' % (b"x" * 20)
        data = before + line + b"5\n"

        [letter] = dead_of(read(tmp_path, form, data, SmallWriter))

        assert "one, line 4: " in letter.error
        assert (letter.number, data[letter.start : letter.end]) == (4, line)
        with pytest.raises(RecordTooLargeError, match="one, line 4: "):
            read(tmp_path, form, data, SmallWriter, errors__tolerance="none")

    def test_behind_a_byte_order_mark(self, tmp_path):
        """The mark is none of the first line's bytes."""
        [letter] = dead_of(read(tmp_path, "jsonl", b'\xef\xbb\xbf"%b"\n1\n' % (b"x" * 20), SmallWriter))
        assert (letter.number, letter.start, letter.end) == (1, 3, 26)


BAD_INPUT = {
    "wrong-extension.gz": ("jsonl", b'{"n":1}\nbad\n{"n":2}\n', 2, 1),
    "wrong-magic.jsonl.gz": ("jsonl", b"\x1f\x8b\x08\x00" + b"?" * 40, 0, 1),
    "wrong.parquet": ("parquet", b'{"n":1}\n', 0, 1),
    "wrong.avro": ("avro", b'{"n":1}\n', 0, 1),
    "mixed.jsonl": ("jsonl", b'{"n":1}\nn,m\n1,2\nObj\x01\n{"n":2}\n', 2, 3),
    "mark-and-returns.jsonl": ("jsonl", b'\xef\xbb\xbf{"n":1}\r\nbad\r\n{"n":2}\r\n', 2, 1),
    "not-utf-8.jsonl": ("jsonl", b'{"n":1}\n{"n":"\xff"}\n', 1, 1),
    "one-line.jsonl": ("jsonl", b'{"n":1}\n' + b"x" * 2_000_000 + b'\n{"n":2}\n', 2, 1),
    "deep.jsonl": ("jsonl", b"[" * 50_000 + b"]" * 50_000 + b'\n{"n":2}\n', 1, 1),
    "beyond-64-bits.jsonl": ("jsonl", b'{"n":123456789012345678901234567890}\n', 1, 0),
    "nan.jsonl": ("jsonl", b'{"n":NaN}\n{"n":1}\n', 1, 1),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_named_or_a_letter(name, tmp_path):
    """What people put into object stores by mistake is a letter with its object; good records around it go out.

    Without tolerance the same input fails the run with an error that names the object.
    """
    form, data, good, bad = BAD_INPUT[name]
    (tmp_path / name).write_bytes(data)
    props = {
        "connector.class": "files",
        "files.paths": str(tmp_path),
        "input.format": form,
        "max.record.bytes": "1000000",
    }
    run = SplitHarness({**props, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"})

    run.run()

    assert len(run.values()) - len(dead_of(run)) == good
    assert [Path(letter.object).name for letter in dead_of(run)] == [name] * bad
    again = len(run.kafka.records)
    run.run()
    assert len(run.kafka.records) == again
    if bad:
        with pytest.raises(DataError, match=name):
            SplitHarness(props).run()


def test_a_bomb_is_one_letter(tmp_path):
    """An object that unpacks to more than its ratio is a letter from there on; what came before it goes out."""
    line = b'{"n":"%s"}\n' % (b"x" * 990)
    with gzip.open(tmp_path / "bomb.jsonl.gz", "wb", compresslevel=9) as file:
        for _ in range(70_000):
            file.write(line)
    props = {"connector.class": "files", "files.paths": str(tmp_path), "input.format": "jsonl"}
    run = SplitHarness(
        {
            **props,
            "max.decompression.ratio": "10",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "dead",
        }
    )

    run.run()

    [letter] = dead_of(run)
    assert letter.count is None
    assert len(run.values()) - 1 == letter.number - 1 > 60_000
    assert "max.decompression.ratio" in letter.error


@pytest.mark.parametrize("tolerance", ["none", "all"])
@pytest.mark.parametrize(("form", "head", "good"), [("jsonl", b"1\n", 2), ("csv", b"a\n1\n", 2), ("json", b'[1, "', 1)])
def test_a_line_of_half_a_gigabyte_is_an_error_or_one_letter(tmp_path, form, head, good, tolerance):
    """From the file to the topic nothing holds it, and what is before it goes out."""
    with (tmp_path / "one").open("wb") as file:
        file.write(head)
        file.seek(500 * 1024 * 1024)
        file.write(b"\n2\n")
    props = {"connector.class": "files", "files.paths": str(tmp_path), "input.format": form}
    limits = {"max.record.bytes": "1000000", "errors.tolerance": tolerance}
    dead = {"errors.deadletterqueue.topic.name": "dead"} if tolerance == "all" else {}
    run = SplitHarness({**props, **limits, **dead})

    tracemalloc.start()
    with contextlib.nullcontext() if dead else pytest.raises(DataError, match=r"one, (line|record) [23]: "):
        run.run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 32_000_000
    assert len(run.kafka.values("records")) == (good if dead else 1)
    assert [letter.number for letter in dead_of(run)] == ([2 + (form == "csv")] if dead else [])


def dead_of(run):
    found = (DeadLetter.from_headers(dict(one.headers)) for one in run.kafka.records if one.topic == "dead")
    return [letter for letter in found if letter is not None]
