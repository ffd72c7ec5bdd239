"""`headrace validate`: every fault of a configuration at once, without asking S3, Kafka or a source."""

import json
from collections.abc import Mapping

import click

from headrace.framework.check import check
from headrace.framework.cli.options import config_command

__all__ = ["validate"]


@click.command()
@config_command
def validate(*, props: Mapping[str, str], output: str) -> None:
    """Say everything that is wrong with a configuration, with the nearest known key.

    Nothing is connected to. Later files go over earlier ones. Exit code 0: it is valid; 2: it is not.
    """
    config = check(props)
    warnings = config.warnings()
    if output == "json":
        click.echo(json.dumps({"state": "VALID", "warnings": warnings}, indent=2))
        return
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"{config.name}: the configuration is valid")
