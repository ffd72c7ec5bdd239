"""The public test kit: real servers in a moment, and what a test of a task of yours needs.

- `TaskHarness`: runs a task by the framework's own loop, on a `MemoryKafka`: no Spark, no broker.
- `scripted_task` with `Crash`, `Stumble`, `Fail`, `Nothing`, `Block`: a source that does what a list says.
- `EmbeddedKafka`: Apache Kafka's own broker on loopback, a single node, started in a few seconds. The pytest plugin
  that comes with the package offers one per session as the fixture `kafka_bootstrap_servers`.
- `EmbeddedS3`: an S3 server on loopback, and its endpoint as the fixture `s3_endpoint`; `FaultyS3` is a proxy in
  front of one that breaks connections, throttles and misleads as a script says (`headrace.testing.faulty_s3`).
- `EmbeddedRedis`: a Redis server on loopback, and its port as the fixture `redis_port`; `FaultyRedis` is a proxy in
  front of one (`headrace.testing.faulty_redis`), and `headrace.testing.faulty_files` are files that stumble.
- `create_topic`, `write_topic`, `read_topic`: records on a topic in one transaction, and what its readers see.
- `SparkCluster`: a standalone Spark cluster of one machine, a master and workers, whose executors have no headrace
  until it is shipped to them.
- `SourceConformance` (`headrace.testing.conformance`): the tests that every source inherits, by a `SourceHarness` of
  its own; `S3Harness` is that of S3, `FilesHarness` that of files, `RedisHarness` that of Redis.
- `SplitHarness`: drives a split source of yours round by round, on a `MemoryKafka`.
- `GuardedProcess`, `free_port`: programs that end with the test that started them, however it ends.
"""

from typing import TYPE_CHECKING

from headrace.framework.lazy import lazy_names

if TYPE_CHECKING:
    from headrace.testing.faulty_redis import FaultyRedis
    from headrace.testing.faulty_s3 import FaultyS3
    from headrace.testing.files_harness import FilesHarness
    from headrace.testing.harness import TaskHarness
    from headrace.testing.kafka import EmbeddedKafka
    from headrace.testing.memory import MemoryKafka
    from headrace.testing.processes import GuardedProcess, free_port
    from headrace.testing.redis import EmbeddedRedis
    from headrace.testing.redis_harness import RedisHarness
    from headrace.testing.s3 import EmbeddedS3
    from headrace.testing.s3_harness import S3Harness
    from headrace.testing.scripted import Block, Crash, Fail, Nothing, Stumble, scripted_task
    from headrace.testing.source_harness import SourceHarness
    from headrace.testing.spark_cluster import SparkCluster
    from headrace.testing.split_harness import SplitHarness
    from headrace.testing.topics import create_topic, read_topic, write_topic

__all__ = [
    "Block",
    "Crash",
    "EmbeddedKafka",
    "EmbeddedRedis",
    "EmbeddedS3",
    "Fail",
    "FaultyRedis",
    "FaultyS3",
    "FilesHarness",
    "GuardedProcess",
    "MemoryKafka",
    "Nothing",
    "RedisHarness",
    "S3Harness",
    "SourceHarness",
    "SparkCluster",
    "SplitHarness",
    "Stumble",
    "TaskHarness",
    "create_topic",
    "free_port",
    "read_topic",
    "scripted_task",
    "write_topic",
]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(["Block", "Crash", "Fail", "Nothing", "Stumble", "scripted_task"], "headrace.testing.scripted"),
        **dict.fromkeys(["GuardedProcess", "free_port"], "headrace.testing.processes"),
        **dict.fromkeys(["create_topic", "read_topic", "write_topic"], "headrace.testing.topics"),
        "EmbeddedKafka": "headrace.testing.kafka",
        "EmbeddedRedis": "headrace.testing.redis",
        "EmbeddedS3": "headrace.testing.s3",
        "FaultyRedis": "headrace.testing.faulty_redis",
        "FilesHarness": "headrace.testing.files_harness",
        "FaultyS3": "headrace.testing.faulty_s3",
        "MemoryKafka": "headrace.testing.memory",
        "RedisHarness": "headrace.testing.redis_harness",
        "S3Harness": "headrace.testing.s3_harness",
        "SplitHarness": "headrace.testing.split_harness",
        "SourceHarness": "headrace.testing.source_harness",
        "SparkCluster": "headrace.testing.spark_cluster",
        "TaskHarness": "headrace.testing.harness",
    },
)
