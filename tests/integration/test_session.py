"""A session of our own."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json
from headrace.framework.spark.session import session

with session(None, master="local[1]", name="options") as spark:
    machine = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    print(json.dumps(list(machine.getInputArguments())))
"""


def test_its_jvm_starts_quickly_unless_it_is_told_otherwise(tmp_path):
    """The driver's JVM makes its code in the quick way; what Spark's configuration says comes behind that."""
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:TieredStopAtLevel=4\n")
    given = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env=given | {"SPARK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    levels = [option for option in json.loads(done.stdout.splitlines()[-1]) if "TieredStopAtLevel" in option]
    assert levels == ["-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"]
