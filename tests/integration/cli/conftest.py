"""The command line as a person uses it: a process, a configuration file, a real broker and an S3 server."""

import json
import os
import subprocess
import sys
import time
import uuid

import attrs
import boto3
import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace.framework.config import SourceCommonConfig
from headrace.offsets.kafka.log import OffsetsLog
from headrace.offsets.kafka.settings import KafkaSettings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.testing import create_topic, read_topic

PARTITIONS = 3
TOPIC_PARTITIONS = 2


@attrs.frozen
class Connector:
    """A connector of one test: its bucket, its topics, its file."""

    props: dict
    file: str
    s3: object

    def put(self, key, body):
        self.s3.put_object(Bucket=self.props["aws.s3.bucket.name"], Key=key, Body=body)

    @property
    def name(self):
        return self.props["name"]

    @property
    def settings(self):
        return KafkaSettings.of(SourceCommonConfig.from_props(self.props))

    def values(self):
        messages = read_topic(self.props["bootstrap.servers"], self.props["topic"])
        return [message.value() for message in messages]

    def await_records(self, count):
        """Wait until `count` records are committed; for those who start a run that goes on."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.props["bootstrap.servers"],
                "group.id": "await-records",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.assign([TopicPartition(self.props["topic"], number, 0) for number in range(TOPIC_PARTITIONS)])
            deadline = time.monotonic() + 60
            while count > 0:
                assert time.monotonic() < deadline
                message = consumer.poll(1)
                count -= message is not None and message.error() is None
        finally:
            consumer.close()

    def view(self, name=None):
        view = KafkaOffsetView(name or self.name)
        log = OffsetsLog(self.settings, view.take, dict.fromkeys(range(PARTITIONS), 0))
        log.read_to_high_watermark()
        log.close()
        return view

    def offsets(self):
        return {key.mapping["objectKey"]: offset for key, offset in self.view().items()}


@pytest.fixture(scope="session")
def s3(s3_endpoint):
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - anybody may come in
    )
    yield client
    client.close()


@pytest.fixture
def connector(kafka_bootstrap_servers, s3_endpoint, s3, tmp_path):
    name = f"c-{uuid.uuid4().hex[:8]}"
    bucket = f"bucket-{name}"
    s3.create_bucket(Bucket=bucket)
    create_topic(kafka_bootstrap_servers, f"records-{name}", partitions=TOPIC_PARTITIONS)
    props = {
        "name": name,
        "connector.class": "s3",
        "tasks.max": "2",
        "topic": f"records-{name}",
        "bootstrap.servers": kafka_bootstrap_servers,
        "offset.storage.topic": f"offsets-{name}",
        "offset.storage.partitions": str(PARTITIONS),
        "input.format": "jsonl",
        "aws.s3.bucket.name": bucket,
        "aws.s3.endpoint": s3_endpoint,
        "aws.access.key.id": "key",
        "aws.secret.access.key": "secret",
    }
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": name, "config": props}))
    return Connector(props, str(file), s3)


@pytest.fixture
def program(tmp_path):
    """The command line's argv, and the environment in which nothing but the package is found."""
    environment = {**os.environ, "AWS_EC2_METADATA_DISABLED": "true"}
    return {"argv": [sys.executable, "-P", "-m", "headrace"], "cwd": tmp_path, "env": environment}


@pytest.fixture
def headrace(program):
    """Runs a command to its end."""

    def headrace(*arguments):
        return subprocess.run(
            [*program["argv"], *arguments],
            cwd=program["cwd"],
            env=program["env"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return headrace


@pytest.fixture
def as_json(headrace):
    """Runs a command with --output json; its exit code and its one document."""

    def as_json(*arguments):
        done = headrace(*arguments, "--output", "json")
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    return as_json
