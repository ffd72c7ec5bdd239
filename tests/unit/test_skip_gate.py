"""A skipped test is a hole in the net: the gate in tests/conftest.py shows each, and refuses it without a reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SUITE = """
import pytest

def test_that_passes():
    pass

@pytest.mark.skip(reason="for a mark")
def test_that_is_marked():
    pass

def test_that_skips_itself():
    pytest.skip("for itself")

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_expected_to_fail():
    raise AssertionError
"""
MODULE_LEVEL = 'import pytest\npytest.importorskip("no_such_module_anywhere")\n\ndef test_never_seen():\n    pass\n'


@pytest.fixture(params=["one process", "two workers"])
def run(request, tmp_path):
    """A pytest run on a suite of its own under the project's conftest."""

    def run_suite(*, allowed, **files):
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
        (tmp_path / "allowed_skips.txt").write_text(allowed)
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        workers = ["-n", "2"] if request.param == "two workers" else ["-p", "no:xdist"]
        return subprocess.run(
            [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *workers],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_suite


def test_skips_without_a_reason_fail_the_run(run):
    """A mark, a call and a skipped module each fail the run, each is named, and pytest's own line stays the last."""
    answer = run(allowed="", test_suite=SUITE, test_module=MODULE_LEVEL)
    assert answer.returncode == pytest.ExitCode.TESTS_FAILED
    assert "NOT ALLOWED: test_suite.py::test_that_is_marked: Skipped: for a mark" in answer.stdout
    assert "NOT ALLOWED: test_suite.py::test_that_skips_itself: Skipped: for itself" in answer.stdout
    assert "NOT ALLOWED: test_module.py: Skipped: could not import 'no_such_module_anywhere'" in answer.stdout
    assert "the run fails: 3 skipped" in answer.stdout
    assert "1 passed, 3 skipped, 1 xfailed" in answer.stdout.strip().splitlines()[-1]


def test_allowed_skips_are_printed_and_pass(run):
    """A skip that the list names with its reason is printed, and the run passes."""
    answer = run(allowed="# for people\ntest_suite.py::test_that_* they need a moon\n", test_suite=SUITE)
    assert answer.returncode == pytest.ExitCode.OK
    assert "allowed: test_suite.py::test_that_is_marked" in answer.stdout
    assert "NOT ALLOWED" not in answer.stdout


def test_an_entry_needs_its_reason(run):
    """A pattern alone is refused before a test runs."""
    answer = run(allowed="test_suite.py::*\n", test_suite=SUITE)
    assert answer.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no reason beside test_suite.py::*" in answer.stderr
