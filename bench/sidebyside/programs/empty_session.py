"""How long a session of Spark takes to its first `foreachBatch`, which has nothing to do."""

import json
import sys
import tempfile
import threading
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    """Say when that was."""
    called = threading.Event()

    def nothing(_frame: Any, _number: int) -> None:
        if not called.is_set():
            print(json.dumps({"called": time.time()}), flush=True)
            called.set()

    spark = (
        SparkSession.builder.master(sys.argv[1])
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = stream.writeStream.foreachBatch(nothing).option("checkpointLocation", folder).start()
        called.wait(300)
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
