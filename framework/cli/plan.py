"""`headrace plan`: what a run would read, without reading it into Kafka."""

from collections.abc import Mapping

import click

from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table
from headrace.framework.driver.planning import PlannedObject, WorkPlan, make_plan

__all__ = ["plan"]

SHOWN_OF_A_RECORD = 60


@click.command()
@config_command
@click.option(
    "--first", type=click.IntRange(min=0), default=10, show_default=True, help="Unread objects to open for a look."
)
def plan(*, props: Mapping[str, str], output: str, first: int) -> None:
    """Show the work list of a run: task, bytes, position and target topic of every object, and the next record.

    The source is listed once and compared with the committed offsets. Nothing is written, and a run goes on
    undisturbed. Exit code 1 if a record that was looked at is bad, or an object cannot be opened.
    """
    found = make_plan(props, first=first)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    if not found.topic_exists:
        click.echo("there is no offsets topic yet: nothing has been read, and a run makes the topic", err=True)
    if output == "json":
        for line in found.json_lines():
            click.echo(line)
    else:
        _print(found)
    for one in found.objects:
        if one.error:
            click.echo(f"headrace: {one.error}", err=True)
    if any(one.error for one in found.objects):
        raise SystemExit(1)


def _print(found: WorkPlan) -> None:
    if not found.is_listed:
        click.echo(f"{found.connector}: a plain task lists what it reads by itself, while it runs: nothing to show")
        return
    head = ("task", "bytes", "position", "topic", "object", "next record")
    print_table(
        head, [(one.task, one.bytes, _position(one), one.topic, _name(one), _record(one)) for one in found.objects]
    )
    totals = found.totals
    click.echo(
        f"\n{found.connector}: {totals['objects']} objects, {totals['complete']} complete, {totals['to_read']} to read "
        f"with {totals['bytes_to_read']} bytes"
    )
    click.echo(
        f"a run with --available-now makes about {totals['estimated_list_calls']} LIST and "
        f"{totals['estimated_get_calls']} GET requests; this look made {totals['list_calls']} and {totals['get_calls']}"
    )
    if totals["to_read"] > found.previews:
        click.echo(f"the next record is shown of {found.previews} of them; --first shows more")


def _name(one: PlannedObject) -> str:
    return f"{one.key} ({one.part})" if one.part else one.key


def _position(one: PlannedObject) -> str:
    if one.complete:
        return f"complete, {one.records_done} records"
    return f"record {one.records_done + 1}, byte {one.byte}"


def _record(one: PlannedObject) -> str | None:
    if one.error:
        return "see below"
    text = one.first_record
    return text if text is None or len(text) <= SHOWN_OF_A_RECORD else f"{text[:SHOWN_OF_A_RECORD]}..."
