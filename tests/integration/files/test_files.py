"""Files that are there as a whole: which are read, when they are done, and what becomes of them."""

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from headrace.framework.driver import stall
from headrace.framework.errors import ConfigError, DataError, RetriableError, SinkError, SourceError
from headrace.framework.stage import Stage
from headrace.sources.files import whole
from headrace.sources.files.fingerprint import fingerprint
from headrace.sources.files.system import LocalFiles
from headrace.sources.files.urls import UrlFiles
from headrace.sources.files.whole import HELD_BYTES
from headrace.testing.memory import MemoryWriter
from headrace.testing.split_harness import SplitHarness


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    return made


def harness_of(paths, **props):
    return SplitHarness(
        {
            "connector.class": "files",
            "files.paths": str(paths),
            "input.format": "text",
            "value.converter": "string",
            **{key.replace("__", "."): value for key, value in props.items()},
        }
    )


@pytest.fixture
def unprivileged():
    """A folder that everybody may see."""
    made = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextlib.contextmanager
def as_nobody():
    """For as long as the block lasts, permissions hold for root as well: this process is somebody without rights."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def put(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def refusing():
    """Registers a file system with a folder `in` and one `deep` in that, one of which answers with an error."""
    import fsspec
    from fsspec.asyn import AsyncFileSystem
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.spec import AbstractFileSystem

    files = MemoryFileSystem(skip_instance_cache=True)
    files.pipe({"/in/a.log": b"one\n", "/in/deep/b.log": b"two\n"})

    def register(broken, error, *, is_async):
        scheme = f"refusing-{uuid.uuid4().hex}"

        def listed(path, **options):
            if path.rstrip("/") == broken:
                raise error
            return files.ls(path, **options)

        class Place:
            protocol = scheme

            @classmethod
            def _strip_protocol(cls, path):
                return MemoryFileSystem._strip_protocol(path.removeprefix(f"{scheme}://"))

        class Async(Place, AsyncFileSystem):
            async def _ls(self, path, **options):
                return listed(path, **options)

            async def _info(self, path, **_options):
                return files.info(path)

        class Sync(Place, AbstractFileSystem):
            def ls(self, path, **options):
                return listed(path, **options)

            def info(self, path, **_options):
                return files.info(path)

        fsspec.register_implementation(scheme, Async if is_async else Sync)
        return scheme

    yield register
    files.rm("/", recursive=True)


def test_which_files_a_path_means(folder):
    """A directory means the files in it, hidden ones and folders left out; globs go deeper; each file is read once."""
    put(folder / "a.log", "a")
    put(folder / ".hidden", "hidden")
    put(folder / "deep" / "b.log", "b")
    put(folder / "deep" / "deeper" / "c.log", "c")
    put(folder / "d.txt", "d")
    expected = {
        f"{folder}": {b"a", b"d"},
        f"{folder}/": {b"a", b"d"},
        f"file://{folder}": {b"a", b"d"},
        f"{folder}/*.log": {b"a"},
        f"{folder}/**": {b"a", b"b", b"c", b"d"},
        f"{folder}/**/*.log, {folder}/a.log": {b"a", b"b", b"c"},
        f"{folder}/*/deeper": {b"c"},
        f"{folder}/*.none": set(),
    }
    for paths, values in expected.items():
        harness = harness_of(paths)
        harness.run()
        assert (paths, sorted(harness.values())) == (paths, sorted(values))


def test_a_relative_path_is_stored_as_an_absolute_one(folder, monkeypatch):
    """Where the run was started from is part of no name."""
    put(folder / "a.log", "a")
    monkeypatch.chdir(folder)
    harness = harness_of("a.log")
    harness.run()
    assert harness.offset(filename=str(folder / "a.log"))["complete"] is True


def test_a_last_line_without_its_end_is_a_record(folder):
    """Where files are not followed, what stands behind the last line's end is a record."""
    (folder / "a").write_bytes(b"one\ntwo")
    harness = harness_of(folder)
    harness.run()
    assert harness.values() == [b"one", b"two"]


