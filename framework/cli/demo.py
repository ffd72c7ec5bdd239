"""`headrace demo`: what this is about, in a minute, with nothing to set up."""

import time

import click

from headrace.testing.kafka import EmbeddedKafka
from headrace.testing.topics import create_topic, read_topic

__all__ = ["demo"]

RECORDS = 10_000


@click.command()
def demo() -> None:
    """The main job end to end, on embedded parts.

    So far: a real Kafka broker starts, one transaction puts records on a topic, and a reader of committed records
    counts them.
    """
    started = time.monotonic()
    click.echo("starting Apache Kafka on loopback (the first time its jars are fetched) ...")
    with EmbeddedKafka() as kafka:
        click.echo(f"ready on {kafka.bootstrap_servers} after {time.monotonic() - started:.1f} s")
        create_topic(kafka.bootstrap_servers, "demo", partitions=4)
        _produce(kafka.bootstrap_servers)
        found = {message.value() for message in read_topic(kafka.bootstrap_servers, "demo")}
    if found != {str(number).encode() for number in range(RECORDS)}:
        raise click.ClickException(f"{RECORDS} records were committed and {len(found)} different ones came back")
    click.echo(f"{RECORDS} records committed in one transaction, {len(found)} read back: none lost, none doubled")
    click.echo("next: headrace kafka --help")


def _produce(bootstrap_servers: str) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415 - heavy, and not needed for --help

    # log_level 3: a broker this young says "loading" to its first transaction, and librdkafka retries.
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "headrace-demo", "log_level": 3})
    producer.init_transactions(30.0)
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce("demo", str(number).encode())
    producer.commit_transaction(30.0)
