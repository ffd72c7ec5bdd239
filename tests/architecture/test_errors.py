"""One file of errors, drawn as it is, each of which survives the way from an executor to the driver."""

import ast
import inspect
import pickle
import re

import pytest

from headrace.framework import errors

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
]


def drawn(root, indent=""):
    """The lines of the tree below `root`, each class under its first base, in alphabetical order."""
    children = sorted((kind for kind in CLASSES if kind.__bases__[0] is root), key=lambda kind: kind.__name__)
    lines = []
    for child in children:
        last = child is children[-1]
        lines.append(f"{indent}{'└── ' if last else '├── '}{child.__name__}")
        lines += drawn(child, indent + ("    " if last else "│   "))
    return lines


def test_the_drawn_tree_is_the_class_tree():
    """The tree in the docstring of framework/errors.py is that of the classes."""
    tree = re.search(r"```text\n(.*?)\n```", errors.__doc__, re.DOTALL)[1].splitlines()
    assert tree == ["HeadraceError", *drawn(errors.HeadraceError)]


def test_every_error_has_one_root():
    """Catching `HeadraceError` catches every error of the file, and each of them is public."""
    assert all(issubclass(kind, errors.HeadraceError) for kind in CLASSES)
    assert {kind.__name__ for kind in CLASSES} == set(errors.__all__) - {"Fault", "Where"}


def test_errors_are_defined_nowhere_else(modules):
    """No other module derives a class from an exception (a simulated death is none: it is a `BaseException`)."""
    elsewhere = [
        f"{name}.{node.name}"
        for name, path in modules.items()
        if name != errors.__name__
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(re.search("Error$|(?<!Base)Exception$", ast.unparse(base)) for base in node.bases)
    ]
    assert elsewhere == []


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind):
    """Type, message, notes and attributes of an error are the same after pickling, also when it has a cause."""
    error = kind("the port is taken: choose another")
    error.add_note("seen on the way")
    error.__cause__ = OSError("deeper")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
    assert again.exit_code == error.exit_code != 0
