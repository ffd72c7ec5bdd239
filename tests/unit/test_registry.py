"""Plugins are found by name, whoever brings them, and what cannot be found says what to do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attr
import attrs
import pytest

import headrace
from headrace.framework.distribution import BalancedDistribution, ObjectHashDistribution, PartitionDistribution
from headrace.framework.errors import ConfigError, PluginError
from headrace.framework.registry import Kind, Plugin, find, plugins

ASK = """
import json, sys
from headrace.framework.errors import PluginError
from headrace.framework.registry import find, plugins

answers = []
for kind, name in json.load(sys.stdin):
    try:
        found = find(kind, name)
        answers.append([found.__module__, found.__qualname__])
    except PluginError as error:
        fault = error.faults[0]
        answers.append({"key": fault.key, "message": fault.message, "suggestion": fault.suggestion})
listed = [[one.kind, one.name, one.target, one.distribution, one.version, one.extra] for one in plugins("transformers")]
json.dump({"answers": answers, "listed": listed}, sys.stdout)
"""


def package(root, name, version, entry_points, modules):
    """Install a package by hand: what pip leaves behind, no more."""
    info = root / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    for module, text in modules.items():
        (root / f"{module}.py").write_text(text)
    return root


def ask(*questions, path):
    """What another process finds that has these folders on its path, too."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK],
        input=json.dumps(questions),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.fixture
def acme(tmp_path):
    return package(
        tmp_path / "acme",
        "acme-plugins",
        "1.2",
        "[headrace.transformers]\n"
        "acme = acme_plugins:Outer.AcmeTransformer\n"
        "needy = acme_needy:Needy [yaml, other]\n"
        "function = acme_plugins:function\n"
        "broken = acme_broken:Broken\n"
        "gone = acme_gone:Gone\n"
        "moved = acme_plugins:Moved\n"
        "whole = acme_plugins\n"
        "nonsense = ? !\n",
        {
            "acme_plugins": "class Outer:\n    class AcmeTransformer: pass\ndef function(): pass\n",
            "acme_needy": "import no_such_module_of_acmes\n",
            "acme_broken": "raise RuntimeError('not today\\nnor tomorrow')\n",
        },
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("balanced", BalancedDistribution),
        ("object_hash", ObjectHashDistribution),
        ("partition", PartitionDistribution),
    ],
)
def test_a_built_in_is_found_by_name(name, expected):
    """What Headrace brings is found by its name, whether the kind is given as such or as a word."""
    assert find(Kind.DISTRIBUTIONS, name) is expected
    assert find("distributions", name) is expected


def test_built_ins_are_listed_without_being_imported():
    """The list names what there is, with the extra that it needs, and the version of the package that brings it."""
    assert [plugin.name for plugin in plugins("sources")] == ["files", "redis", "s3"]
    assert plugins("sources")[-1] == Plugin(
        name="s3",
        kind=Kind.SOURCES,
        target="headrace.sources.s3:S3Source",
        distribution="headrace",
        version=headrace.__version__,
        extra="s3",
    )
    assert [plugin.name for plugin in plugins("transformers")] == [
        "avro", "bytes", "csv", "json", "jsonl", "parquet", "text",
    ]  # fmt: skip
    assert [plugin.name for plugin in plugins("converters")] == ["bytes", "json", "string"]
    assert [plugin.name for plugin in plugins("sinks")] == ["kafka"]
    assert plugins("transforms") == []


def test_an_unknown_name_lists_the_known_ones():
    """A name that nobody has is refused with those that there are, the extra that brings them, and the nearest."""
    with pytest.raises(PluginError, match=r"known are files, .*, s3 \(pip install 'headrace\[s3\]'\)") as caught:
        find("sources", "s33")

    (fault,) = caught.value.faults
    assert isinstance(caught.value, ConfigError)
    assert (fault.key, fault.value, fault.suggestion) == ("connector.class", "s33", "s3")
    assert "module:Class" in fault.message

    with pytest.raises(PluginError, match=r"key\.converter: there is no converter .* known are bytes, json, string;"):
        find("converters", "xml", key="key.converter")
    with pytest.raises(PluginError, match=r"transforms: there is no transform of this name; known are none yet;"):
        find("transforms", "flatten")


def test_an_unknown_kind_is_a_mistake_of_the_caller():
    """Kinds are not configured by anybody, so a wrong one is a plain error."""
    with pytest.raises(ValueError, match="engines"):
        find("engines", "x")


