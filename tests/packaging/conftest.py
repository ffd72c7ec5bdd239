"""The wheel as users get it, built once from the tracked files, and the blocks of the pages."""

import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self):
        """The commands of a console block, each with the output that the page shows below it."""
        found = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
        return found


def blocks_of(project, page):
    """The fenced blocks of a page at the root."""
    text = (project / page).read_text()
    return [
        Block(page, text[: fence.start()].count("\n") + 1, fence[1], fence[2])
        for fence in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.fixture(scope="session")
def blocks(project):
    """The blocks of one page, as a function of its name."""
    return lambda page: blocks_of(project, page)


@pytest.fixture(scope="session")
def copy_project(project):
    """Copies what git knows of, and what is about to be added, into a folder."""

    def copy(target):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=project,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (project / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / name, target / name)
        return target

    return copy


@pytest.fixture(scope="session")
def wheel(copy_project, tmp_path_factory):
    """The project's wheel, built from a copy, so that nothing left over in the checkout gets into it."""
    tree = copy_project(tmp_path_factory.mktemp("tree"))
    target = tmp_path_factory.mktemp("dist")
    answer = subprocess.run(
        [sys.executable, "-P", "-c", BUILD, str(target)], cwd=tree, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return next(target.glob("headrace-*.whl"))
