"""What is public is said to be, and nothing is imported under a name that belongs to others."""

import ast
import importlib
import json
import subprocess
import sys

import pytest

BARE = {"framework", "offsets", "transformers", "converters", "sources", "sinks", "_root"}
HEAVY = {"pyspark", "boto3", "botocore", "confluent_kafka", "moto", "pytest", "pyarrow", "fastavro", "nats", "redis"}
LIST_MODULES = "import json; print(json.dumps(sorted(sys.modules)))"
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
SHOW_HELP = """
import sys
from headrace.framework.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""


def is_public(module):
    return not any(part.startswith("_") for part in module.split("."))


def modules_after(program, *arguments):
    """The names in sys.modules when `program` has run in a Python of its own."""
    answer = subprocess.run(
        [sys.executable, "-P", "-c", f"{program}\n{LIST_MODULES}", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_every_public_module_lists_its_names(modules):
    """A public module that defines anything has an `__all__` that exists and leaves no function or class out."""
    faults = []
    for name, path in modules.items():
        body = ast.parse(path.read_text()).body
        if not is_public(name) or all(isinstance(statement, ast.Expr) for statement in body):
            continue
        module = importlib.import_module(name)
        listed = set(getattr(module, "__all__", ()))
        defined = {
            statement.name
            for statement in body
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not statement.name.startswith("_")
        }
        if not listed:
            faults.append(f"{name} has no __all__")
        faults += [f"{name}.{missing} is public and not in __all__" for missing in sorted(defined - listed)]
        faults += [
            f"{name}.__all__ has {ghost}, which is not there" for ghost in sorted(listed) if not hasattr(module, ghost)
        ]
    assert faults == []


def test_nothing_is_imported_under_a_bare_name(modules):
    """Importing everything leaves no `framework`, `transformers` and so on in sys.modules, here or in a new Python."""
    found = modules_after(IMPORT_ALL, *modules)
    assert "headrace.framework" in found
    assert found & BARE == set()
    assert set(sys.modules) & BARE == set()


def test_importing_headrace_is_light():
    """`import headrace` brings no Spark, no boto3 and no confluent_kafka with it."""
    assert modules_after("import sys, headrace") & HEAVY == set()


def test_importing_any_module_is_light(modules):
    """Whatever module is imported, the heavy dependencies wait until they are used (what pytest loads has pytest).

    The rooms of Spark and of Kafka are entered when they are used, and have theirs at the door.
    """
    rooms_of_their_own = ("headrace.framework.spark", "headrace.offsets.kafka", "headrace.sinks.kafka.")
    for_pytest = {"headrace.testing.plugin", "headrace.testing.conformance"}
    names = [name for name in modules if name not in for_pytest and not name.startswith(rooms_of_their_own)]
    assert modules_after(IMPORT_ALL, *names) & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], ["kafka", "--help"]])
def test_asking_for_help_is_light(arguments):
    """Help and version come without a heavy import and without rich."""
    assert modules_after(SHOW_HELP, *arguments) & (HEAVY | {"rich"}) == set()
