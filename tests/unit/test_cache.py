"""Where things are kept once per user, and that two processes do not make them at once."""

import fcntl
import subprocess
import sys

import pytest

from headrace.framework.cache import cache_folder, locked
from headrace.framework.errors import CacheError

HOLD = """
import sys
from pathlib import Path
from headrace.framework.cache import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of our own, and no variable that says otherwise."""
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_folder_is_the_users(home):
    """Without a word it is ~/.cache/headrace, and it is there."""
    assert cache_folder() == home / ".cache" / "headrace"
    assert cache_folder().is_dir()


def test_xdg_and_headrace_say_otherwise(home, monkeypatch):
    """XDG_CACHE_HOME moves it, and HEADRACE_CACHE names it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert cache_folder() == home / "xdg" / "headrace"
    monkeypatch.setenv("HEADRACE_CACHE", str(home / "mine"))
    assert cache_folder() == home / "mine"


def test_a_folder_that_cannot_be_made_is_one_line(home, monkeypatch):
    """The error names the folder, the reason and the variable that helps."""
    (home / "file").touch()
    monkeypatch.setenv("HEADRACE_CACHE", str(home / "file" / "below"))
    with pytest.raises(CacheError, match=r"file/below cannot be made \(Not a directory\): .*HEADRACE_CACHE"):
        cache_folder()


def test_a_lock_keeps_other_processes_out(home):
    """While another process holds the lock it cannot be had, and when that process ends in whatever way it can."""
    path = home / "lock"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with path.open("w") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        other.kill()
        with locked(path):
            assert path.read_bytes() == b""
