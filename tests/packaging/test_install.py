"""What `pip install` of the wheel gives in an environment that has nothing else."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

DISTRIBUTIONS = """
import json
from importlib.metadata import distributions
print(json.dumps({one.metadata["Name"].lower(): one.requires or [] for one in distributions()}))
"""


@pytest.fixture(scope="module")
def clean_environment(wheel, tmp_path_factory):
    """The bin folder of a new virtual environment into which only the wheel was installed."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    return folder / "bin"


def test_it_brings_the_five_and_what_they_need(clean_environment):
    """Everything that is installed is one of the five packages or needed by one of them."""
    answer = subprocess.run(
        [clean_environment / "python", "-c", DISTRIBUTIONS], capture_output=True, text=True, check=True
    )
    from packaging.requirements import Requirement

    needs = {name: [Requirement(text) for text in listed] for name, listed in json.loads(answer.stdout).items()}
    wanted, reached = ["headrace"], set()
    while wanted:
        name = wanted.pop()
        reached.add(name)
        wanted += [
            one.name.lower()
            for one in needs[name]
            if (one.marker is None or one.marker.evaluate({"extra": ""})) and one.name.lower() not in reached
        ]
    assert set(needs) - {"pip", "setuptools"} == reached
    assert {"attrs", "click", "confluent-kafka", "rich", "tenacity"} <= reached


def test_the_command_works(clean_environment):
    """`headrace --help` and `headrace --version` answer, and `import headrace` succeeds."""
    shown = subprocess.run([clean_environment / "headrace", "--help"], capture_output=True, text=True, check=True)
    assert "Commands:" in shown.stdout
    version = subprocess.run([clean_environment / "headrace", "--version"], capture_output=True, text=True, check=True)
    assert "0.1.0" in version.stdout
    subprocess.run([clean_environment / "python", "-P", "-c", "import headrace"], check=True)


def test_what_is_missing_is_named(clean_environment, tmp_path):
    """Without pyspark and without jars in the cache the broker's command says in one line which extra to install."""
    answer = subprocess.run(
        [clean_environment / "headrace", "kafka", "--port", "0"],
        env=os.environ | {"HEADRACE_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stdout == ""
    starting, *rest = answer.stderr.splitlines()
    assert starting.startswith("starting")
    assert len(rest) == 1
    assert "pyspark is not installed: pip install 'headrace[spark]'" in rest[0]
