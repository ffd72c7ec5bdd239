"""Programs under a guard end when they should, and leave nothing behind, however their starter ends."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from headrace.testing import GuardedProcess, free_port
from headrace.testing.processes import at_near_ends

SLEEP = ["/bin/sleep", "600"]
CONNECT = """
import socket, sys, time
with socket.socket() as asker:
    asker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    asker.bind(("127.0.0.1", int(sys.argv[1])))
    asker.connect(("127.0.0.1", int(sys.argv[2])))
    time.sleep(600)
"""
STARTER = """
import os, signal, sys, time
from pathlib import Path
from headrace.testing import GuardedProcess
folder = Path(sys.argv[1])
program = GuardedProcess(argv=["/bin/sleep", "600"], log=folder / "log", remove_at_end=[folder])
sibling = 0
if sys.argv[2] == "fork" and not (sibling := os.fork()):
    time.sleep(600)
print(program.pid, sibling, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path):
    """A folder that a program may take with it."""
    made = tmp_path / "its own"
    made.mkdir()
    return made


@pytest.fixture
def starter(folder):
    """Starts a Python that starts a guarded program, and gives both: with "fork" it also has a forked child."""
    running = []

    def start(kind):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", STARTER, str(folder), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        program, sibling = map(int, process.stdout.readline().split())
        running.extend([process.pid, *filter(None, [sibling])])
        return process, psutil.Process(program), sibling

    yield start
    for pid in running:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def close(process):
    process.stdin.close()
    process.stdout.close()
    process.wait()


def test_output_and_exit_code_are_kept(tmp_path):
    """What a program prints, on both of its outputs, is in the log, and its exit code can be asked for."""
    program = GuardedProcess(argv=["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], log=tmp_path / "log")
    assert program.wait() == program.returncode == 3
    assert program.output() == "out\nerr\n"
    assert program.tail(1) == "err"
    program.stop()


def test_a_program_that_a_signal_ended_says_which(tmp_path):
    """The exit code is 128 and the signal's number, as shells have it."""
    program = GuardedProcess(argv=SLEEP, log=tmp_path / "log")
    assert program.returncode is None
    program.kill()
    assert program.returncode == 128 + signal.SIGKILL
    program.stop()
    with GuardedProcess(argv=SLEEP, log=tmp_path / "log") as stopped:
        pass
    assert stopped.returncode == 128 + signal.SIGTERM


def test_a_signal_reaches_the_program(tmp_path):
    """A signal goes to the program, Ctrl-C's too, which the guard itself does not hear."""
    program = GuardedProcess(argv=SLEEP, log=tmp_path / "log")
    program.signal(signal.SIGINT)
    assert program.wait() == 128 + signal.SIGINT


def test_stop_ends_the_children_too(tmp_path, eventually):
    """What the program has started in its process group ends with it."""
    program = GuardedProcess(argv=["/bin/sh", "-c", "/bin/sleep 600 & echo $!; wait"], log=tmp_path / "log")
    child = psutil.Process(int(eventually(program.output)))
    program.stop()
    psutil.wait_procs([child])
    assert not child.is_running()


def test_its_last_words_outlive_its_folder(folder):
    """The log may lie in a folder that goes with the program, and can be read all the same."""
    program = GuardedProcess(
        argv=["/bin/sh", "-c", "echo why I died; exit 1"], log=folder / "log", remove_at_end=[folder]
    )
    program.wait()
    assert not folder.exists()
    assert program.tail() == "why I died"
    program.stop()


def test_a_program_that_cannot_be_started_is_named(tmp_path):
    """A missing program is an OSError that names it, not a process that never answers."""
    with pytest.raises(OSError, match="no-such-program could not be started"):
        GuardedProcess(argv=[tmp_path / "no-such-program"], log=tmp_path / "log")


@pytest.mark.parametrize("kind", ["alone", "fork"])
def test_kill_9_of_the_starter_ends_the_program(starter, folder, eventually, kind):
    """The program ends and its folder goes, also when a forked sibling of the starter still holds the pipe open."""
    process, program, sibling = starter(kind)
    process.kill()
    process.wait()
    psutil.wait_procs([program])
    eventually(lambda: not folder.exists())
    assert psutil.pid_exists(sibling) is bool(sibling)
    if sibling:
        os.kill(sibling, signal.SIGKILL)
    close(process)


def test_an_orderly_end_of_the_starter_ends_the_program(starter, folder, eventually):
    """A starter that forgets to stop the program and just ends leaves nothing behind either."""
    process, program, _ = starter("alone")
    close(process)
    psutil.wait_procs([program])
    eventually(lambda: not folder.exists())


def test_stop_does_not_wait_for_forked_siblings(tmp_path):
    """A child that was forked after the start, and so holds the pipe, does not keep `stop` from returning."""
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from headrace.testing import GuardedProcess\n"
        f"guarded = GuardedProcess(argv={SLEEP!r}, log=Path(sys.argv[1]))\n"
        "sibling = os.fork()\n"
        "if not sibling:\n"
        "    time.sleep(600)\n"
        "guarded.stop()\n"
        "os.kill(sibling, 9)\n"
        "print(guarded.returncode)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path / "log")], stdout=subprocess.PIPE, check=True
    )
    assert int(answer.stdout) == 128 + signal.SIGTERM


def test_a_guard_that_is_told_to_end_cleans_up(folder):
    """SIGTERM to the guard itself, as at a machine's shutdown, ends the program and removes its folder."""
    program = GuardedProcess(argv=SLEEP, log=folder / "log", remove_at_end=[folder])
    program._guard.terminate()
    program.wait()
    assert not psutil.pid_exists(program.pid)
    assert not folder.exists()
    program.stop()


@pytest.mark.slow
def test_a_deaf_program_is_ended_by_force(tmp_path, eventually):
    """A program that ignores SIGTERM is killed after a while."""
    program = GuardedProcess(
        argv=["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do /bin/sleep 1; done"], log=tmp_path / "log"
    )
    eventually(program.output)
    program.stop()
    assert program.returncode == 128 + signal.SIGKILL


def test_a_free_port_can_be_bound():
    """The port that is offered can be listened on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))


def test_who_has_made_a_connection_is_told_by_both_of_its_ports(tmp_path):
    """Another process that is connected from the same port to somewhere else is not the one."""
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.create_server(("127.0.0.1", 0)) as theirs:
        shared, here, there = free_port(), ours.getsockname()[1], theirs.getsockname()[1]
        connect = [sys.executable, "-c", CONNECT, str(shared), str(there)]
        with GuardedProcess(argv=connect, log=tmp_path / "log") as other, theirs.accept()[0], socket.socket() as asker:
            asker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            asker.bind(("127.0.0.1", shared))
            asker.connect(("127.0.0.1", here))

            assert at_near_ends({(shared, here)}) == {os.getpid()}
            assert at_near_ends({(shared, there)}) == {other.pid}
