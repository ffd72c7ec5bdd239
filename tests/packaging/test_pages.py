"""What the pages show is what happens: every block of them and every example is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace

pytestmark = pytest.mark.xdist_group("kafka")

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
NEWCOMER_RUNS = {"make demo", "make test"}  # by tests/packaging/test_newcomer.py


def run(command, folder):
    """Run a command as a person would who has the package's environment at hand."""
    bins = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": bins}, capture_output=True, text=True, check=False
    )


def as_pattern(lines):
    """What a page shows as output, with `...` for whatever stands there; the output may go on after it."""
    return re.escape("\n".join(lines)).replace(re.escape("..."), "(?:.|\n)*?")


def test_every_block_is_run(blocks):
    """A block is of a kind that some test runs or draws nothing; make's targets exist, and no command is lost."""
    for page in PAGES:
        for block in blocks(page):
            place = f"{block.page}:{block.line}"
            assert block.language in {"python", "console", "properties", "text"}, place
            if block.language == "console":
                assert block.text.startswith("$ "), place
                if page != "README.md":
                    assert all(command.startswith("make ") for command, _ in block.commands), place
                for command, _ in block.commands:
                    if command.startswith("make "):
                        target = command.split()[1]
                        assert re.search(rf"^{target}:.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE), place


def test_configurations_are_valid(blocks, tmp_path):
    """Every configuration that the README shows is valid as it stands."""
    shown = [block for block in blocks("README.md") if block.language == "properties"]
    assert shown
    for block in shown:
        file = tmp_path / f"line_{block.line}.properties"
        file.write_text(block.text)
        answer = run([sys.executable, "-P", "-m", "headrace", "validate", str(file)], tmp_path)
        assert answer.returncode == 0, f"{block.page}:{block.line}\n{answer.stderr}"


def test_the_readme_is_what_the_newcomer_runs(blocks):
    """The make commands of the README are those that the test of a fresh clone runs."""
    shown = {
        command
        for block in blocks("README.md")
        if block.language == "console"
        for command, _ in block.commands
        if command.startswith("make ")
    }
    assert shown == NEWCOMER_RUNS


def test_python_blocks_run(blocks, tmp_path):
    """Every Python block of the README runs as it stands: as a program, or as a test if it is one."""
    programs = [block for block in blocks("README.md") if block.language == "python"]
    assert programs
    for block in programs:
        file = tmp_path / f"test_line_{block.line}.py"
        file.write_text(block.text)
        as_test = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path)]
        arguments = [*as_test, str(file)] if "def test_" in block.text else [str(file)]
        answer = run([sys.executable, "-P", *arguments], tmp_path)
        assert answer.returncode == 0, f"{block.page}:{block.line}\n{answer.stdout}{answer.stderr}"


def test_console_blocks_show_what_happens(blocks, tmp_path):
    """Every command of the README, but make's, succeeds and prints what the page shows below it."""
    sessions = [
        (block, command, shown)
        for block in blocks("README.md")
        if block.language == "console"
        for command, shown in block.commands
        if not command.startswith("make ")
    ]
    assert sessions
    for block, command, shown in sessions:
        answer = run(["/bin/sh", "-c", command], tmp_path)
        assert answer.returncode == 0, f"{block.page}:{block.line} $ {command}\n{answer.stderr}"
        assert re.match(as_pattern(shown), answer.stdout), f"{block.page}:{block.line} $ {command}\n{answer.stdout}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, tmp_path):
    """Each program in examples/ has a `main()`, and runs by itself with nothing said on standard error."""
    program = ROOT / "examples" / name
    assert "\ndef main() -> None:\n" in program.read_text()
    answer = run([sys.executable, "-P", str(program)], tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_there_are_examples():
    """The folder of examples is not empty, so the test above has something to run."""
    assert EXAMPLES


def test_links_lead_somewhere():
    """Every relative link of the pages leads to a file of the project."""
    dead = [
        f"{page}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text())
        if not (ROOT / target).exists()
    ]
    assert dead == []


def test_the_changelog_begins_with_this_version():
    """The newest entry of the changelog is that of the version that is being built."""
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == headrace.__version__
