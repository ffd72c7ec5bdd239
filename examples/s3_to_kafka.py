"""S3 to Kafka, submitted to a Spark cluster.

    spark-submit --master spark://... --py-files headrace.zip examples/s3_to_kafka.py connector.json

`headrace.zip` is the wheel under another name (`make wheel`): spark-submit takes zips. The driver's Python needs
Headrace's dependencies with boto3, and so do the executors' (`--archives`, or an image that has them). The files are a
connector's configuration, later ones over earlier ones, for example:

    name=orders
    connector.class=s3
    topic=orders
    bootstrap.servers=kafka:9092
    aws.s3.bucket.name=orders
    input.format=jsonl
    tasks.max=8

It reads what there is, says what it did, and ends; the next one goes on where this one stopped.
"""

import json
import sys

import headrace
from headrace.framework.config_files import load


def main() -> None:
    """Run the connector that the arguments name, on the session that spark-submit has prepared."""
    files = sys.argv[1:]
    if not files:
        print(__doc__)
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not needed to show how to use this

    spark = SparkSession.builder.appName("s3-to-kafka").getOrCreate()
    try:
        summary = headrace.run(load(files), spark=spark, available_now=True)
    finally:
        spark.stop()
    print(json.dumps(summary.as_json(), indent=2))
    if summary.error is not None:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