@pytest.mark.parametrize("size", [HELD_BYTES - 1, HELD_BYTES, HELD_BYTES + 1])
def test_small_files_are_read_as_large_ones_are(folder, monkeypatch, size):
    """A file that is held as a whole has the records and the marks of one that is read piece by piece, and goes on."""
    looked, look = [], whole.LocalContent
    monkeypatch.setattr(whole, "LocalContent", lambda descriptor: looked.append(descriptor) or look(descriptor))
    content = b"".join(b"%015d\n" % number for number in range(HELD_BYTES // 16))[: size - 1] + b"\n"
    content += b"\n" * (size - len(content))
    (folder / "a").write_bytes(content)
    harness = harness_of(folder)
    harness.run()

    entry = harness.offset(filename=str(folder / "a"))
    assert harness.values() == content.splitlines()
    assert bool(looked) == (size > HELD_BYTES)
    assert (entry["position"], entry["size"], entry["complete"]) == (size, size, True)
    assert (entry["head"], entry["tail"]) == (fingerprint(content[:1024]), fingerprint(content[-1024:]))

    with (folder / "a").open("ab") as file:
        file.write(b"more\n")
    harness.run()
    assert harness.values() == [*content.splitlines(), b"more"]


def test_a_small_file_that_grows_while_it_is_opened_is_read_to_its_end(folder, monkeypatch):
    """What is written between the look at a file's size and its reading is neither lost nor doubled."""
    path = put(folder / "a", "one")
    hold, looked = whole._held, []

    def write_and_hold(found, descriptor):
        if not looked:
            looked.append(found.path)
            with path.open("a") as file:
                file.write("two\n")
        return hold(found, descriptor)

    monkeypatch.setattr(whole, "_held", write_and_hold)
    harness = harness_of(folder)
    harness.run()
    harness.run()

    assert looked
    assert harness.values() == [b"one", b"two"]


def test_compressed_files_are_read(folder):
    """A compressed file is read as what is in it, and is known again."""
    (folder / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    harness = harness_of(folder)
    harness.run()
    harness.run()
    assert harness.values() == [b"one", b"two"]


def test_lines_that_are_added_to_a_finished_file_are_read(folder):
    """A finished file that has grown is read on behind its end, and one that was only touched is not."""
    path = put(folder / "a", "one")
    harness = harness_of(folder)
    harness.run()
    os.utime(path)
    harness.run()
    with path.open("a") as file:
        file.write("two\n")
    harness.run()
    assert harness.values() == [b"one", b"two"]


def test_a_continuous_run_leaves_finished_files_alone(folder):
    """Discovery goes on, and nothing is opened that does not need to be."""
    put(folder / "a", "one")
    harness = harness_of(folder)
    with harness.running() as run:
        run.until(lambda: harness.values() == [b"one"])
        for _ in range(10):
            run.turn()
        put(folder / "b", "two")
        run.until(lambda: harness.values() == [b"one", b"two"])
    assert harness.rounds == 2


@pytest.mark.parametrize("tasks", ["1", "8"])
def test_one_listing_serves_all_tasks(folder, monkeypatch, tasks):
    """However many tasks there are, a bounded run lists each of its paths once, and a task lists nothing."""
    for number in range(16):
        put(folder / f"{number}.log", f"{number}")
    listed, find = [], LocalFiles.find

    def counted(system, pattern):
        listed.append(pattern)
        return find(system, pattern)

    monkeypatch.setattr(LocalFiles, "find", counted)
    paths = [f"{folder}/1*", f"{folder}/*.log"]
    harness = harness_of(",".join(paths), tasks__max=tasks)
    with harness._running({}, bounded=True) as run:
        run.until(lambda: run.is_over)
        calls = run.host.counted
    assert (listed, calls, harness.rounds, len(harness.values())) == (paths, {"files_list_calls": 1}, int(tasks), 16)


class TestCleanup:
    def test_files_are_deleted_when_they_are_committed(self, folder):
        """A bounded run deletes what it has committed before it ends; other files stay."""
        path, other = put(folder / "a.log", "one"), put(folder / "b.txt", "two")
        harness = harness_of(folder / "*.log", files__cleanup="delete")
        harness.run()
        assert harness.values() == [b"one"]
        assert (path.exists(), other.exists()) == (False, True)

    def test_files_are_archived_and_nothing_is_overwritten(self, folder):
        """A file moves to the archive under its name, or beside one that is there; the archive is never read."""
        archive = folder / "archive"
        put(archive / "a", "older")
        put(folder / "a", "one")
        harness = harness_of(folder / "**", files__cleanup="archive", files__archive=str(archive))
        harness.run()
        put(folder / "a", "two")
        harness.run()
        assert harness.values() == [b"one", b"two"]
        assert {path.name: path.read_text() for path in archive.iterdir()} == {
            "a": "older\n",
            "a.1": "one\n",
            "a.2": "two\n",
        }

    def test_what_an_earlier_run_finished_is_cleaned_up(self, folder):
        """A file that was committed by a run that died before it cleaned up is deleted by the next, and not read."""
        path = put(folder / "a", "one")
        harness_before = harness_of(folder)
        harness_before.run()
        harness = harness_of(folder, files__cleanup="delete")
        harness.kafka = harness_before.kafka
        harness.run()
        assert harness.values() == [b"one"]
        assert not path.exists()

    def test_nothing_is_cleaned_up_before_its_commit(self, folder):
        """A file whose last transaction did not happen stays where it is."""

        class Dead(MemoryWriter):
            def commit(self, _offsets, _counted):
                raise SinkError("dead")

        path = put(folder / "a", "one")
        harness = harness_of(folder, files__cleanup="delete")
        harness.writer = Dead
        with pytest.raises(SinkError):
            harness.run()
        assert path.exists()

    def test_a_file_that_was_overwritten_since_stays(self, folder):
        """What was not read is not cleaned up: another file of the name stays until it is committed itself."""
        path = put(folder / "a", "one")
        harness = harness_of(folder, files__cleanup="delete", files__overwrite__policy="ignore")
        before = harness_of(folder)
        before.run()
        harness.kafka = before.kafka
        put(path, "another one")
        harness.run()
        assert path.exists()

    def test_a_continuous_run_cleans_up_as_it_goes(self, folder):
        """In a run that goes on, a file goes soon after its commit, also one that comes again under its name."""
        harness = harness_of(folder, files__cleanup="delete")
        with harness.running() as run:
            for number in range(3):
                path = put(folder / "a", f"number {number}")
                run.until(lambda gone=path: not gone.exists())
        assert harness.values() == [b"number 0", b"number 1", b"number 2"]

    def test_what_cannot_be_cleaned_up_is_said_and_stays(self, folder, caplog):
        """A failure to clean up fails nobody: the run ends as it would have, and the log names the file once."""
        put(folder / "a", "one")
        blocked = put(folder.parent / "no-folder", "a file where the archive should be")
        harness = harness_of(folder, files__cleanup="archive", files__archive=str(blocked))
        harness.run()
        assert harness.values() == [b"one"]
        assert len([record for record in caplog.records if "the file stays" in record.message]) == 1

    @pytest.mark.parametrize(
        ("props", "key"),
        [
            ({"files.cleanup": "archive"}, "files.archive"),
            ({"files.archive": "/x"}, "files.archive"),
            ({"files.cleanup": "archive", "files.archive": "/x/*"}, "files.archive"),
            ({"files.cleanup": "archive", "files.archive": "memory://x"}, "files.archive"),
            ({"files.cleanup": "burn"}, "files.cleanup"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, folder, props, key):
        """Keys of the clean-up that do not fit together are faults, with the key to mend."""
        harness = harness_of(folder)
        harness.props = {**harness.props, **props}
        with pytest.raises(ConfigError) as caught:
            harness.run()
        assert [fault.key for fault in caught.value.faults] == [key]


class TestFaults:
    @pytest.mark.parametrize("name", ["missing", "missing/*.log", "missing/"])
    def test_a_missing_folder_is_named(self, folder, name):
        """A path that does not exist ends a run at its start, with its name."""
        with pytest.raises(SourceError, match=r"discover, test, .*missing.*: there is no such file or directory"):
            harness_of(f"{folder}/{name}").run()

    def test_a_file_to_come_is_waited_for_where_it_is_followed(self, folder):
        """A single file that is followed may come later; its folder must be there."""
        harness = harness_of(folder / "a.log", files__follow="true")
        with harness.running() as run:
            for _ in range(3):
                run.turn()
            put(folder / "a.log", "one")
            run.until(lambda: harness.values() == [b"one"])
        with pytest.raises(SourceError, match="no such file"):
            harness_of(folder / "none" / "a.log", files__follow="true").run()

    def test_a_folder_that_goes_is_waited_for(self, folder):
        """A folder that was there and is gone, as with a mount that is lost, is waited for."""
        put(folder / "a", "one")
        harness = harness_of(folder)
        with harness.running() as run:
            run.until(lambda: harness.values() == [b"one"])
            folder.rename(folder.with_name("away"))
            for _ in range(5):
                run.turn()
            folder.with_name("away").rename(folder)
            put(folder / "b", "two")
            run.until(lambda: harness.values() == [b"one", b"two"])

    def test_a_folder_that_is_waited_for_holds_up_no_other(self, folder, monkeypatch):
        """While one folder is lost it is named as what does not get on, and what comes into the others is read."""
        monkeypatch.setattr(stall, "SAY_AFTER_S", 0.0)
        put(folder / "a", "one")
        other = folder.with_name("other")
        put(other / "b", "two")
        harness = harness_of(f"{folder}/*, {other}")
        with harness.running() as run:
            run.until(lambda: len(harness.values()) == 2)
            folder.rename(folder.with_name("away"))
            run.until(lambda: run.host.stalled)
            put(other / "c", "three")
            run.until(lambda: b"three" in harness.values())
            assert [f"{folder}/*: the folder has gone" in word for word in run.host.stalled] == [True]
            folder.with_name("away").rename(folder)
            put(folder / "d", "four")
            run.until(lambda: b"four" in harness.values() and not run.host.stalled)
        assert sorted(harness.values()) == [b"four", b"one", b"three", b"two"]

    def test_a_file_that_vanishes_before_it_is_read(self, folder):
        """A file that was listed and is gone fails the run with its name, or is said with data.loss=continue."""
        for loss in ("fail", "continue"):
            path = put(folder / "a", "one")
            put(folder / "b", "two")
            harness = harness_of(folder, data__loss=loss)
            with harness._running({}, bounded=True) as run:
                assert run.host.wake.wait(30)
                run.host.work_off()
                path.unlink()
                if loss == "fail":
                    with pytest.raises(SourceError, match=r"read, .*, .*/a: there is no such file"):
                        run.until(lambda: run.is_over)
                else:
                    run.until(lambda: run.is_over)
                    assert harness.values() == [b"two"]
                    assert any("/a was deleted before" in word for word in harness.warnings)

    def test_a_file_that_is_overwritten_while_it_is_read_is_not_half_visible(self, folder):
        """With the object boundary nothing is kept of a file that is cut in the middle of a read: what is there is."""
        path = put(folder / "a", *(f"old {number} {'.' * 1000}" for number in range(5000)))

        class Overwriting(MemoryWriter):
            is_done = False

            def write(self, topic, key, values, **options):
                if not Overwriting.is_done:
                    Overwriting.is_done = True
                    put(path, "new 1", "new 2")
                super().write(topic, key, values, **options)

        harness = harness_of(folder, transaction__boundary="object")
        harness.writer = Overwriting
        harness.run()
        assert harness.values() == [b"new 1", b"new 2"]

    def test_a_bad_record_names_its_line(self, folder):
        """What cannot be decoded is named with file and line, after everything before it."""
        (folder / "a").write_bytes(b'{"n":1}\n\n{bad\n')
        harness = harness_of(folder, input__format="jsonl", value__converter="json")
        with pytest.raises(DataError, match=r"/a, line 3"):
            harness.run()
        assert harness.values() == [b'{"n":1}']

    def test_a_name_that_cannot_be_stored_is_left_out(self, folder):
        """A file whose name is no UTF-8 is left out with a word, and the others are read."""
        put(folder / "a", "one")
        (folder / os.fsdecode(b"\xff")).write_bytes(b"two\n")
        harness = harness_of(folder)
        harness.run()
        assert harness.values() == [b"one"]
        assert any("is not UTF-8" in word for word in harness.warnings)

    def test_special_files_are_passed_over(self, folder):
        """A pipe in a folder is no file, and nobody waits for what comes out of it."""
        put(folder / "a", "one")
        os.mkfifo(folder / "pipe")
        harness = harness_of(folder)
        harness.run()
        assert harness.values() == [b"one"]

    @pytest.mark.parametrize(("what", "stage"), [("in", "discover"), ("in/a", "read")])
    def test_what_may_not_be_read_ends_the_run(self, unprivileged, what, stage):
        """A folder or a file without permission ends a run with its stage and its name, and nothing is skipped."""
        put(unprivileged / "in" / "a", "one")
        (unprivileged / what).chmod(0)
        harness = harness_of(unprivileged / "in")
        with as_nobody(), pytest.raises(SourceError, match=rf"{stage}, .*{what}.*may not read it: allow that user"):
            harness.run()
        (unprivileged / what).chmod(0o755)
        harness.run()
        assert harness.values() == [b"one"]

    @pytest.mark.parametrize(
        ("paths", "what"),
        [
            ("in/*.log", "in"),
            ("in/**/*.log", "in"),
            ("in/*/b.log", "in"),
            ("in/**/*.log", "in/deep"),
            ("in/*/b.log", "in/deep"),
            ("in/*", "in/deep"),
            ("in/**", "in/deep"),
        ],
    )
    def test_a_glob_passes_over_no_folder(self, unprivileged, paths, what):
        """A folder that a glob goes into and may not see ends the run with that folder's name, and nothing is read."""
        put(unprivileged / "in" / "a.log", "one")
        put(unprivileged / "in" / "deep" / "b.log", "two")
        (unprivileged / what).chmod(0)
        harness = harness_of(unprivileged / paths)
        with as_nobody(), pytest.raises(SourceError, match=rf"discover, .*/{what}(/b.log)?: the user .* may not"):
            harness.run()
        (unprivileged / what).chmod(0o755)
        assert harness.values() == []
        harness.run()
        assert harness.values()

    def test_a_glob_in_what_is_no_folder_is_an_error(self, folder):
        """A glob that begins in a file is a mistake, and said to be one."""
        put(folder / "a", "one")
        with pytest.raises(SourceError, match=r"discover, .*/in/a: Not a directory: check files.paths"):
            harness_of(folder / "a" / "*").run()

    @pytest.mark.parametrize("paths", ["*/*.log", "**/*.log", "*", "**", "*/b.log"])
    def test_a_folder_that_goes_before_a_glob_gets_to_it_is_harmless(self, folder, monkeypatch, paths):
        """What was there when its folder was listed, and is not when it is looked into, has nothing in it."""
        put(folder / "deep" / "a.log", "one")
        put(folder / "away" / "b.log", "two")
        looked = os.scandir

        def scandir(path):
            if "away" in str(path):
                shutil.rmtree(folder / "away", ignore_errors=True)
            return looked(path)

        monkeypatch.setattr(os, "scandir", scandir)
        harness = harness_of(folder / paths)
        harness.run()
        assert harness.values() == ([] if paths == "*/b.log" else [b"one"])

    def test_a_link_in_a_circle_is_harmless(self, folder):
        """A link to a folder is a folder, and one that leads nowhere new ends somewhere."""
        put(folder / "deep" / "a.log", "one")
        (folder / "to-deep").symlink_to(folder / "deep")
        (folder / "itself").symlink_to(folder / "itself")
        harness = harness_of(f"{folder}/*/*.log")
        harness.run()
        assert harness.values() == [b"one", b"one"]

    def test_what_may_not_be_read_is_named(self, folder):
        """Missing permissions end the run with the file and the user, not with a traceback of the system's."""
        from headrace.framework.errors import Where
        from headrace.sources.files.failures import file_failures

        where = Where(stage=Stage.READ, object=str(folder))
        with pytest.raises(SourceError, match=r"read, .*/in: the user .* may not read it"), file_failures(where):
            raise PermissionError(13, "Permission denied")
        with pytest.raises(RetriableError, match="Stale"), file_failures(where):
            raise OSError(116, "Stale file handle")


class TestUrls:
    def test_files_behind_a_url(self):
        """What fsspec reaches is found by folder and by glob, read once, again when overwritten, and cleaned up."""
        import fsspec

        memory = fsspec.filesystem("memory")
        memory.pipe({"/in/a.log": b"one\n", "/in/.hidden": b"no\n", "/in/deep/b.log": b"two\n"})
        harness = harness_of("memory://in/**/*.log, memory://in")
        harness.run()
        harness.run()
        assert sorted(harness.values()) == [b"one", b"two"]
        assert harness.offset(filename="memory:///in/a.log")["complete"] is True
        memory.pipe("/in/a.log", b"another\n")
        harness.run(files__cleanup="archive", files__archive="memory://done")
        assert sorted(harness.values()) == [b"another", b"one", b"two"]
        assert sorted(memory.find("/")) == ["/done/a.log", "/done/b.log", "/in/.hidden"]
        memory.rm("/", recursive=True)

    @pytest.mark.parametrize("paths", ["nowhere/*.log", "nowhere/**", "nowhere/*/x", "nowhere"])
    def test_a_folder_that_is_not_there_is_named(self, paths):
        """A URL that does not exist, or in which a glob cannot begin, ends a run at its start."""
        with pytest.raises(SourceError, match=r"discover, test, memory://nowhere.*: there is no such file"):
            harness_of(f"memory://{paths}").run()

    def test_a_glob_that_matches_nothing_yet_is_no_error(self):
        """Where there is a folder and nothing that the glob means, there is nothing to read."""
        import fsspec

        memory = fsspec.filesystem("memory")
        memory.pipe("/in/a.txt", b"one\n")
        harness = harness_of("memory://in/*.log, memory://*.log, memory://in/**/b")
        harness.run()
        assert harness.values() == []
        memory.rm("/", recursive=True)

    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize("broken", ["/in", "/in/deep"])
    @pytest.mark.parametrize("paths", ["in/**/*.log", "in/*/*.log"])
    def test_a_glob_passes_over_no_folder(self, refusing, paths, broken, is_async):
        """A folder behind a URL that cannot be listed is an error with its name, not a folder without files."""
        scheme = refusing(broken, PermissionError(13, "Permission denied"), is_async=is_async)
        named = rf"discover, test, {scheme}:/+{broken[1:]}: the user .* may not read it"
        with pytest.raises(SourceError, match=named):
            harness_of(f"{scheme}://{paths}").run()
        scheme = refusing(broken, OSError(5, "Input/output error"), is_async=is_async)
        with pytest.raises(RetriableError, match="Input/output error"):
            list(UrlFiles().find(f"{scheme}://{paths}"))
        scheme = refusing("/in/deep", FileNotFoundError(2, "gone"), is_async=is_async)
        assert [found.path for found in UrlFiles().find(f"{scheme}://in/**/*.log")] == [f"{scheme}:///in/a.log"]

    @pytest.mark.parametrize("scheme", ["nowhere", "s3"])
    def test_a_url_that_nobody_can_open_is_refused(self, scheme):
        """A scheme that fsspec does not know, or whose package is missing, is a fault that says what to do."""
        with pytest.raises(ConfigError) as caught:
            harness_of(f"{scheme}://bucket/x").run()
        [fault] = caught.value.faults
        assert fault.key == "files.paths"
        assert scheme in fault.message

    def test_without_fsspec_local_paths_work(self, folder):
        """Only URLs need fsspec, and without it they say so."""
        put(folder / "a", "one")
        program = (
            "import sys; sys.modules['fsspec'] = None\n"
            "from headrace.sources.files.config import FilesConfig\n"
            "from headrace.framework.errors import ConfigError\n"
            "base = {'name': 'n', 'connector.class': 'files', 'bootstrap.servers': 'h:1'}\n"
            f"config = FilesConfig.from_props(base | {{'files.paths': {str(folder)!r}}})\n"
            "print([found.path for found in config.system(config.paths[0]).find(config.paths[0])])\n"
            "try:\n    FilesConfig.from_props(base | {'files.paths': 's3://x'})\n"
            "except ConfigError as error:\n    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
        assert str(folder / "a") in done.stdout
        assert "s3:// needs what is not installed: pip install fsspec" in done.stdout


ROWS = [{"n": number, "text": "x" * 500} for number in range(8000)]


def json_of(path):
    path.write_text(json.dumps(ROWS))


def csv_of(path):
    path.write_text("n,text\n" + "".join(f"{row['n']},{row['text']}\n" for row in ROWS))


def avro_of(path):
    import fastavro

    fields = [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, ROWS, sync_interval=50_000)


def parquet_of(path):
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(ROWS), path, row_group_size=200)


@pytest.mark.parametrize("write", [json_of, csv_of, avro_of, parquet_of])
def test_a_format_goes_on_where_a_dead_run_has_left_it(folder, write):
    """Whatever the format's place in a file is made of, it is stored: the rest follows, each record once."""

    class Dying(MemoryWriter):
        commits = 0

        def commit(self, offsets, counted):
            Dying.commits += 1
            if Dying.commits == 3:
                raise SinkError("dead")
            super().commit(offsets, counted)

    name = write.__name__.removesuffix("_of")
    write(folder / "rows")
    more = {"transaction__boundary": "poll", "max__poll__records": "1"}
    harness = harness_of(folder, input__format=name, value__converter="json", **more)
    writer, harness.writer = harness.writer, Dying
    with pytest.raises(SinkError):
        harness.run()
    before = harness.offset(filename=str(folder / "rows"))
    assert 0 < before["recordCount"] < len(ROWS)
    assert ("inside" in before) == (name in {"json", "avro"})
    harness.writer = writer
    harness.run()
    assert [int(json.loads(value)["n"]) for value in harness.values()] == list(range(len(ROWS)))


def test_a_file_that_unpacks_beyond_measure_is_refused(folder):
    """`max.decompression.ratio` holds for files as it does for objects."""
    (folder / "bomb.gz").write_bytes(gzip.compress((b" " * 999_999 + b"\n") * 80))
    with pytest.raises(DataError, match=r"max\.decompression\.ratio"):
        harness_of(folder, input__format="jsonl", max__decompression__ratio="100").run()
