"""Run one program, and end it for certain when the process that asked for it ends.

    python -I -S guard.py PARENT [--remove FOLDER]... -- PROGRAM ARGUMENT...

A program of its own, started by `headrace.testing.processes`; it needs the standard library only. It writes the
program's process id to its standard output and then waits for the first of these:

- the program ends by itself: the guard ends with its exit code (128 + signal where a signal ended it);
- its standard input says something or is closed, the process PARENT is no longer its parent (a `kill -9` closes a
  pipe, but a forked sibling may hold it open, so both are watched), or the guard itself gets SIGTERM: the program's
  process group gets SIGTERM, and SIGKILL after ten seconds.

On Linux the program also dies with the guard itself. The folders named by `--remove` are deleted at the end.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time

__all__ = ["main"]

PATIENCE_S = 10.0
PARENT_CHECK_S = 0.5
PR_SET_PDEATHSIG = 1


def _die_with_guard() -> None:
    """In the program's process: hear Ctrl-C again, and ask the kernel for a kill when the guard dies (Linux only)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _listen() -> int:
    """From now on the signals that matter can be read from the descriptor that is returned, each as one byte."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    # The one who started the guard waits for it, and a terminal's Ctrl-C is that one's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def _wait_for_a_reason(program: "subprocess.Popen[bytes]", parent: int, woken: int) -> None:
    """Return when the program has ended or nobody has more use for it."""
    while program.poll() is None and os.getppid() == parent:
        ready, _, _ = select.select([0, woken], [], [], PARENT_CHECK_S)
        if 0 in ready or (woken in ready and signal.SIGTERM in os.read(woken, 4096)):
            return


def _end(program: "subprocess.Popen[bytes]") -> None:
    """End the program and what it has started in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def _remove(folder: str) -> None:
    """Delete a folder into which what the program started may still write while it dies."""
    deadline = time.monotonic() + PATIENCE_S
    while os.path.lexists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.02)


def main() -> int:
    """Guard the program named on the command line."""
    split = sys.argv.index("--")
    parent, to_remove = int(sys.argv[1]), sys.argv[3:split:2]
    woken = _listen()
    program = subprocess.Popen(
        sys.argv[split + 1 :],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        start_new_session=True,
        preexec_fn=_die_with_guard,  # noqa: PLW1509 - the guard has one thread
    )
    with contextlib.suppress(BrokenPipeError):  # the one who asked may be gone by now
        os.write(sys.stdout.fileno(), b"%d\n" % program.pid)
    _wait_for_a_reason(program, parent, woken)
    _end(program)
    for folder in to_remove:
        _remove(folder)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


if __name__ == "__main__":
    sys.exit(main())
