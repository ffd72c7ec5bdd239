"""The command line: `headrace COMMAND`.

A command's module is imported when that command is run or asked for its help, so `headrace --help` stays quick.
Exit codes: 0 done; 1 it failed; 2 what is wrong without asking anybody; 130 after SIGINT, 143 after SIGTERM.
"""

import importlib
import sys

import click

from headrace.framework.compat import override
from headrace.framework.errors import HeadraceError

__all__ = ["cli", "main"]

COMMANDS = {
    "demo": ("headrace.framework.cli.demo:demo", "The main job end to end, on embedded parts."),
    "kafka": ("headrace.framework.cli.kafka:kafka", "A real single-node Kafka on loopback, for development."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is needed."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headrace")
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, *, verbose: bool) -> None:
    """Offset-managed source tasks on Spark, exactly once."""
    context.obj = {"verbose": verbose}


def main() -> None:
    """Run the command line; every error of ours ends in one line and its exit code."""
    try:
        cli(prog_name="headrace")
    except HeadraceError as error:
        if "--verbose" in sys.argv:
            raise
        click.echo(f"headrace: {error}", err=True)
        sys.exit(error.exit_code)
