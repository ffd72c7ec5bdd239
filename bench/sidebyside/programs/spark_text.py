"""Spark's own text stream into its Kafka sink, once for each topic, in one session.

spark_text.py SETTINGS-AS-JSON BOOTSTRAP PLACE CHECKPOINTS TOPIC...
"""

import json
import sys
import time

from pyspark.sql import SparkSession


def main() -> None:
    """Run the queries, and say when each began and ended."""
    settings, bootstrap, place, checkpoints, *topics = sys.argv[1:]
    spark = SparkSession.builder.master("local[2]").config(map=json.loads(settings)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for topic in topics:
        started = time.time()
        (
            spark.readStream.text(place)
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
