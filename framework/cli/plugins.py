"""`headrace plugins`: what can be named in a configuration, and which keys it brings."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from headrace.framework.cli.options import output_option
from headrace.framework.cli.tables import print_table
from headrace.framework.config import SourceCommonConfig
from headrace.framework.errors import PluginError
from headrace.framework.options import Option, Options
from headrace.framework.registry import Kind, Plugin, find
from headrace.framework.registry import plugins as known_plugins

__all__ = ["plugins"]


@click.command()
@output_option
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
def plugins(*, output: str, verbose: bool) -> None:  # noqa: ARG001 - main() looks at --verbose
    """Show every plugin of every kind, its version, and its keys with types, defaults and documentation.

    A plugin that cannot be imported is shown with the reason. The keys of every source come once, at the end.
    """
    found = [_described(plugin) for kind in Kind for plugin in known_plugins(kind)]
    common = [_key(option) for option in SourceCommonConfig.options()]
    if output == "json":
        click.echo(json.dumps({"plugins": found, "common_keys": common}, indent=2))
        return
    _print_plugins(found)
    for plugin in found:
        _print_keys(f"keys of the {plugin['kind']} {plugin['name']}", plugin["keys"])
    _print_keys("keys of every source", common)


def _described(plugin: Plugin) -> Mapping[str, Any]:
    keys: list[Mapping[str, Any]] = []
    problem: str | None = None
    try:
        keys = [_key(option) for option in _own_options(find(plugin.kind, plugin.name))]
    except PluginError as error:
        problem = "; ".join(fault.message for fault in error.faults)
    return {
        "kind": plugin.kind.removesuffix("s"),
        "name": plugin.name,
        "version": plugin.version,
        "distribution": plugin.distribution,
        "target": plugin.target,
        "extra": plugin.extra,
        "keys": keys,
        "error": problem,
    }


def _own_options(found: type[Any]) -> Iterator[Option]:
    config = getattr(found, "config_class", None)
    if not isinstance(config, type) or not issubclass(config, Options):
        return
    common = {option.key for option in SourceCommonConfig.options()}
    yield from (option for option in config.options() if option.key not in common)


def _key(option: Option) -> Mapping[str, Any]:
    return {
        "key": option.key,
        "type": option.parser.describe(),
        "required": option.required,
        "default": option.default,
        "doc": option.doc,
        "aliases": [*option.over, *option.aliases],
    }


def _print_plugins(found: list[Mapping[str, Any]]) -> None:
    head = ("kind", "name", "version", "package", "class", "extra")
    names = ("kind", "name", "version", "distribution", "target", "extra")
    print_table(head, [[plugin[name] for name in names] for plugin in found])
    for plugin in found:
        if plugin["error"]:
            click.echo(f"{plugin['kind']} {plugin['name']} cannot be used: {plugin['error']}", err=True)


def _print_keys(title: str, keys: list[Mapping[str, Any]]) -> None:
    if not keys:
        return
    click.echo(f"\n{title}:\n")
    rows = [(key["key"], key["type"], "required" if key["required"] else key["default"], key["doc"]) for key in keys]
    print_table(("key", "type", "default", "meaning"), rows)
