"""`headrace kafka`: a broker for development."""

import time
from pathlib import Path

import click

from headrace.testing.kafka import EmbeddedKafka

__all__ = ["kafka"]


@click.command()
@click.option("--port", default=9092, show_default=True, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for its data, kept for the next start. Without it the data goes with the broker.",
)
def kafka(*, port: int, data: Path | None) -> None:
    """A real single-node Kafka on loopback, for development.

    Apache Kafka's own broker, its jars fetched once from Maven Central. Runs until it is interrupted.
    """
    click.echo("starting Apache Kafka on loopback (the first time its jars are fetched) ...", err=True)
    with EmbeddedKafka(port=port, data=data.absolute() if data else None) as broker:
        click.echo(f"bootstrap.servers={broker.bootstrap_servers}")
        click.echo("stop it with Ctrl-C", err=True)
        while True:
            broker.refuse_dead()
            time.sleep(0.5)
