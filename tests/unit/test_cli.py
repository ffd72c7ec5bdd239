"""The command line: one line for every error, and exit codes that scripts can rely on."""

import os
import subprocess
import sys

import pytest


def headrace(*arguments, **env):
    """Run the command line in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "headrace", *arguments],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_the_commands():
    """`headrace --help` names every command with a line about it."""
    answer = headrace("--help")
    assert answer.returncode == 0
    listed = {
        line.split()[0]: line.split()[1:] for line in answer.stdout.partition("Commands:")[2].splitlines() if line
    }
    assert listed.keys() == {"demo", "dlq", "kafka", "offsets", "plan", "plugins", "run", "validate"}
    assert listed["demo"][:3] == ["The", "main", "job"]


@pytest.mark.parametrize("arguments", [["no-such-command"], ["--no-such-option"], ["kafka", "--port", "many"]])
def test_a_wrong_call_ends_with_2(arguments):
    """What is wrong without asking anybody ends with exit code 2 and no traceback."""
    answer = headrace(*arguments)
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


def test_an_error_of_ours_is_one_line(tmp_path):
    """An error that is foreseen ends with exit code 1 and one line that says what to do."""
    (tmp_path / "file").touch()
    answer = headrace("kafka", "--port", "0", HEADRACE_CACHE=str(tmp_path / "file" / "below"))
    assert answer.returncode == 1
    assert answer.stdout == ""
    _, *said = answer.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith("headrace: ")
    assert said[0].endswith("name another folder in HEADRACE_CACHE")


def test_verbose_shows_where(tmp_path):
    """With --verbose the same error comes with its traceback."""
    (tmp_path / "file").touch()
    answer = headrace("--verbose", "kafka", "--port", "0", HEADRACE_CACHE=str(tmp_path / "file" / "below"))
    assert answer.returncode == 1
    assert "Traceback" in answer.stderr


def test_an_error_that_nobody_foresaw_is_one_line_too():
    """Any other error ends with exit code 1 and one line that names it and the way to its traceback."""
    program = (
        "import sys\n"
        "from headrace.framework import cli\n"
        "def fault(*_, **__):\n"
        "    raise ValueError('two\\nlines')\n"
        "cli.cli.main = fault\n"
        "cli.main()\n"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr == "headrace: ValueError: two lines (headrace --verbose shows where)\n"
