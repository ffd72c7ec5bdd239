"""`headrace plugins`: everything that can be named in a configuration."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from headrace import __version__
from headrace.framework.registry import Kind
from headrace.framework.registry import plugins as known_plugins
from headrace.sources.s3.config import S3Config


@pytest.fixture
def run(tmp_path):
    def run(*arguments, code="from headrace.framework.cli import main; main()"):
        return subprocess.run(
            [sys.executable, "-P", "-c", code, "plugins", *arguments],
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )

    return run


def third_party(folder, *, module):
    """A package of somebody's in `folder`, with an entry point and a source that declares a key."""
    info = folder / "acme_sources-4.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sources\nVersion: 4.2\n")
    (info / "entry_points.txt").write_text("[headrace.sources]\nwell = acme_well:Well\n")
    (folder / "acme_well.py").write_text(module)


WELL = """
import attrs
from headrace.framework.config import SourceCommonConfig, integer, option
from headrace.framework.task import AbstractSourceTask

@attrs.frozen(kw_only=True)
class WellConfig(SourceCommonConfig):
    depth: int = option("well.depth", integer(at_least=1), default=7, doc="How deep it is.")

class Well(AbstractSourceTask):
    config_class = WellConfig
"""


def test_every_plugin_is_there(run):
    """Every plugin of every kind is in the document, with kind, name, version and class."""
    document = json.loads(run("--output", "json").stdout)
    found = {(one["kind"], one["name"], one["version"], one["target"]) for one in document["plugins"]}
    assert found == {
        (kind.removesuffix("s"), one.name, __version__, one.target)
        for kind in Kind
        for one in known_plugins(kind)
        if one.distribution == "headrace"
    }


def test_the_keys_of_a_source(run):
    """A source's own keys come with kind, default and meaning; those of every source once."""
    document = json.loads(run("--output", "json").stdout)
    s3 = next(one for one in document["plugins"] if one["name"] == "s3")
    common = {key["key"] for key in document["common_keys"]}
    assert {key["key"] for key in s3["keys"]} == {option.key for option in S3Config.options()} - common
    page_size = next(key for key in s3["keys"] if key["key"] == "aws.s3.fetch.page.size")
    assert (page_size["type"], page_size["required"], page_size["default"]) == (
        "whole number, at least 1",
        False,
        "1000",
    )
    assert page_size["doc"].startswith("How many objects")
    assert {"name", "tasks.max", "bootstrap.servers"} <= common


def test_a_package_of_somebody_elses(run, tmp_path):
    """A plugin that another package brings is listed with that package's version and its keys."""
    third_party(tmp_path, module=WELL)
    well = next(one for one in json.loads(run("--output", "json").stdout)["plugins"] if one["name"] == "well")
    assert (well["kind"], well["distribution"], well["version"]) == ("source", "acme-sources", "4.2")
    assert [(key["key"], key["default"]) for key in well["keys"]] == [("well.depth", "7")]


def test_a_plugin_that_cannot_be_imported(run, tmp_path):
    """It is listed all the same, with the reason."""
    third_party(tmp_path, module="import pump_that_is_not_there")
    well = next(one for one in json.loads(run("--output", "json").stdout)["plugins"] if one["name"] == "well")
    assert "pump_that_is_not_there" in well["error"]
    assert "source well cannot be used" in run().stderr


def test_people_get_tables(run):
    """In a pipe the text is plain columns: plugins first, then the keys."""
    lines = run().stdout.splitlines()
    assert lines[0].split() == ["kind", "name", "version", "package", "class", "extra"]
    assert "keys of the source s3:" in lines
    assert any(line.startswith("aws.s3.bucket.name") and "required" in line for line in lines)
    assert lines.index("keys of every source:") > lines.index("keys of the source s3:")


def test_nothing_heavy_is_imported(run):
    """Listing plugins takes no Spark, no boto3, no Kafka client and no rich with it."""
    code = (
        "import sys\n"
        "from headrace.framework.cli import cli\n"
        "cli(standalone_mode=False)\n"
        "print(*({'pyspark', 'boto3', 'confluent_kafka', 'rich'} & set(sys.modules)), file=sys.stderr)\n"
    )
    assert run(code=code).stderr.strip() == ""


def test_a_terminal_gets_a_drawn_table(tmp_path):
    """On a terminal the same rows are drawn, with a head that stands out."""
    terminal, its_end = pty.openpty()
    seen = bytearray()
    command = [sys.executable, "-P", "-m", "headrace", "plugins"]
    environment = {"PATH": "", "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=its_end) as running:
        os.close(its_end)
        # A terminal whose last user has gone answers with an error on Linux, and with nothing elsewhere.
        with contextlib.suppress(OSError):
            while shown := os.read(terminal, 4096):
                seen += shown
    os.close(terminal)
    assert running.returncode == 0
    assert b"aws.s3.bucket.name" in seen
    assert b"\x1b[1mkind" in seen
