"""`headrace offsets`: the stored progress of a connector, looked at, explained and moved."""

import json
from collections.abc import Mapping

import click

from headrace.framework.cli.offsets_migrate import migrate_command
from headrace.framework.cli.offsets_move import export_command, import_command, set_command
from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table
from headrace.framework.driver.altering import OpenedConnector, explain, stored
from headrace.framework.source_offsets import Explanation
from headrace.offsets.body import write_body

__all__ = ["offsets"]

PASSED = {True: "yes", False: "NO", None: ""}


@click.group()
def offsets() -> None:
    """Show, explain, change or move how far a connector has read."""


offsets.add_command(set_command)
offsets.add_command(export_command)
offsets.add_command(import_command)
offsets.add_command(migrate_command)


@offsets.command("list")
@config_command
def _list(*, props: Mapping[str, str], output: str) -> None:
    """Show every entry of the connector.

    With --output json it is the body of Kafka Connect's REST API, {"offsets": [{"partition": ..., "offset": ...}]}.
    Nothing is written, and a run goes on undisturbed.
    """
    connector = OpenedConnector.of(props)
    found = stored(connector)
    if not found.there:
        _say_missing(connector)
    if found.rolled_up:
        click.echo(f"{found.rolled_up} more are finished and rolled up: headrace offsets explain knows each", err=True)
    if output == "json":
        click.echo(write_body(found.entries))
        return
    rows = [(_compact(partition), _compact(offset)) for partition, offset in found.entries]
    print_table(("partition", "offset"), rows)


@offsets.command("reset")
@config_command
@click.option("--force", is_flag=True, help="Also if the connector is not stopped: its run is ended.")
def _reset(*, props: Mapping[str, str], output: str, force: bool) -> None:
    """Forget every entry of the connector, so that its next run reads everything again.

    Refused unless its last run was stopped cleanly.
    """
    from headrace.offsets.kafka.reset import reset  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    count = reset(connector.settings, force=force)
    if count is None:
        _say_missing(connector)
    message = "The offsets for this connector have been reset successfully"
    if output == "json":
        click.echo(json.dumps({"message": message, "keys": count or 0}, indent=2))
        return
    click.echo(f"{connector.config.name}: {message}: {count or 0} keys removed")


@offsets.command("explain")
@config_command
@click.argument("name", metavar="OBJECT")
def _explain(*, props: Mapping[str, str], output: str, name: str) -> None:
    """Say why one object was read, will be, or will not: by its key, or as s3://bucket/key.

    It takes a look at the offsets and one request to the bucket. Nothing is written, and a run goes on undisturbed.
    """
    found, there = explain(props, name)
    if not there:
        click.echo("there is no offsets topic yet: nothing has been read", err=True)
    if output == "json":
        click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    _print_explanation(found)


def _print_explanation(found: Explanation) -> None:
    click.echo(f"{found.name}: {found.state.replace('_', ' ')}: {found.reason}\n")
    print_table(("", "passes", "why"), [(check.name, PASSED[check.passed], check.says) for check in found.checks])


def _say_missing(connector: OpenedConnector) -> None:
    settings = connector.settings
    click.echo(f"there is no topic {settings.offsets_topic} at {settings.bootstrap_servers}: no offsets", err=True)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
