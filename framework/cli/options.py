"""What the commands that take a configuration have in common."""

import functools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import click

from headrace.framework.cli.logs import set_up_logging
from headrace.framework.config_files import load
from headrace.framework.errors import ConfigError, Fault, HeadraceError

__all__ = ["config_command", "output_option", "print_invalid"]

LONGEST_VALUE = 80

output_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="What is printed."
)


def config_command(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `FILE...`, `--set`, `--output` and `--verbose`; the function gets `props` and `output`.

    `output` is "text" or "json". A `ConfigError`, of the files or of the function, is printed with every fault, as
    `--output` says, and ends the command with exit code 2. Any other error of ours ends it with its own exit code, and
    is one JSON document with its state and its message where `--output` asks for that.
    """

    @click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
    @click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Set a key; goes over the files.")
    @output_option
    @click.option("--verbose", is_flag=True, help="Log what is done, and show the traceback of an error.")
    @functools.wraps(command)
    def with_configuration(
        *, files: Sequence[str], assignments: Sequence[str], output: str, verbose: bool, **others: Any
    ) -> None:
        set_up_logging(verbose=verbose or "--verbose" in sys.argv)
        try:
            command(props=load(files, assignments), output=output, **others)
        except HeadraceError as error:
            if output == "text" and (verbose or not isinstance(error, ConfigError)):
                raise
            if isinstance(error, ConfigError):
                print_invalid(error, output)
            else:
                click.echo(json.dumps({"state": "FAILED", "error": str(error)}, indent=2))
            sys.exit(error.exit_code)

    return with_configuration


def print_invalid(error: ConfigError, output: str) -> None:
    """Every fault: as one JSON document on standard output, or as lines on standard error."""
    if output == "json":
        document = {"state": "INVALID", "errors": [attrs.asdict(fault) for fault in error.faults]}
        click.echo(json.dumps(document, indent=2))
        return
    count = len(error.faults)
    click.echo(f"headrace: {error.what} has {count} {'fault' if count == 1 else 'faults'}", err=True)
    for fault in error.faults:
        click.echo(f"  {_printable(_line(fault))}", err=True)


def _line(fault: Fault) -> str:
    if not fault.key:
        return fault.message
    if fault.value is None:
        return str(fault)
    value = fault.value if len(fault.value) <= LONGEST_VALUE else f"{fault.value[:LONGEST_VALUE]}..."
    return str(attrs.evolve(fault, key=f'{fault.key} = "{value}"'))


def _printable(line: str) -> str:
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in line
    )
