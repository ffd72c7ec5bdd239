"""`headrace.start`: a run beside a program's own work, on the program's own Spark session."""

import os
import sys
import uuid

import pytest
from pyspark.sql import SparkSession

import headrace
from headrace.framework.java import find_java
from headrace.testing import create_topic

TASK = """
from headrace import AbstractSourceTask, OffsetManagerEntry, OffsetManagerKey, SourceCommonConfig, SourceRecord

KEY = OffsetManagerKey({"source": "numbers"})


class Numbers(AbstractSourceTask):
    def configure(self, props):
        config = SourceCommonConfig.from_props(props)
        self.topic = config.topic
        return config

    def get_iterator(self, backoff):
        known = self.context.offsets.get_entry(KEY, dict) or {"recordCount": 0}
        for number in range(known["recordCount"], 10):
            yield SourceRecord(
                source_partition=KEY.mapping,
                source_offset={"recordCount": number + 1},
                topic=self.topic,
                value=str(number).encode(),
            )

    def close_resources(self):
        pass
"""


@pytest.fixture
def spark(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_start_and_stop(spark, kafka_bootstrap_servers, tmp_path, monkeypatch, committed):
    """`start` returns at once; the run goes on until `stop`, which leaves the session and gives the summary."""
    (tmp_path / "numbers_of_mine.py").write_text(TASK)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    create_topic(kafka_bootstrap_servers, name)
    handle = headrace.start(
        {
            "name": name,
            "connector.class": "numbers_of_mine:Numbers",
            "bootstrap.servers": kafka_bootstrap_servers,
            "offset.storage.topic": f"offsets-{name}",
            "topic": name,
        },
        spark=spark,
    )
    try:
        values = committed(name, 10)
        status = handle.status()
    finally:
        summary = handle.stop()

    assert values == [str(number).encode() for number in range(10)]
    assert (status.connector, status.is_active) == (name, True)
    assert (summary.state, summary.records, summary.error) == ("COMPLETED", 10, None)
    assert handle.status().state == "COMPLETED"
    assert handle.stop() is summary
    assert spark.range(3).count() == 3


@pytest.fixture
def on_another_python(monkeypatch, tmp_path):
    """A session of a user's own, whose workers run a Python that has no headrace."""
    bare = tmp_path / "python3"
    bare.symlink_to(sys._base_executable)
    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_workers_on_another_python_are_named(on_another_python, kafka_bootstrap_servers, tmp_path, monkeypatch):
    """A session whose workers run another Python fails the run at once, with the reason and what to set."""
    (tmp_path / "numbers_of_mine.py").write_text(TASK)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    create_topic(kafka_bootstrap_servers, name)

    summary = headrace.run(
        {
            "name": name,
            "connector.class": "numbers_of_mine:Numbers",
            "bootstrap.servers": kafka_bootstrap_servers,
            "offset.storage.topic": f"offsets-{name}",
            "topic": name,
        },
        spark=on_another_python,
        available_now=True,
    )

    assert (summary.state, summary.records) == ("FAILED", 0)
    assert "the session's Python workers run 'python3'" in summary.error
    assert "No module named 'headrace'" in summary.error
    assert f"PYSPARK_PYTHON={sys.executable}" in summary.error


@pytest.fixture
def committed(kafka_bootstrap_servers):
    """Waits for records that are committed, as a reader of the topic sees them."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": kafka_bootstrap_servers,
            "group.id": "committed",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )

    def committed(topic, count):
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = []
        while len(found) < count:
            message = consumer.poll(60)
            assert message is not None
            found.append(message.value())
        return found

    yield committed
    consumer.close()
