"""Large files, read by several tasks: each record once, whatever becomes of the file on the way."""

import gzip
import os

import pytest

from headrace.framework.errors import SinkError, SourceError
from headrace.testing.memory import MemoryWriter
from headrace.testing.split_harness import SplitHarness

LINES = 200
PARTS = 8


@pytest.fixture
def file(tmp_path):
    return tmp_path / "big"


def put(file, first=0, lines=LINES, end="\n"):
    expected = [b"line %04d" % number for number in range(first, first + lines)]
    file.write_bytes(b"\n".join(expected) + end.encode())
    return expected


def harness_of(file, **props):
    return SplitHarness(
        {
            "connector.class": "files",
            "files.paths": str(file),
            "input.format": "text",
            "value.converter": "string",
            "tasks.max": "3",
            "split.size.bytes": "260",
            **{key.replace("__", "."): value for key, value in props.items()},
        }
    )


def offset(harness, file, **more):
    return harness.offset(filename=str(file), **more)


def half_read(file, **props):
    """A harness whose run has failed once some records of some parts were committed."""
    harness = harness_of(file, transaction__boundary__max__records="10", **props)
    left = [7]

    class Failing(MemoryWriter):
        def commit(self, offsets, counted):
            left[0] -= 1
            if left[0] < 0:
                raise SinkError("full")
            super().commit(offsets, counted)

    harness.writer = Failing
    with pytest.raises(SinkError):
        harness.run()
    harness.writer = MemoryWriter
    assert 0 < len(harness.values()) < LINES
    return harness


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
def test_a_file_in_parts(file, end):
    """All tasks read it; in the end it has the entry that reading it whole leaves, and is read on if lines come."""
    expected = put(file, end=end)
    expected += [b""] if end == "\n\n" else []
    harness, whole = harness_of(file), harness_of(file, split__size__bytes="0")
    harness.run()
    whole.run()
    assert harness.rounds > 1
    assert sorted(harness.values()) == sorted(expected)
    assert whole.values() == expected
    assert offset(harness, file) == offset(whole, file)
    assert [offset(harness, file, part=number) for number in range(PARTS)] == [None] * PARTS
    with file.open("ab") as opened:
        opened.write(b"more\n")
    harness.run()
    whole.run()
    assert harness.values()[-1] == whole.values()[-1] == b"more"
    assert len(harness.values()) == len(whole.values())


@pytest.mark.parametrize("size", ["0", "100", "100000"])
def test_what_was_begun_goes_on_as_it_was_cut(file, size):
    """Another size, or none, changes nothing for a file that is half read in parts."""
    expected = put(file)
    harness = half_read(file)
    assert offset(harness, file)["parts"] == PARTS
    harness.run(split__size__bytes=size, tasks__max="2")
    assert sorted(harness.values()) == expected
    assert offset(harness, file)["complete"] is True


def test_lines_that_are_added_meanwhile_are_read_on(file):
    """They lie behind all parts, and are read once these are done; a file that was only touched is the same one."""
    expected = put(file)
    harness = half_read(file)
    with file.open("ab") as opened:
        opened.write(b"more\n")
    harness.run()
    harness.run()
    assert sorted(harness.values()) == [*expected, b"more"]
    put(file)
    harness = half_read(file)
    os.utime(file)
    harness.run()
    assert sorted(harness.values()) == expected


def test_a_continuous_run_reads_on_behind_the_parts(file):
    """A file that grows after its parts were read, and is overwritten after that, is read as any other is."""
    expected = put(file)
    harness = harness_of(file)
    with harness.running() as run:
        run.until(lambda: len(harness.values()) == LINES and "complete" in offset(harness, file))
        for number in range(2):
            with file.open("ab") as opened:
                opened.write(b"more %d\n" % number)
            run.until(lambda: len(harness.values()) == LINES + number + 1)  # noqa: B023 - called at once
        fresh = put(file, first=1000, lines=150)
        run.until(lambda: len(harness.values()) >= LINES + 2 + 150)
        for _ in range(5):
            run.turn()
    assert sorted(harness.values()) == [*expected, *fresh, b"more 0", b"more 1"]


def test_overwritten_between_runs(file):
    """Another file under the same name is read anew, left out, or fails the run, as a file that was read whole."""
    old = put(file)
    for policy in ("reread", "ignore", "fail"):
        put(file)
        harness = half_read(file)
        known = len(harness.values())
        fresh = put(file, first=1000, lines=150)
        if policy == "fail":
            with pytest.raises(SourceError, match="overwritten"):
                harness.run(files__overwrite__policy=policy)
            continue
        harness.run(files__overwrite__policy=policy)
        assert sorted(set(harness.values()) - set(old)) == (fresh if policy == "reread" else [])
        assert len(harness.values()) == known + (len(fresh) if policy == "reread" else 0)


def test_overwritten_while_it_is_read(file):
    """A part that finds another file has all of it begun anew, in the same run."""
    old = put(file)
    harness = harness_of(file, transaction__boundary__max__records="10")
    fresh = []

    class Overwriting(MemoryWriter):
        def commit(self, offsets, counted):
            super().commit(offsets, counted)
            if not fresh:
                other = file.with_name(".other")
                fresh.extend(put(other, first=1000, lines=120))
                other.rename(file)

    harness.writer = Overwriting
    harness.run()
    values = harness.values()
    assert sorted(set(values) - set(old)) == fresh
    assert len(values) == len(set(values))
    assert (offset(harness, file)["complete"], offset(harness, file)["recordCount"]) == (True, 120)


def test_a_compressed_file_is_read_whole(tmp_path):
    """Its first bytes say what it is, whatever its name."""
    file = tmp_path / "big"
    lines = [b"line %d" % (number * 7919) for number in range(3000)]
    file.write_bytes(gzip.compress(b"\n".join(lines)))
    harness = harness_of(file)
    harness.run()
    assert harness.values() == lines


def test_a_file_that_is_done_is_cleaned_up(file):
    """Once all parts are joined, and not before."""
    expected = put(file)
    harness = half_read(file, files__cleanup="delete")
    assert file.exists()
    harness.run()
    assert sorted(harness.values()) == expected
    assert not file.exists()
