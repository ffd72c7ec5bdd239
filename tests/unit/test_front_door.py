"""`import headrace`: what it offers, and what it costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.framework import errors

PROMISED = {
    "AbstractSourceTask",
    "Backoff",
    "BackoffConfig",
    "Converter",
    "ObjectDistributionStrategy",
    "OffsetManager",
    "OffsetManagerEntry",
    "OffsetManagerKey",
    "RecordBatch",
    "RunSummary",
    "Schema",
    "SchemaAndValue",
    "Sink",
    "SourceCommonConfig",
    "SourceReader",
    "SourceRecord",
    "Split",
    "SplitEnumerator",
    "SplitSource",
    "StopRule",
    "TaskContext",
    "Transformer",
    "run",
    "start",
    *(name for name in errors.__all__ if name.endswith("Error")),
}


def test_what_is_promised_is_there():
    """Every promised name is offered."""
    assert set(headrace.__all__) >= PROMISED


@pytest.mark.parametrize("name", headrace.__all__)
def test_a_name_leads_somewhere(name):
    """Every name of `__all__` can be used, and is the same object each time."""
    assert getattr(headrace, name) is getattr(headrace, name)


def test_a_name_that_is_not_there():
    """Any other name is an AttributeError that names it."""
    with pytest.raises(AttributeError, match="'headrace' has no attribute 'SourceTsak'"):
        headrace.SourceTsak  # noqa: B018 - looking is the test


def test_editors_see_the_names():
    """What `dir` shows, and what type checkers are told, are the names of `__all__`."""
    tree = ast.parse(Path(headrace.__file__).read_text())
    for_checkers = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        for alias in statement.names
    }
    assert for_checkers | {"__version__"} == set(headrace.__all__)
    assert set(headrace.__all__) <= set(dir(headrace))


def test_importing_names_is_light():
    """The names that a task is written with bring no Spark, no boto3 and no Kafka client with them."""
    program = (
        "import sys\n"
        "from headrace import AbstractSourceTask, OffsetManagerEntry, RetriableError, RunSummary, SourceRecord, Split\n"
        "print(*({'pyspark', 'boto3', 'confluent_kafka'} & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""
