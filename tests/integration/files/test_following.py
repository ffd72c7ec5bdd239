"""Files that grow: followed by byte position, wherever they are rotated to."""

import contextlib
import os
import shutil

import pytest

from headrace.framework.errors import ConfigError, SinkError, SourceError
from headrace.testing.memory import MemoryWriter
from headrace.testing.split_harness import SplitHarness


@pytest.fixture
def log(tmp_path):
    """A log that is followed, with everything in its folder."""
    return tmp_path / "app.log"


@pytest.fixture
def harness(tmp_path):
    return SplitHarness(
        {
            "connector.class": "files",
            "files.paths": str(tmp_path / "*"),
            "files.follow": "true",
            "input.format": "text",
            "value.converter": "string",
        }
    )


def lines(first, last):
    """Lines that no other has, long enough to be told from each other."""
    return [f"line {number} {'.' * 20}".encode() for number in range(first, last)]


def append(path, content):
    with path.open("ab") as file:
        file.write(content if isinstance(content, bytes) else b"".join(line + b"\n" for line in content))


def rename(log, other):
    log.rename(log.with_name(other))


def copy_and_truncate(log, other):
    shutil.copyfile(log, log.with_name(other))
    os.truncate(log, 0)


EACH_LINE = {"transaction__boundary": "poll", "max__poll__records": "1"}

rotations = pytest.mark.parametrize("rotate", [rename, copy_and_truncate])


def test_what_is_added_is_read_once(log, harness):
    """Lines that are added during a run and between runs come out once, in their order."""
    append(log, lines(0, 10))
    harness.run()
    append(log, lines(10, 20))
    with harness.running() as run:
        run.until(lambda: len(harness.values()) == 20)
        append(log, lines(20, 30))
        run.until(lambda: len(harness.values()) == 30)
    assert harness.values() == lines(0, 30)
    assert harness.offset(filename=str(log))["position"] == log.stat().st_size


def test_a_last_line_waits_for_its_end(log, harness):
    """A line without its end is no record while its file is followed; with its end it is one, once."""
    append(log, b"whole\nha")
    harness.run()
    assert harness.values() == [b"whole"]
    assert harness.offset(filename=str(log))["position"] == len(b"whole\n")
    append(log, b"lf\n")
    harness.run()
    assert harness.values() == [b"whole", b"half"]


def test_an_idle_file_makes_no_work(log, harness):
    """A file that does not change is not read again, whether its last line has its end or not."""
    append(log, b"whole\nhalf")
    with harness.running() as run:
        run.until(harness.values)
        for _ in range(5):
            run.turn()
        rounds = harness.rounds
        for _ in range(10):
            run.turn()
    assert harness.rounds == rounds
    assert harness.values() == [b"whole"]


@rotations
def test_the_rest_of_a_rotated_file_is_read(log, harness, rotate):
    """What was added before a file was rotated, and what came after, is read once and in its order."""
    append(log, lines(0, 10))
    harness.run()
    append(log, lines(10, 15))
    rotate(log, "app.log.1")
    append(log, lines(20, 25))
    harness.run()
    append(log, lines(25, 30))
    harness.run()
    assert harness.values() == [*lines(0, 15), *lines(20, 30)]
    assert harness.offset(filename=str(log.with_name("app.log.1")))["complete"] is True


@rotations
def test_rotation_again_and_again(log, harness, rotate):
    """Files that move on at every rotation are known again under each of their names; nothing is lost or doubled."""
    for turn in range(6):
        append(log, lines(turn * 10, turn * 10 + 5))
        harness.run()
        append(log, lines(turn * 10 + 5, turn * 10 + 10))
        for number in range(turn, 0, -1):
            rename(log.with_name(f"app.log.{number}"), f"app.log.{number + 1}")
        rotate(log, "app.log.1")
        if turn % 2:
            harness.run()
    append(log, lines(60, 61))
    harness.run()
    harness.run()
    assert harness.values() == lines(0, 61)


@rotations
def test_rotation_out_of_the_pattern(log, harness, rotate):
    """A rotated file is read to its end also where nobody asked for files of its new name."""
    harness.props = {**harness.props, "files.paths": str(log)}
    append(log, lines(0, 5))
    harness.run()
    append(log, lines(5, 10))
    rotate(log, "app-2024-01-31.log")
    append(log, lines(10, 15))
    harness.run()
    assert harness.values() == lines(0, 15)


def test_a_renamed_file_whose_name_is_not_there_again_yet(log, harness):
    """What a program still writes into the file that was renamed is read, before there is a new one and after."""
    append(log, lines(0, 5))
    harness.run()
    append(log, lines(5, 8))
    rename(log, "app.log.1")
    harness.run()
    append(log.with_name("app.log.1"), lines(8, 10))
    harness.run()
    append(log, lines(10, 15))
    harness.run()
    assert harness.values() == lines(0, 15)


def test_a_copy_that_is_not_truncated_yet(log, harness):
    """A copy is not read as a file of its own, neither before its original is truncated nor after."""
    append(log, lines(0, 5))
    harness.run()
    append(log, lines(5, 8))
    shutil.copyfile(log, log.with_name("app.log.1"))
    harness.run()
    assert harness.values() == lines(0, 8)
    os.truncate(log, 0)
    append(log, lines(8, 10))
    harness.run()
    assert harness.values() == lines(0, 10)


