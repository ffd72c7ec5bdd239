"""The wheel holds the whole tree and nothing else, works as a zip, and asks for what the contract says."""

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email.parser import Parser

import pytest
from packaging.requirements import Requirement

EXTRAS = {"spark", "s3", "avro", "parquet", "redis", "nats", "flink", "iggy", "amps", "schema-registry", "rest"}
IMPORT_FROM_ZIP = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
"""


@pytest.fixture(scope="module")
def names(wheel):
    """Every file in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel, names):
    """The wheel's metadata."""
    name = next(name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def requirements(metadata):
    """What the package asks for, extra by extra ("" for the package itself)."""
    found = {"": []} | {extra: [] for extra in metadata.get_all("Provides-Extra")}
    for text in metadata.get_all("Requires-Dist"):
        requirement = Requirement(text)
        marker = requirement.marker
        chosen = [extra for extra in found if extra and marker and f'extra == "{extra}"' in str(marker)]
        found[chosen[0] if chosen else ""].append(requirement)
    return found


def test_the_wheel_is_the_tree(names, modules, project):
    """Each module and data file of the package folders is in the wheel under its import name, and nothing else is."""
    packages = {path.parent: name for name, path in modules.items() if path.name == "__init__.py"}
    data = [
        path
        for folder in ("framework", "offsets", "transformers", "converters", "sources", "sinks")
        for path in (project / folder).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    ]
    expected = {f"{packages[path.parent].replace('.', '/')}/{path.name}" for path in [*modules.values(), *data]}
    assert "headrace/py.typed" in expected
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_no_file_is_twice_in_the_wheel(names):
    """The front door is `headrace` alone: there is no `headrace.framework._root` beside it."""
    assert [name for name in names if "_root" in name] == []


def test_every_folder_with_python_is_a_package(modules):
    """A folder without `__init__.py` would be left out of the wheel: there is none below the package folders."""
    assert [str(path) for path in modules.values() if not (path.parent / "__init__.py").exists()] == []


def test_every_module_imports_from_a_zip(wheel, modules, tmp_path):
    """The wheel renamed to .zip, as it is shipped to executors, serves every module."""
    zipped = shutil.copy(wheel, tmp_path / "headrace.zip")
    answer = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_FROM_ZIP, str(zipped), *modules],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


def test_the_command_and_the_plugin_are_registered(wheel, names):
    """The wheel brings the command `headrace` and the pytest plugin."""
    name = next(name for name in names if name.endswith(".dist-info/entry_points.txt"))
    parser = ConfigParser()
    with zipfile.ZipFile(wheel) as archive:
        parser.read_string(archive.read(name).decode())
    assert parser["console_scripts"]["headrace"] == "headrace.framework.cli:main"
    assert parser["pytest11"]["headrace"] == "headrace.testing.plugin"


def test_the_package_alone_is_small(requirements):
    """`pip install headrace` asks for five packages."""
    assert {one.name for one in requirements[""]} == {"attrs", "click", "confluent-kafka", "rich", "tenacity"}


def test_the_extras_are_those_of_the_contract(requirements):
    """Every extra that users were promised is there, and no other one."""
    assert set(requirements) == EXTRAS | {"", "all", "dev"}


def test_all_is_every_extra_but_amps(requirements):
    """`headrace[all]` is every extra for users but `amps`, whose client is not free."""
    (everything,) = requirements["all"]
    assert everything.name == "headrace"
    assert everything.extras == EXTRAS - {"amps"}


def test_every_requirement_has_a_lower_bound(requirements):
    """Each requirement says from which version on it was tested, which tox's `lowest` environment relies on."""
    unbounded = [
        str(one)
        for listed in requirements.values()
        for one in listed
        if one.name != "headrace" and not any(bound.operator == ">=" for bound in one.specifier)
    ]
    assert unbounded == []


def test_metadata_says_which_pythons(metadata):
    """The package refuses a Python that is older than 3.11, and shows the README as its description."""
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_payload().startswith("# Headrace")
