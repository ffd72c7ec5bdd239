"""Run one program, and end it for certain when the process that asked for it ends.

    python -I -S guard.py [--remove FOLDER]... -- PROGRAM ARGUMENT...

A program of its own, started by `headrace.testing.processes`; it needs the standard library only. It writes the
program's process id to its standard output and then waits for the first of these:

- the program ends by itself: the guard ends with its exit code (128 + signal where a signal ended it);
- its standard input is closed, or its parent is gone (a `kill -9` closes a pipe, but a forked sibling may hold it
  open, so both are watched): the program's process group gets SIGTERM, and SIGKILL after ten seconds.

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

PATIENCE_S = 10.0
PARENT_CHECK_S = 0.5
PR_SET_PDEATHSIG = 1


def die_with_guard() -> None:
    """Ask the kernel to kill this process when the guard dies (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for_a_reason(program: "subprocess.Popen[bytes]", parent: int) -> None:
    """Return when the program has ended or the parent has no more use for it."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while program.poll() is None and os.getppid() == parent:
        ready, _, _ = select.select([0, woken], [], [], PARENT_CHECK_S)
        if 0 in ready and not os.read(0, 4096):
            return
        if woken in ready:
            os.read(woken, 4096)


def end(program: "subprocess.Popen[bytes]") -> None:
    """End the program and what it has started in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def main() -> int:
    """Guard the program named on the command line."""
    split = sys.argv.index("--")
    to_remove = sys.argv[2:split:2]
    # The one who started the guard waits for it, and a terminal's Ctrl-C is that one's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    program = subprocess.Popen(
        sys.argv[split + 1 :],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        start_new_session=True,
        preexec_fn=die_with_guard,  # noqa: PLW1509 - the guard has one thread
    )
    print(program.pid, flush=True)  # noqa: T201 - the answer to the one who asked
    wait_for_a_reason(program, parent)
    end(program)
    for folder in to_remove:
        shutil.rmtree(folder, ignore_errors=True)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


if __name__ == "__main__":
    sys.exit(main())
