"""A Spark session of our own, where the caller brings none."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headrace.framework.errors import ConfigError
from headrace.framework.java import find_java

__all__ = ["refuse_unusable", "session"]

# Records do not go through the driver's JVM, which is busiest while it starts: quick code soon, and none that is better
# later. Whatever Spark's configuration says comes behind these, and counts.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1"

# Plain local[N] gives up with its first lost Python worker.
ATTEMPTS = 4

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.ui.enabled": "false",
}


@contextmanager
def session(given: SparkSession | None, *, master: str | None, name: str) -> Iterator[SparkSession]:
    """The session given, or the active one; else a new one on `master`, which is stopped at the end.

    Without `master` it is spark-submit's own, or `local[*]`. `ConfigError` for one on which tasks cannot run.
    """
    found = given or SparkSession.getActiveSession()
    if found is not None:
        refuse_unusable(found)
        yield found
        return
    made = _made(master, name)
    try:
        yield made
    finally:
        made.stop()


def _made(master: str | None, name: str) -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS)
    wanted = master or (None if "SPARK_ENV_LOADED" in os.environ else "local[*]")
    builder = SparkSession.builder.appName(name)
    if wanted is not None:
        builder = builder.master(_with_attempts(wanted))
        if wanted.startswith("local"):
            # On a host of several addresses Spark would choose one of them for talking to itself.
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for key, value in QUIET.items():
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def refuse_unusable(spark: SparkSession) -> None:
    """Raise `ConfigError` for a session on which tasks cannot run."""
    if not hasattr(spark, "_jsc"):
        raise ConfigError(
            "this is a Spark Connect session, which has no RDDs, and source tasks run on mapPartitions: "
            "give a classic session (SparkSession.builder.master(...)), or use --engine local"
        )


def _with_attempts(master: str) -> str:
    """`local[2]` as `local[2,4]`; any other master as it is."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{ATTEMPTS}]"
    return master