def test_a_third_partys_plugin_is_found_and_listed(acme):
    """A package that declares an entry point is found by its name, beside what Headrace brings."""
    told = ask(["transformers", "acme"], path=[acme])

    assert told["answers"] == [["acme_plugins", "Outer.AcmeTransformer"]]
    assert ["transformers", "acme", "acme_plugins:Outer.AcmeTransformer", "acme-plugins", "1.2", None] in told["listed"]
    assert ["transformers", "needy", "acme_needy:Needy", "acme-plugins", "1.2", "yaml"] in told["listed"]
    assert "text" in [name for _, name, *_ in told["listed"]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("needy", "needs no_such_module_of_acmes: pip install 'acme-plugins[yaml]'"),
        (
            "gone",
            "there is no module acme_gone, where acme_gone:Gone (acme-plugins 1.2) should be: install acme-plugins",
        ),
        ("moved", "acme_plugins:Moved (acme-plugins 1.2) cannot be loaded: module 'acme_plugins' has no attribute"),
        ("function", "acme_plugins:function (acme-plugins 1.2) is not a class"),
        ("broken", "acme_broken:Broken (acme-plugins 1.2) cannot be imported: RuntimeError: not today"),
        ("whole", "acme_plugins (acme-plugins 1.2) is not of the form module:Class"),
        ("nonsense", "?! (acme-plugins 1.2) is not of the form module:Class"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_says_why_and_whose_it_is(acme, name, message):
    """A plugin that is there and cannot be loaded is refused with its package, the reason and what to install."""
    (answer,) = ask(["transformers", name], path=[acme])["answers"]

    assert answer["key"] == "input.format"
    assert message in answer["message"]
    assert "\n" not in answer["message"]


def test_a_built_in_without_its_dependency_names_the_extra(tmp_path):
    """A source whose library is not installed says which extra brings it."""
    program = (
        "import json, sys\n"
        "sys.modules['boto3'] = None\n"
        "from headrace.framework import registry\n"
        "from headrace.framework.errors import PluginError\n"
        "registry._BUILT_IN[registry.Kind.SOURCES]['s3'] = ('needs_boto3:S3Source', 's3')\n"
        "try:\n"
        "    registry.find('sources', 's3')\n"
        "except PluginError as error:\n"
        "    print(error)\n"
    )
    (tmp_path / "needs_boto3.py").write_text("import boto3\n")

    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )

    assert "needs boto3: pip install 'headrace[s3]'" in done.stdout


def test_two_plugins_of_one_name_are_an_error_that_names_both(acme, tmp_path):
    """A name that two packages claim is nobody's, and the message says whose it would be; other names still work."""
    rival = package(
        tmp_path / "rival",
        "rival",
        "2.0",
        "[headrace.transformers]\nacme = rival:Rival\n",
        {"rival": "class Rival: pass\n"},
    )

    told = ask(["transformers", "acme"], ["distributions", "balanced"], path=[acme, rival])

    message = told["answers"][0]["message"]
    assert "2 plugins of the name 'acme'" in message
    assert "acme_plugins:Outer.AcmeTransformer (acme-plugins 1.2) and rival:Rival (rival 2.0)" in message
    assert told["answers"][1] == ["headrace.framework.distribution.balanced", "BalancedDistribution"]
    assert [name for _, name, *_ in told["listed"]].count("acme") == 2


def test_a_built_in_cannot_be_overridden(tmp_path):
    """A package that claims a name of Headrace's own is an error that names both, and not a silent replacement."""
    thief = package(
        tmp_path / "thief",
        "thief",
        "0.1",
        "[headrace.distributions]\nbalanced = thief:Thief\n",
        {"thief": "class Thief: pass\n"},
    )

    (answer,) = ask(["distributions", "balanced"], path=[thief])["answers"]

    assert answer["key"] == "distribution.type"
    assert f"balanced:BalancedDistribution (headrace {headrace.__version__})" in answer["message"]
    assert "thief:Thief (thief 0.1)" in answer["message"]


def test_a_source_may_be_named_by_its_place(tmp_path):
    """A task class needs no packaging: `module:Class` is enough for a source, and for nothing else."""
    (tmp_path / "my_task.py").write_text("class MyTask: pass\n")

    own, wrong, missing, other_kind = ask(
        ["sources", "my_task:MyTask"],
        ["sources", "my_task:YourTask"],
        ["sources", "your_task:YourTask"],
        ["transformers", "my_task:MyTask"],
        path=[tmp_path],
    )["answers"]

    assert own == ["my_task", "MyTask"]
    assert "my_task:YourTask cannot be loaded" in wrong["message"]
    assert (
        "there is no module your_task, where your_task:YourTask should be: put it on PYTHONPATH" in missing["message"]
    )
    assert "there is no transformer of this name" in other_kind["message"]


@pytest.mark.parametrize(
    ("kind", "java", "target"),
    [
        ("sources", "io.aiven.kafka.connect.s3.source.S3SourceConnector", "headrace.sources.s3:S3Source"),
        ("converters", "org.apache.kafka.connect.json.JsonConverter", "headrace.converters.json:JsonConverter"),
        (
            "converters",
            "org.apache.kafka.connect.storage.StringConverter",
            "headrace.converters.string:StringConverter",
        ),
        (
            "converters",
            "org.apache.kafka.connect.converters.ByteArrayConverter",
            "headrace.converters.bytes:BytesConverter",
        ),
    ],
)
def test_java_class_names_stand_for_ours(tmp_path, kind, java, target):
    """A configuration that comes from Kafka Connect names Java classes, and gets ours of the same meaning."""
    module, _, name = target.partition(":")
    program = (
        "import sys, types\n"
        f"module = types.ModuleType({module!r})\n"
        f"module.{name} = type({name!r}, (), {{}})\n"
        f"sys.modules[{module!r}] = module\n"
        "from headrace.framework.registry import find\n"
        f"assert find({kind!r}, {java!r}) is module.{name}\n"
    )

    subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, check=True)


def test_built_ins_are_found_without_metadata(tmp_path):
    """In a zip on an executor's path, where no package's metadata is, the built-ins are found all the same."""
    installed = Path(headrace.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "shipped"), "zip", installed.parent, installed.name)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for library in (attr, attrs):
        (libraries / library.__name__).symlink_to(Path(library.__file__).parent)
    program = (
        "import sys\n"
        f"sys.path[:0] = [{archive!r}, {str(libraries)!r}]\n"
        "from importlib import metadata\n"
        "from headrace.framework.registry import find, plugins\n"
        "assert not metadata.packages_distributions(), metadata.packages_distributions()\n"
        "print(find('distributions', 'balanced').__module__, len(plugins('converters')))\n"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    assert done.stdout.split() == ["headrace.framework.distribution.balanced", "3"]
