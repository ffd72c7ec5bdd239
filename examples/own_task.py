"""A source task of one's own, in thirty lines: the lines of the objects in a bucket.

    python examples/own_task.py

runs it against an S3 in memory and shows what it would send (needs moto). To run it for good, put this folder on
PYTHONPATH and give `headrace run` a configuration with `connector.class=own_task:BucketLines`.
"""

from collections.abc import Iterator, Mapping

import boto3

from headrace import AbstractSourceTask, BackoffConfig, OffsetManagerKey, SourceCommonConfig, SourceRecord


class BucketLines(AbstractSourceTask):
    """Lists the bucket `lines.bucket`, and reads on in every object where its offset says."""

    def configure(self, props: Mapping[str, str]) -> SourceCommonConfig:
        """Read the configuration; nothing is opened yet."""
        self.config = SourceCommonConfig.from_props(props)
        self.bucket = props["lines.bucket"]
        return self.config

    def get_iterator(self, backoff: BackoffConfig) -> Iterator[SourceRecord | None]:  # noqa: ARG002 - waits elsewhere
        """List what there is, and read this task's share of it."""
        self.s3 = boto3.client("s3")
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for found in page.get("Contents", ()):
                if self.context.distribution.is_mine(found["Key"]):
                    yield from self.lines(found["Key"])

    def lines(self, name: str) -> Iterator[SourceRecord]:
        """The lines that have not been sent yet, each with the number of lines up to it."""
        key = OffsetManagerKey({"bucket": self.bucket, "objectKey": name})
        known = self.context.offsets.get_entry(key, dict) or {"recordCount": 0}
        body = self.s3.get_object(Bucket=self.bucket, Key=name)["Body"]
        for number, line in enumerate(body.iter_lines(), start=1):
            if number > known["recordCount"]:
                offset = {"recordCount": number}
                yield SourceRecord(
                    source_partition=key.mapping, source_offset=offset, topic=self.config.topic or name, value=line
                )

    def close_resources(self) -> None:
        """Close the client, if there is one."""
        if hasattr(self, "s3"):
            self.s3.close()


def main() -> None:
    """Run the task once, by the framework's own loop, without Spark, Kafka or Amazon."""
    from moto import mock_aws  # noqa: PLC0415 - for this demonstration only

    from headrace.testing import TaskHarness  # noqa: PLC0415 - as above

    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="letters")
        s3.put_object(Bucket="letters", Key="greek.txt", Body=b"alpha\nbeta\n")
        harness = TaskHarness(BucketLines, {"lines.bucket": "letters", "topic": "lines"})
        harness.run()
        for record in harness.records():
            print(f"{record.topic}: {record.value!r}")
        print("progress:", harness.offset({"bucket": "letters", "objectKey": "greek.txt"}))


if __name__ == "__main__":
    main()
