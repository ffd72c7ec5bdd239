"""What the pages show is what happens: every block of them and every example is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
from confluent_kafka import Producer

import headrace
from headrace.framework.config_files import load
from headrace.framework.driver.altering import OpenedConnector
from headrace.testing import EmbeddedKafka, EmbeddedS3, create_topic

ROOT = Path(__file__).parents[2]
OFFSETS = "docs/offsets.md"
DEAD_LETTERS = "docs/dead-letters.md"
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


@pytest.fixture
def world_of_offsets():
    """What the page of offsets speaks of: three objects, and what Kafka Connect has stored of two of them.

    The page has names that nobody else may have, so the servers are its own.
    """
    with EmbeddedKafka() as kafka, EmbeddedS3() as s3:
        _fill(kafka.bootstrap_servers, s3.endpoint)
        yield {"KAFKA": kafka.bootstrap_servers, "S3": s3.endpoint}


def _fill(bootstrap_servers, endpoint):
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - anybody may come in
    )
    client.create_bucket(Bucket="orders")
    for number in (1, 2, 3):
        client.put_object(Bucket="orders", Key=f"2024/0{number}.jsonl", Body=b'{"n":1}\n{"n":2}\n{"n":3}\n')
    client.close()
    create_topic(bootstrap_servers, "orders")
    create_topic(bootstrap_servers, "connect-offsets", partitions=25, config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random"})
    for name, count in (("01", 3), ("02", 1)):
        key = f'["orders",{{"objectKey":"2024/{name}.jsonl","bucket":"orders"}}]'
        producer.produce("connect-offsets", f'{{"recordCount":{count}}}', key)
    producer.flush()


def test_the_page_of_offsets_is_a_session(blocks, tmp_path, monkeypatch, world_of_offsets):
    """Its configuration is valid, its bodies are taken, and its commands, one after the other, print what it shows."""
    for name, value in world_of_offsets.items():
        monkeypatch.setenv(name, value)
    found = {
        kind: [one for one in blocks(OFFSETS) if one.language == kind] for kind in ("properties", "json", "console")
    }
    (configuration,) = found["properties"]
    (tmp_path / "orders.properties").write_text(configuration.text)
    connector = OpenedConnector.of(load([str(tmp_path / "orders.properties")], []))
    assert [connector.read_entries(block.text) for block in found["json"]]
    for block in found["console"]:
        for command, shown in block.commands:
            answer = run(["/bin/sh", "-c", command], tmp_path)
            place = f"{block.page}:{block.line} $ {command}\n{answer.stdout}{answer.stderr}"
            assert answer.returncode == 0, place
            assert re.fullmatch(as_pattern(shown) + r"\s*", answer.stdout), place
    assert len(blocks(OFFSETS)) == sum(map(len, found.values()))


def test_the_page_of_dead_letters_is_a_session(blocks, tmp_path, monkeypatch):
    """Its configuration is valid, and its commands, one after the other, print what it shows."""
    (configuration,) = [one for one in blocks(DEAD_LETTERS) if one.language == "properties"]
    (tmp_path / "orders.properties").write_text(configuration.text)
    with EmbeddedKafka() as kafka:
        monkeypatch.setenv("KAFKA", kafka.bootstrap_servers)
        create_topic(kafka.bootstrap_servers, "orders")
        for block in blocks(DEAD_LETTERS):
            for command, shown in block.commands if block.language == "console" else ():
                answer = run(["/bin/sh", "-c", command], tmp_path)
                place = f"{block.page}:{block.line} $ {command}\n{answer.stdout}{answer.stderr}"
                assert answer.returncode == 0, place
                assert re.match(as_pattern(shown), answer.stdout), place


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
