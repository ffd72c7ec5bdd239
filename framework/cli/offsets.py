"""`headrace offsets`: the stored progress of a connector, looked at and forgotten."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from headrace.framework.check import check
from headrace.framework.cli.options import config_command
from headrace.framework.cli.tables import print_table

if TYPE_CHECKING:
    from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["offsets"]


@click.group()
def offsets() -> None:
    """Show or forget how far a connector has read."""


@offsets.command("list")
@config_command
def _list(*, props: Mapping[str, str], output: str) -> None:
    """Show every entry of the connector.

    With --output json it is the body of Kafka Connect's REST API, {"offsets": [{"partition": ..., "offset": ...}]}.
    Nothing is written, and a run goes on undisturbed.
    """
    from headrace.offsets.kafka.reading import read_view  # noqa: PLC0415 - Kafka comes in when it is used

    settings = _settings(props)
    view = read_view(settings)
    if view is None:
        _say_missing(settings)
    entries = (
        [] if view is None else _sorted((dict(sorted(key.mapping.items())), offset) for key, offset in view.items())
    )
    if output == "json":
        body = [{"partition": partition, "offset": offset} for partition, offset in entries]
        click.echo(json.dumps({"offsets": body}, indent=2))
        return
    rows = [(_compact(partition), _compact(offset)) for partition, offset in entries]
    print_table(("partition", "offset"), rows)


@offsets.command("reset")
@config_command
@click.option("--force", is_flag=True, help="Also if the connector is not stopped: its run is ended.")
def _reset(*, props: Mapping[str, str], output: str, force: bool) -> None:
    """Forget every entry of the connector, so that its next run reads everything again.

    Refused unless its last run was stopped cleanly.
    """
    from headrace.offsets.kafka.reset import reset  # noqa: PLC0415 - Kafka comes in when it is used

    settings = _settings(props)
    count = reset(settings, force=force)
    if count is None:
        _say_missing(settings)
    message = "The offsets for this connector have been reset successfully"
    if output == "json":
        click.echo(json.dumps({"message": message, "keys": count or 0}, indent=2))
        return
    click.echo(f"{settings.connector}: {message}: {count or 0} keys removed")


def _settings(props: Mapping[str, str]) -> "KafkaSettings":
    from headrace.offsets.kafka.settings import KafkaSettings  # noqa: PLC0415 - Kafka comes in when it is used

    return KafkaSettings.of(check(props))


def _say_missing(settings: "KafkaSettings") -> None:
    click.echo(f"there is no topic {settings.offsets_topic} at {settings.bootstrap_servers}: no offsets", err=True)


def _sorted(entries: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return sorted(entries, key=lambda entry: _compact(entry[0]))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