def test_the_last_line_of_a_rotated_file_is_a_record(log, harness):
    """When a file is rotated its last line has waited long enough, and is a record without its end."""
    append(log, b"first line of all\nlast")
    harness.run()
    rename(log, "app.log.1")
    append(log, b"new\n")
    harness.run()
    assert harness.values() == [b"first line of all", b"last", b"new"]


def test_a_file_that_begins_like_another_is_one_of_its_own(log, harness):
    """Files of one family with the same first lines are all read, as soon as they differ."""
    append(log, [b"# a header that all files have", *lines(0, 5)])
    append(log.with_name("app2.log"), [b"# a header that all files have", *lines(5, 10)])
    harness.run()
    assert sorted(harness.values()) == sorted([b"# a header that all files have"] * 2 + lines(0, 10))


def test_a_rotated_file_with_a_header_is_not_taken_for_the_new_one(log, harness):
    """A new file with the same header is another file, also where only the header had been read of the old one."""
    append(log, [b"# header"])
    harness.run()
    append(log, lines(0, 5))
    rename(log, "app.log.1")
    append(log, [b"# header", *lines(5, 10)])
    harness.run()
    assert harness.values() == [b"# header", *lines(0, 5), b"# header", *lines(5, 10)]


def test_a_truncated_file_is_read_from_its_beginning(log, harness):
    """Where all was read, a file that is emptied and written anew is read from its beginning, and nothing is amiss."""
    append(log, lines(0, 10))
    harness.run()
    log.write_bytes(b"")
    harness.run()
    append(log, lines(10, 13))
    harness.run()
    assert harness.values() == lines(0, 13)
    assert harness.warnings == []


def test_what_was_seen_and_is_lost_fails_the_run(log, harness):
    """What was seen and not read when a file is truncated is named with its place; data.loss=continue says it once."""
    append(log, [*lines(0, 2), b"and more"])
    with log.open("ab") as file:
        file.write(b"unfinished")
    harness.run()
    log.write_bytes(b"new\n")
    with pytest.raises(SourceError, match=r"app\.log, byte \d+: .* 10 bytes before its end"):
        harness.run()
    harness.run(data__loss="continue")
    harness.run()
    assert harness.values() == [*lines(0, 2), b"and more", b"new"]
    assert len([word for word in harness.warnings if "10 bytes" in word]) == 1


def test_a_bounded_run_ends_where_the_file_ended(log, harness):
    """A run that ends reads a growing file to where it ended when the run began."""
    append(log, lines(0, 5))
    with harness._running({}, bounded=True) as run:
        assert run.host.wake.wait(30)
        run.host.work_off()
        append(log, lines(5, 10))
        run.until(lambda: run.is_over)
    assert harness.values() == lines(0, 5)
    harness.run()
    assert harness.values() == lines(0, 10)


class DyingWriter(MemoryWriter):
    """Dies before a commit, once the others before it were let pass."""

    left = 0

    def commit(self, offsets, counted):
        if not DyingWriter.left:
            raise SinkError("dead")
        DyingWriter.left -= 1
        super().commit(offsets, counted)


@rotations
@pytest.mark.parametrize("commits", range(4))
def test_a_crash_at_any_commit_of_a_rotation(log, harness, rotate, commits):
    """Whichever transaction is the last before a task dies, the next run reads the rest, once."""
    append(log, lines(0, 5))
    harness.run()
    append(log, lines(5, 10))
    rotate(log, "app.log.1")
    append(log, lines(10, 15))
    harness.writer, DyingWriter.left = DyingWriter, commits
    with contextlib.suppress(SinkError):
        harness.run(**EACH_LINE)
    assert DyingWriter.left == 0
    append(log, lines(15, 17))
    rotate(log, "app.log.2")
    append(log, lines(17, 20))
    harness.writer = MemoryWriter
    harness.run()
    assert sorted(harness.values()) == sorted(lines(0, 20))


def test_a_compressed_file_is_left_out(log, harness):
    """A rotated file that was compressed is not read a second time, and the summary says that it was left out."""
    import gzip

    append(log, lines(0, 5))
    harness.run()
    log.with_name("app.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.write_bytes(b"new\n")
    harness.run()
    assert harness.values() == [*lines(0, 5), b"new"]
    assert any("app.log.1.gz is left out" in word for word in harness.warnings)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"input.format": "bytes"}, "files.follow"),
        ({"files.paths": "memory://x"}, "files.follow"),
        ({"file.compression.type": "gzip"}, "files.follow"),
        ({"files.cleanup": "delete"}, "files.cleanup"),
    ],
)
def test_what_cannot_be_followed_is_refused(harness, changes, key):
    """What has no lines, no inode or no end to wait for is refused at the start, with the key."""
    harness.props = {**harness.props, **changes}
    with pytest.raises(ConfigError) as caught:
        harness.run()
    assert [fault.key for fault in caught.value.faults] == [key]


def test_progress_of_kafka_connect_is_gone_on_from(log, harness):
    """A position that Kafka Connect's file source has stored is where reading goes on."""
    from headrace.sources.files.entry import file_key

    append(log, lines(0, 10))
    harness.kafka.offsets.committed({file_key(str(log)): {"position": sum(len(line) + 1 for line in lines(0, 4))}})
    harness.run()
    assert harness.values() == lines(4, 10)
