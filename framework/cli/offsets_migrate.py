"""`headrace offsets migrate`: a connector's progress from Kafka Connect, and back."""

import json
from collections.abc import Mapping

import click

from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table
from headrace.framework.driver.migrating import Migration, Moved, migrate, migrate_back
from headrace.framework.source_offsets import State

__all__ = ["migrate_command"]

SHOWN_OF_EACH = 10

MEANS = {
    State.COMPLETE: "read to the end: not read again",
    State.PARTIAL: "a run passes over these records, and reads what is behind them",
    State.UNSEEN: "a run reads it",
    State.CHANGED: "overwritten since: s3.overwrite.policy decides",
    State.LEFT_OUT: "in the bucket, and a run does not read it",
    State.FAILS: "overwritten since: it fails a run (s3.overwrite.policy)",
    State.OFFSETS_ONLY: "not in the bucket any more: its entry stays",
}


@click.command("migrate")
@config_command
@click.option("--apply/--dry-run", "apply", default=False, help="Write it down; without, it is only printed.")
@click.option(
    "--from-topic", metavar="TOPIC", help="Kafka Connect's offsets topic, where it is not the connector's here."
)
@click.option(
    "--connect-group", metavar="GROUP", help="Fence the tasks of Kafka Connect's workers of this group.id first."
)
@click.option(
    "--connect-tasks",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --connect-group: how many tasks the connector ever had there, if more than tasks.max here.",
)
@click.option("--count", is_flag=True, help="Open what was begun, and see whether it is at its end.")
@click.option("--to-connect", is_flag=True, help="The way back: write it so that Kafka Connect finds it.")
@click.option("--to-topic", metavar="TOPIC", help="With --to-connect: Kafka Connect's offsets topic, if it is another.")
@click.option("--force", is_flag=True, help="Also if the connector is not stopped here: its run is ended.")
def migrate_command(
    *,
    props: Mapping[str, str],
    output: str,
    apply: bool,
    from_topic: str | None,
    connect_group: str | None,
    connect_tasks: int | None,
    count: bool,
    to_connect: bool,
    to_topic: str | None,
    force: bool,
) -> None:
    """Take over a connector's progress from Kafka Connect: what was read there is not read again.

    Stop the connector there first, and keep its name. The offsets topic is read in full, both orders of each key, and
    compared with the bucket. With --apply each object gets one entry, with the version that is there now.
    """
    if to_connect and (from_topic or connect_group or count):
        raise click.UsageError(
            "--to-connect goes with --to-topic, and not with --from-topic, --connect-group or --count"
        )
    if connect_tasks and not connect_group:
        raise click.UsageError("--connect-tasks goes with --connect-group")
    if to_topic and not to_connect:
        raise click.UsageError("--to-topic goes with --to-connect")
    if to_connect:
        found = migrate_back(props, apply=apply, force=force, to_topic=to_topic)
    else:
        found = migrate(
            props,
            apply=apply,
            force=force,
            from_topic=from_topic,
            connect_group=connect_group,
            connect_tasks=connect_tasks or 0,
            count=count,
        )
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    if output == "json":
        click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    _print(found)


def _print(found: Migration) -> None:
    for state, count in found.totals.items():
        if count:
            click.echo(f"{count:>9} {state.replace('_', ' ')}: {MEANS[state]}")
    click.echo()
    print_table(("state", "records", "object"), [_row(piece) for piece in _first_of_each(found)])
    if len(found.pieces) > len(_first_of_each(found)):
        click.echo(f"... the first {SHOWN_OF_EACH} of each; --output json names all {len(found.pieces)}")
    click.echo()
    if not found.to_connect:
        _say_what_is_not_known(found)
    for name in found.fenced:
        click.echo(f"fenced: {name}")
    _say_what_is_written(found)


def _say_what_is_not_known(found: Migration) -> None:
    partial = found.totals[State.PARTIAL]
    if partial and not found.counted:
        click.echo(
            f"Kafka Connect does not say whether an object was read to its end: of {partial} it is not known. A run "
            "opens each of them once, passes over the records that went out, and knows it then; --count finds out now."
        )


def _say_what_is_written(found: Migration) -> None:
    if found.to_connect:
        what = f"{found.keys} records, each object under every order of its key"
    elif found.twins:
        what = f"{found.keys} records; {found.twins} second spellings of keys go"
    else:
        what = f"{found.keys} records"
    where = f"{found.from_topic} to {found.to_topic}" if found.from_topic != found.to_topic else found.to_topic
    if found.applied:
        click.echo(f"{found.connector}: written in one transaction, {where}: {what}")
        return
    click.echo(f"{found.connector}: nothing was written, --apply writes to {found.to_topic}: {what}")


def _first_of_each(found: Migration) -> list[Moved]:
    shown: list[Moved] = []
    for state in State:
        shown += [piece for piece in found.pieces if piece.state is state][:SHOWN_OF_EACH]
    return shown


def _row(piece: Moved) -> tuple[object, ...]:
    return piece.state.replace("_", " "), piece.records_done, piece.name
