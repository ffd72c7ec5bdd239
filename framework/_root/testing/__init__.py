"""The public test kit: real servers in a moment, and what a test of a task of yours needs.

- `EmbeddedKafka`: Apache Kafka's own broker on loopback, a single node, started in a few seconds. The pytest plugin
  that comes with the package offers one per session as the fixture `kafka_bootstrap_servers`.
- `create_topic`, `read_topic`: what is on a topic, as a reader of committed records sees it.
- `GuardedProcess`, `free_port`: programs that end with the test that started them, however it ends.
"""

from headrace.testing.kafka import EmbeddedKafka
from headrace.testing.processes import GuardedProcess, free_port
from headrace.testing.topics import create_topic, read_topic

__all__ = ["EmbeddedKafka", "GuardedProcess", "create_topic", "free_port", "read_topic"]
