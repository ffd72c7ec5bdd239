"""Whatever is added, rotated and read in whatever order: every line comes out once."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.framework.errors import SinkError
from headrace.testing.memory import MemoryWriter
from headrace.testing.split_harness import SplitHarness

ROTATED = 6


class Following(RuleBasedStateMachine):
    """A program that logs, a tool that rotates in either way, and a connector that runs now and then."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-following-"))
        self.log = self.folder / "app.log"
        self.written = []
        self.rotations = 0
        self.harness = SplitHarness(
            {
                "connector.class": "files",
                "files.paths": str(self.folder),
                "files.follow": "true",
                "input.format": "text",
                "value.converter": "string",
            }
        )

    @rule(count=st.integers(1, 4), padding=st.integers(0, 1200), header=st.booleans())
    def add(self, count, padding, header):
        """Lines of any length; some files begin with what all of those begin with."""
        with self.log.open("ab") as file:
            if header and file.tell() == 0:
                self.put(file, b"# a header")
            for _ in range(count):
                self.put(file, b"line %d %s" % (len(self.written), b"." * padding))

    def put(self, file, line):
        file.write(line + b"\n")
        self.written.append(line)

    def make_room(self):
        self.rotations += 1
        for number in range(self.rotations, 0, -1):
            older = self.folder / f"app.log.{number}"
            if older.exists():
                older.rename(self.folder / f"app.log.{number + 1}")

    @precondition(lambda self: self.log.exists() and self.rotations < ROTATED)
    @rule()
    def rename(self):
        """logrotate as it is."""
        self.make_room()
        self.log.rename(self.folder / "app.log.1")

    @precondition(lambda self: self.log.exists() and self.rotations < ROTATED)
    @rule(read_between=st.booleans())
    def copy_and_truncate(self, read_between):
        """logrotate with copytruncate, the connector looking on."""
        self.make_room()
        shutil.copyfile(self.log, self.folder / "app.log.1")
        if read_between:
            self.harness.run()
        os.truncate(self.log, 0)

    @rule()
    def read(self):
        self.harness.run()

    @rule(commits=st.integers(0, 4))
    def die(self, commits):
        """A task that dies before one of its commits."""
        left = iter([True] * commits)

        class DyingWriter(MemoryWriter):
            def commit(self, offsets, counted):
                if not next(left, False):
                    raise SinkError("dead")
                super().commit(offsets, counted)

        self.harness.writer = DyingWriter
        with contextlib.suppress(SinkError):
            self.harness.run(transaction__boundary="poll", max__poll__records="1")
        self.harness.writer = MemoryWriter

    @precondition(lambda self: self.rotations)
    @rule()
    def drop_the_oldest(self):
        """A tool that keeps so many files and no more; what was not read of them is not its affair, but ours here."""
        self.harness.run()
        oldest = max(self.folder.glob("app.log.*"), key=lambda path: int(path.suffix[1:]))
        oldest.unlink()
        self.rotations -= 1

    @invariant()
    def nothing_is_doubled(self):
        values = self.harness.values()
        assert all(values.count(value) <= self.written.count(value) for value in set(values))

    def teardown(self):
        self.harness.run()
        self.harness.run()
        assert sorted(self.harness.values()) == sorted(self.written)
        shutil.rmtree(self.folder)


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
