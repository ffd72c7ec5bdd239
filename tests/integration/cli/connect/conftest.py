"""Kafka Connect's own classes, from its own jars, behind a small Java program that is compiled here."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest

from headrace.framework.java import find_java
from headrace.testing.jars import fetch_jars, read_jar_list
from headrace.testing.kafka import JAR_LIST

HERE = Path(__file__).parent
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m")


@attrs.frozen
class KafkaConnect:
    """What Kafka Connect reads and writes of one connector in one topic."""

    class_path: str
    bootstrap_servers: str

    def read(self, topic, connector, partitions):
        """The offset that it finds for each partition, its names in the order given; and all that it knows."""
        answer = json.loads(self._run("read", self.bootstrap_servers, topic, connector, given=partitions))
        return answer["offsets"], answer["partitions"]

    def write(self, topic, connector, *entries):
        """Have it write (partition, offset) pairs, one flush each."""
        given = [{"partition": partition, "offset": offset} for partition, offset in entries]
        self._run("write", self.bootstrap_servers, topic, connector, given=given)

    def transactional_id(self, group, connector, task):
        """The id of one of its tasks."""
        return self._run("id", group, connector, str(task))

    def _run(self, *arguments, given=None):
        done = subprocess.run(
            [find_java().executable, *QUICK, "-cp", self.class_path, "ConnectOffsets", *arguments],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def class_path(tmp_path_factory):
    """The jars, and the program compiled against them."""
    compiler = find_java().home / "bin" / "javac"
    if not compiler.exists():
        compiler = shutil.which("javac")
    if compiler is None:
        if os.environ.get("CI"):
            pytest.fail("there is no javac: the comparison with Kafka Connect needs a JDK, not just a Java")
        pytest.skip("there is no javac")
    jars = [
        *fetch_jars(read_jar_list(JAR_LIST), name="kafka"),
        *fetch_jars(read_jar_list(HERE / "connect-jars.txt"), name="connect"),
    ]
    folder = tmp_path_factory.mktemp("connect")
    path = os.pathsep.join(map(str, [folder, *jars]))
    subprocess.run(
        [compiler, "-Xlint:all", "-Werror", "-d", folder, "-cp", path, HERE / "ConnectOffsets.java"], check=True
    )
    return path


@pytest.fixture
def kafka_connect(class_path, kafka_bootstrap_servers):
    return KafkaConnect(class_path, kafka_bootstrap_servers)
