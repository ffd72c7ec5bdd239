"""The command line: `headrace COMMAND`.

A command's module is imported when that command is run or asked for its help, so `headrace --help` stays quick.
Exit codes: 0 done; 1 it failed; 2 what is wrong without asking anybody; 130 after SIGINT, 143 after SIGTERM.
"""

import importlib
import signal
import sys

import click

from headrace.framework.compat import override
from headrace.framework.errors import HeadraceError

__all__ = ["cli", "main"]

COMMANDS = {
    "demo": ("headrace.framework.cli.demo:demo", "The main job end to end, on embedded parts."),
    "dlq": ("headrace.framework.cli.dlq:dlq", "The records that could not be sent, and sending them again."),
    "kafka": ("headrace.framework.cli.kafka:kafka", "A real single-node Kafka on loopback, for development."),
    "offsets": ("headrace.framework.cli.offsets:offsets", "The stored progress of a connector."),
    "plan": ("headrace.framework.cli.plan:plan", "What a run would read, without reading it into Kafka."),
    "plugins": ("headrace.framework.cli.plugins:plugins", "Every plugin, its version and its keys."),
    "run": ("headrace.framework.cli.run:run", "Run a connector."),
    "validate": ("headrace.framework.cli.validate:validate", "Every fault of a configuration at once."),
}


class _LazyGroup(click.Group):
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


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headrace")
@click.option("--verbose", is_flag=True, expose_value=False, help="Log what is done, and show tracebacks.")
def cli() -> None:
    """Offset-managed source tasks on Spark, exactly once."""


def main() -> None:
    """Run the command line: an error ends in one line and its exit code, a signal in a clean stop and its own.

    Both signals become a `SystemExit` wherever the command is, so whatever it holds in `with` blocks is closed.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        cli(prog_name="headrace")
    except Exception as error:
        if "--verbose" in sys.argv:
            raise
        ours = isinstance(error, HeadraceError)
        said = str(error) if ours else f"{type(error).__name__}: {error} (headrace --verbose shows where)"
        click.echo(f"headrace: {' '.join(said.split())}", err=True)
        sys.exit(error.exit_code if isinstance(error, HeadraceError) else 1)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
