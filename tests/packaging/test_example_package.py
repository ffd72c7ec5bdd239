"""The examples that are more than a program: a package with a transformer, and a job for spark-submit."""

import json
import os
import shutil
import struct
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

import boto3
import pyspark
import pytest

from headrace.framework.java import find_java
from headrace.testing import create_topic, read_topic

BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
READINGS = [(1_700_000_000_000 + second, second / 4) for second in range(10_000)]
TELEMETRY = b"".join(struct.pack("<qd", at, value) for at, value in READINGS)


@pytest.fixture
def installed(project, tmp_path):
    """A folder where the example's wheel is installed, as somebody would who has built it."""
    source = shutil.copytree(project / "examples" / "transformer_package", tmp_path / "source")
    built = subprocess.run(
        [sys.executable, "-P", "-c", BUILD, str(tmp_path)], cwd=source, capture_output=True, text=True, check=True
    )
    folder = tmp_path / "installed"
    with zipfile.ZipFile(tmp_path / built.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(folder)
    return folder


@pytest.fixture
def props(kafka_bootstrap_servers, s3_endpoint):
    """A connector with a bucket and a topic of its own."""
    name = f"example-{uuid.uuid4().hex[:8]}"
    create_topic(kafka_bootstrap_servers, name)
    client(s3_endpoint).create_bucket(Bucket=name)
    return {
        "name": name,
        "connector.class": "s3",
        "topic": name,
        "bootstrap.servers": kafka_bootstrap_servers,
        "offset.storage.topic": f"offsets-{name}",
        "aws.s3.bucket.name": name,
        "aws.s3.endpoint": s3_endpoint,
        "aws.access.key.id": "key",
        "aws.secret.access.key": "secret",
    }


def client(endpoint):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - anybody may come in
    )


def put(props, key, body):
    client(props["aws.s3.endpoint"]).put_object(Bucket=props["aws.s3.bucket.name"], Key=key, Body=body)


def headrace(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "headrace", *arguments, "--output", "json"],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def values(props):
    return [message.value() for message in read_topic(props["bootstrap.servers"], props["topic"])]


def test_a_transformer_of_ones_own(installed, props, tmp_path):
    """Once its package is installed, the transformer is listed, and a run reads with it; a cut record is an error."""
    put(props, "day.tlm", TELEMETRY)
    file = tmp_path / "telemetry.json"
    file.write_text(json.dumps(props | {"input.format": "telemetry"}))
    run = ("run", str(file), "--available-now", "--engine", "local")

    listed = json.loads(headrace(installed, "plugins").stdout)["plugins"]
    done = headrace(installed, *run)
    put(props, "day-2.tlm", TELEMETRY[:40])
    cut = headrace(installed, *run)

    found = next(one for one in listed if one["name"] == "telemetry")
    assert (found["kind"], found["distribution"], found["version"]) == ("transformer", "telemetry-records", "1.0")
    assert done.returncode == 0, done.stderr
    sent = [json.loads(value) for value in values(props)]
    assert [(one["at"], one["value"]) for one in sent] == READINGS + READINGS[:2]
    assert cut.returncode == 1
    assert "day-2.tlm" in json.loads(cut.stdout)["error"]


@pytest.mark.slow
def test_a_job_for_spark_submit(project, wheel, props, tmp_path):
    """`spark-submit --py-files headrace.zip s3_to_kafka.py connector.json` moves what there is, and says so."""
    put(props, "a.jsonl", b'{"n":1}\n{"n":2}\n')
    file = tmp_path / "connector.json"
    file.write_text(json.dumps(props | {"input.format": "jsonl"}))
    package = shutil.copy(wheel, tmp_path / "headrace.zip")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    answer = subprocess.run(
        [
            *(submit, "--master", "local[2,4]", "--py-files", package),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", "spark.ui.enabled=false"),
            *(project / "examples" / "s3_to_kafka.py", file),
        ],
        cwd=tmp_path,
        env=os.environ | {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["records"] == 2
    assert values(props) == [b'{"n":1}', b'{"n":2}']
