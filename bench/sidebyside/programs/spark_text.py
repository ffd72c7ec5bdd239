"""Spark's own text stream into its Kafka sink, once for each topic, in one session.

spark_text.py PACKAGE IVY-FOLDER BOOTSTRAP FILES CHECKPOINTS TOPIC...
"""

import json
import sys
import time

from pyspark.sql import SparkSession


def main() -> None:
    """Run the queries, and say when each began and ended."""
    package, ivy, bootstrap, files, checkpoints, *topics = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", package)
        .config("spark.jars.ivy", ivy)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for topic in topics:
        started = time.time()
        (
            spark.readStream.text(files)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", f"{checkpoints}/{topic}")
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
        print(json.dumps({"topic": topic, "started": started, "ended": time.time()}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
