"""`headrace validate`, as a person and as a program sees it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
GOOD = "name=orders\nconnector.class=numbers_task:Undeclared\nbootstrap.servers=127.0.0.1:1\n"
TASK = """
import attrs
from headrace.framework.config import SourceCommonConfig, integer, option
from headrace.framework.errors import ConfigError

@attrs.frozen(kw_only=True)
class NumbersConfig(SourceCommonConfig):
    count: int = option("numbers.count", integer(at_least=1), doc="How many.")

class Numbers:
    def configure(self, props):
        return NumbersConfig.from_props(props)

class Undeclared:
    def configure(self, props):
        return SourceCommonConfig.from_props(props)

class Careless:
    def configure(self, props):
        return int(props["numbers.count"])

class Picky:
    def configure(self, props):
        raise ConfigError("numbers are out")
"""


@pytest.fixture
def validate(tmp_path):
    (tmp_path / "good.properties").write_text(GOOD)
    (tmp_path / "numbers_task.py").write_text(TASK)

    def validate(*arguments):
        return subprocess.run(
            [sys.executable, "-P", "-m", "headrace", "validate", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    return validate


def test_valid(validate):
    """A valid configuration is one line and exit code 0."""
    done = validate("good.properties")
    assert (done.returncode, done.stdout, done.stderr) == (0, "orders: the configuration is valid\n", "")


def test_valid_with_warnings(validate):
    """Warnings go to standard error; with JSON they are in the one document."""
    done = validate("good.properties", "--set", "rest.port=1")
    assert done.returncode == 0
    assert done.stderr == "warning: rest.port has no effect here: a run has no REST server\n"
    done = validate("good.properties", "--set", "rest.port=1", "--output", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "state": "VALID",
        "warnings": ["rest.port has no effect here: a run has no REST server"],
    }


def test_every_fault(validate):
    """Every fault is a line with key, value, reason and the nearest key; exit code 2, and no traceback."""
    done = validate("good.properties", "--set", "task.max=4", "--set", "batch.max.ms=0", "--set", "my.password=pw")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "headrace: the configuration has 2 faults",
        '  task.max = "4": is unknown (did you mean tasks.max?)',
        '  batch.max.ms = "0": must be a whole number, at least 1',
    ]


def test_every_fault_as_json(validate):
    """With JSON the same is one document on standard output, secrets hidden."""
    done = validate("good.properties", "--output", "json", "--set", "task.max=4", "--set", "sasl.jaas.config=hunter2")
    assert (done.returncode, done.stderr) == (2, "")
    document = json.loads(done.stdout)
    assert document["state"] == "INVALID"
    assert document["errors"][0] == {
        "key": "task.max",
        "value": "4",
        "message": "is unknown",
        "suggestion": "tasks.max",
    }
    assert [(error["key"], error["value"]) for error in document["errors"][1:]] == [("sasl.jaas.config", "[hidden]")]
    assert "hunter2" not in done.stdout


def test_a_source_of_ones_own(validate):
    """The source's own `configure` says what is wrong with its keys, and the common keys are looked at with it."""
    own = ("good.properties", "--set", "connector.class=numbers_task:Numbers")
    assert validate(*own, "--set", "numbers.count=3").returncode == 0
    done = validate(*own, "--set", "number.count=3", "--set", "tasks.max=0")
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [
        "  numbers.count: is required: How many.",
        '  number.count = "3": is unknown (did you mean numbers.count?)',
        '  tasks.max = "0": must be a whole number, at least 1',
    ]


def test_a_source_that_stops_at_its_first_fault(validate):
    """It does not hide the faults of the common options; of other keys it knows better whether they are its own."""
    own = ("good.properties", "--set", "connector.class=numbers_task:Picky")
    done = validate(*own, "--set", "tasks.max=0", "--set", "split.size.bytes=its own", "--set", "topic=t")
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [
        "  numbers are out",
        '  tasks.max = "0": must be a whole number, at least 1',
    ]


@pytest.mark.parametrize("name", ["no_such_module:Numbers", "numbers_task:Nothing"])
def test_a_source_that_is_not_there(validate, name):
    """A class that cannot be imported is a fault of `connector.class`, beside all others."""
    done = validate("good.properties", "--set", f"connector.class={name}", "--set", "tasks.max=0", "--output", "json")
    assert done.returncode == 2
    assert {error["key"] for error in json.loads(done.stdout)["errors"]} == {"connector.class", "tasks.max"}


