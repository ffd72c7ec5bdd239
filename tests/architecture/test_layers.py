"""Who may import whom: read from the imports, so that a short cut between two rooms does not pass unseen."""

import ast
from typing import NamedTuple

import pytest


class Import(NamedTuple):
    name: str
    for_types_only: bool


def imports_of(module, source, *, is_package=False):
    """Every absolute name that a module imports, `from` targets included, wherever in the module it does so."""
    tree = ast.parse(source)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    return [Import(name, id(node) in guarded) for node in ast.walk(tree) for name in _names(node, module, is_package)]


def _names(node, module, is_package):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            kept = parts[: len(parts) - node.level + is_package]
            base = ".".join([*kept, *([node.module] if node.module else [])])
        return [base, *(f"{base}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
        return [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
    return []


def below(name, *packages):
    """Whether a dotted name is one of `packages` or lies in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def inside(name, package):
    """Whether a dotted name lies in `package` and is not that package's own front."""
    return name.startswith(f"{package}.")


def is_base(name):
    """Whether a name is of a module that says what a kind of plugin promises."""
    return below(name, "headrace.transformers.base", "headrace.converters.base")


def may_use_confluent_kafka(module, name):
    of_schema_registry = below(module, "headrace.converters") and below(name, "confluent_kafka.schema_registry")
    return "kafka" in module.split(".") or below(module, "headrace.testing") or of_schema_registry


def faults_of(module, source, *, is_package=False):
    """What `module` imports and must not."""
    return sorted(
        {
            f"{module} imports {one.name}: {rule}"
            for one in imports_of(module, source, is_package=is_package)
            for rule in _broken_rules(module, one)
        }
    )


def _broken_rules(module, one):
    name = one.name
    concrete = ("headrace.sources", "headrace.sinks", "headrace.transformers", "headrace.converters")
    if below(module, "headrace.offsets", "headrace.transformers") and below(name, "headrace.sources", "pyspark"):
        yield "offsets and transformers know no source and no Spark"
    if below(name, "pyspark") and not one.for_types_only and not below(module, "headrace.framework.spark"):
        yield "only framework/spark imports pyspark"
    if below(name, "confluent_kafka") and not one.for_types_only and not may_use_confluent_kafka(module, name):
        yield "confluent_kafka belongs to modules called kafka and to the test kit"
    if below(module, "headrace.framework") and any(inside(name, package) for package in concrete) and not is_base(name):
        yield "the framework knows no concrete source, sink or format: the registry finds them"
    if below(name, "headrace.testing") and not below(module, "headrace.testing", "headrace.framework.cli"):
        yield "the test kit is for tests, demos and the command line"
    if inside(module, "headrace.sources") and inside(name, "headrace.sources"):
        own = ".".join(module.split(".")[:3])
        if not below(name, own):
            yield "a source reaches another one through the registry only"


def test_every_module_keeps_to_its_layer(modules):
    """No module of the package imports what its layer does not allow."""
    faults = [
        fault
        for name, path in modules.items()
        for fault in faults_of(name, path.read_text(), is_package=path.name == "__init__.py")
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("headrace.offsets.codec", "import pyspark.sql"),
        ("headrace.transformers.csv", "from headrace.sources.s3 import listing"),
        ("headrace.transformers.csv", "from ..sources import s3"),
        ("headrace.framework.worker.loop", "def f():\n    from pyspark import SparkContext"),
        ("headrace.framework.worker.loop", "import importlib\nimportlib.import_module('pyspark')"),
        ("headrace.offsets.manager", "from confluent_kafka import Consumer"),
        ("headrace.converters.json", "from confluent_kafka import Producer"),
        ("headrace.framework.registry", "from headrace.sources import s3"),
        ("headrace.framework.worker.loop", "from headrace.sinks.kafka import KafkaSink"),
        ("headrace.sinks.kafka.sink", "import headrace.testing.topics"),
        ("headrace.sources.s3.task", "from headrace.sources.files import globbing"),
        ("headrace.sources.s3.task", "from ..files import globbing"),
    ],
)
def test_a_short_cut_is_seen(module, line):
    """Each rule of the layers catches an import that breaks it, in whatever way it is written."""
    assert faults_of(module, line)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("headrace.framework.spark.coordinator", "from pyspark import SparkContext"),
        ("headrace.framework.task", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark"),
        ("headrace.offsets.kafka.reader", "from confluent_kafka import Consumer"),
        ("headrace.sinks.kafka", "from confluent_kafka import Producer"),
        ("headrace.converters.avro", "from confluent_kafka.schema_registry import SchemaRegistryClient"),
        ("headrace.sources.s3.task", "from . import listing\nfrom headrace.sources.s3.listing import list_objects"),
        ("headrace.framework.cli.demo", "from headrace.testing.kafka import EmbeddedKafka"),
    ],
)
def test_what_is_allowed_passes(module, line):
    """The rules do not forbid what the architecture allows."""
    assert faults_of(module, line) == []
