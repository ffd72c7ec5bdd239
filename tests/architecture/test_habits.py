"""Small modules, tests that say what they promise, and nothing in the files that belongs to somebody's machine."""

import ast
import re
import subprocess

MOST_LINES = 400
LONGER_FOR_A_REASON = {}  # import name: the reason
# Put together here, so that this file holds none of them itself.
FOREIGN_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("sonatype", "org"),
        ("npmjs", "org"),
        ("golang", "org"),
        ("docker", "io"),
    )
]
SETTINGS_OF_A_REGISTRY = [f"index{sign}url" for sign in "-_"]
PATH_OF_A_MACHINE = re.compile(r"(?<![\w.~/}-])/(?:home|root|work|srv|opt|tmp|Users)/[\w.]")


def text_files(project):
    """The tracked files, and the new ones that are about to be, as far as they are text."""
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, answer.stdout.split("\0")):
        path = project / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            yield name, content.decode()


def machine_words(text):
    """What a text says about registries and machines."""
    named = [word for word in (*FOREIGN_HOSTS, *SETTINGS_OF_A_REGISTRY) if word in text]
    return named + PATH_OF_A_MACHINE.findall(text)


def test_modules_stay_small(modules):
    """A module of more than 400 lines has its reason in the list here, and the list holds no others."""
    long = {name for name, path in modules.items() if len(path.read_text().splitlines()) > MOST_LINES}
    assert long == set(LONGER_FOR_A_REASON)


def test_every_test_says_what_it_promises(project):
    """Each test function has a docstring that ends its sentence."""
    silent = [
        f"{path.relative_to(project)}::{node.name}"
        for path in sorted((project / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test")
        and not (ast.get_docstring(node) or "").endswith(".")
    ]
    assert silent == []


def test_no_file_names_a_registry_or_a_machine(project):
    """No tracked file names a package registry's host, sets one up, or holds a path of somebody's machine."""
    found = {name: words for name, text in text_files(project) if (words := machine_words(text))}
    assert found == {}


def test_such_words_are_seen():
    """The search finds a host, a setting and a path where there is one, and leaves the paths of a Linux alone."""
    root = "/"
    assert machine_words(f"get it from https://{FOREIGN_HOSTS[0]}/simple")
    assert machine_words(f"{SETTINGS_OF_A_REGISTRY[0]}=here")
    assert machine_words(f"cd {root}home/jane")
    assert machine_words(f'"{root}tmp/x"')
    assert machine_words("#!/usr/bin/env bash; cat /etc/hosts; s3://bucket/home/x; make PYTHON=/where/it/is") == []


def test_there_is_no_second_kind_of_package(project):
    """The tests are no package: with an `__init__.py` among them pytest would import the tree a second time."""
    assert list((project / "tests").rglob("__init__.py")) == []