def test_a_file_that_is_not_there(validate):
    """A file that cannot be read is said by name, with exit code 2, with JSON as a document."""
    done = validate("gone.json")
    assert (done.returncode, "gone.json" in done.stderr) == (2, True)
    done = validate("gone.json", "--output", "json")
    assert json.loads(done.stdout)["errors"][0]["message"].startswith("gone.json: cannot be read")


def test_a_careless_source(validate):
    """A source whose `configure` raises anything else is a fault of `connector.class`, without its words."""
    done = validate("good.properties", "--set", "connector.class=numbers_task:Careless", "--set", "numbers.count=x")
    assert done.returncode == 2
    assert "ValueError" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("assignments", "key"),
    [
        (["distribution.type=partition"], "file.name.template"),
        (["file.name.template={{topic}}{{topic}}"], "file.name.template"),
        (["value.converter=json", "value.converter.decimal.format=octal"], "value.converter.decimal.format"),
        (["key.converter=json", "key.converter.schemas.enable=perhaps"], "key.converter.schemas.enable"),
        (["input.format=csv", "csv.header=perhaps"], "csv.header"),
        (["input.format=csv", "csv.heading=true"], "csv.heading"),
        (["input.format=parquet", "file.compression.type=gzip"], "file.compression.type"),
        (["input.format=avro", "max.record.bytes=-1"], "max.record.bytes"),
        (["transformer.max.buffer.size=9999999999"], "transformer.max.buffer.size"),
        (["value.converter=nobodys"], "value.converter"),
        (["connector.class=nobodys"], "connector.class"),
        (["connector.class="], "connector.class"),
    ],
)
def test_the_plugins_are_asked(validate, assignments, key):
    """Transformer, converters and distribution strategy say what is wrong with their own keys."""
    done = validate("good.properties", "--output", "json", *(word for one in assignments for word in ("--set", one)))
    assert [error["key"] for error in json.loads(done.stdout)["errors"]] == [key]


def test_the_files_of_a_running_kafka_connect(validate):
    """A worker's file and a connector's pass side by side as they are; only the source is another one here."""
    files = str(DATA / "connect-distributed.properties"), str(DATA / "s3-source-connector.json")
    done = validate(*files, "--set", "connector.class=numbers_task:Undeclared")
    assert done.stdout == "s3-orders: the configuration is valid\n"
    assert done.returncode == 0


def test_verbose(validate):
    """A traceback comes with --verbose, and only then."""
    assert "Traceback" in validate("good.properties", "--set", "tasks.max=0", "--verbose").stderr
    assert "Traceback" not in validate("good.properties", "--set", "tasks.max=0").stderr


def test_what_a_terminal_cannot_show(validate, tmp_path):
    """A value with control characters, half a character or a great length is one line all the same."""
    (tmp_path / "odd.json").write_text(json.dumps({"batch.max.ms": "\ud800\x1b[31m\n" + "x" * 500}))
    done = validate("good.properties", "odd.json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 300


def test_a_stock_worker_of_kafka_connect(validate, tmp_path):
    """The worker's file as Kafka ships it, whose converters write schemas by default, is valid as it is."""
    java = "org.apache.kafka.connect.json.JsonConverter"
    (tmp_path / "stock.properties").write_text(
        f"bootstrap.servers=localhost:9092\ngroup.id=connect-cluster\nkey.converter={java}\nvalue.converter={java}\n"
        "key.converter.schemas.enable=true\nvalue.converter.schemas.enable=true\n"
        "offset.storage.topic=connect-offsets\noffset.storage.replication.factor=1\nconfig.storage.topic=connect-configs\n"
        "config.storage.replication.factor=1\nstatus.storage.topic=connect-status\n"
        "status.storage.replication.factor=1\noffset.flush.interval.ms=10000\n"
    )
    done = validate(
        "stock.properties", str(DATA / "s3-source-connector.json"), "--set", "connector.class=numbers_task:Undeclared"
    )
    assert done.stdout == "s3-orders: the configuration is valid\n"
    assert done.returncode == 0
