"""The unit test of a task of one's own: the framework's own loop, S3 and Kafka in memory, nothing to start.

pytest examples/test_own_task.py
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from headrace.testing import TaskHarness

# Not needed for a task in a package of its own.
sys.path.insert(0, str(Path(__file__).parent))
from own_task import BucketLines

PROPS = {"lines.bucket": "letters", "topic": "lines"}


@pytest.fixture
def s3() -> Iterator[Any]:
    """An S3 in memory, with a bucket."""
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="letters")
        yield client


def test_every_line_is_sent_once(s3: Any) -> None:
    """A second run sends what has come since the first, and nothing again."""
    s3.put_object(Bucket="letters", Key="greek.txt", Body=b"alpha\nbeta\n")
    harness = TaskHarness(BucketLines, PROPS)
    harness.run()
    s3.put_object(Bucket="letters", Key="greek.txt", Body=b"alpha\nbeta\ngamma\n")
    s3.put_object(Bucket="letters", Key="hebrew.txt", Body=b"aleph\n")
    harness.run()

    assert harness.values("lines") == [b"alpha", b"beta", b"gamma", b"aleph"]
    assert harness.offset({"bucket": "letters", "objectKey": "greek.txt"}) == {"recordCount": 3}


def test_tasks_share_the_objects(s3: Any) -> None:
    """Of two tasks each reads its own objects, and both together read them all."""
    for number in range(10):
        s3.put_object(Bucket="letters", Key=f"{number}.txt", Body=f"line {number}".encode())
    shares = []
    for task_id in range(2):
        harness = TaskHarness(BucketLines, PROPS, task_id=task_id, tasks_max=2)
        harness.run()
        shares.append(set(harness.values()))

    assert shares[0].isdisjoint(shares[1])
    assert shares[0] | shares[1] == {f"line {number}".encode() for number in range(10)}


def main() -> None:
    """Run the tests above."""
    subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__], check=True)


if __name__ == "__main__":
    main()
