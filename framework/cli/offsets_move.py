"""`headrace offsets set`, `export` and `import`: entries in and out, in Kafka Connect's bodies."""

import json
from collections.abc import Callable, Mapping
from typing import TextIO

import click

from headrace.framework.cli.options import config_command
from headrace.framework.driver.altering import Altered, OpenedConnector, stored
from headrace.framework.errors import Fault, OffsetsBodyError
from headrace.offsets.body import read_rolled_up, write_body

__all__ = ["export_command", "import_command", "set_command"]

MESSAGE = "The offsets for this connector have been altered successfully"

force_option = click.option("--force", is_flag=True, help="Also if the connector is not stopped: its run is ended.")


def _body_option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        name,
        "body",
        type=click.File("r", encoding="utf-8"),
        default="-",
        metavar="PATH",
        help="The body; - is standard input.",
    )


@click.command("set")
@config_command
@_body_option("--body")
@force_option
def set_command(*, props: Mapping[str, str], output: str, body: TextIO, force: bool) -> None:
    """Store the entries of a body, and forget those whose offset is null; others stay as they are.

    The body is that of Kafka Connect's REST API, {"offsets": [{"partition": ..., "offset": ...}]}. All of it is stored,
    or none. Refused unless the connector's last run was stopped cleanly.
    """
    connector = OpenedConnector.of(props)
    text = body.read()
    entries = connector.read_entries(text)
    if read_rolled_up(text):
        raise OffsetsBodyError([Fault("rolledUp", None, "is for headrace offsets import, which replaces everything")])
    _say(connector, connector.alter(entries, force=force), output)


@click.command("import")
@config_command
@_body_option("--from")
@force_option
def import_command(*, props: Mapping[str, str], output: str, body: TextIO, force: bool) -> None:
    """Make the entries of a body, as export has written it, those of the connector: what it does not name is forgotten.

    All of it is stored, or none. Refused unless the connector's last run was stopped cleanly.
    """
    connector = OpenedConnector.of(props)
    text = body.read()
    entries, shards = connector.read_entries(text), read_rolled_up(text)
    _say(connector, connector.replace(entries, shards, force=force), output)


@click.command("export")
@config_command
@click.option(
    "--to",
    "target",
    type=click.File("w", encoding="utf-8", atomic=True),
    default="-",
    metavar="PATH",
    help="Where to; - is standard output.",
)
def export_command(*, props: Mapping[str, str], output: str, target: TextIO) -> None:
    """Write every entry of the connector as a body that import takes, whatever --output says.

    Nothing is changed, and a run goes on undisturbed; of one that goes on, each entry is as it was last committed.
    """
    connector = OpenedConnector.of(props)
    found = stored(connector)
    if not found.there:
        click.echo(f"there is no topic {connector.settings.offsets_topic}: no offsets", err=True)
    target.write(write_body(found.entries, found.shards) + "\n")
    del output


def _say(connector: OpenedConnector, done: Altered, output: str) -> None:
    for note in done.notes:
        click.echo(f"warning: {note}", err=True)
    if output == "json":
        document = {"message": MESSAGE, "stored": done.stored, "forgotten": done.forgotten, "warnings": [*done.notes]}
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"{connector.config.name}: {MESSAGE}: {done.stored} stored, {done.forgotten} forgotten")
