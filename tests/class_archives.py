"""The classes of the JVMs that the suite starts most often, read and checked once: a broker's, and a Spark driver's.

`python tests/class_archives.py <folder>` starts one of each, has them do what they do in tests, and leaves an archive
of what they have loaded (Java's class data sharing) in the folder. A JVM that is given an archive starts on less than
half of the processor's time; where an archive does not fit, or is not there, the JVM does without it and says nothing.
"""

import os
import sys
from pathlib import Path

from headrace.framework.spark.session import session
from headrace.testing import EmbeddedKafka
from headrace.testing.engines import Engine
from headrace.testing.files_harness import FilesHarness
from headrace.testing.kafka import OPTIONS_VARIABLE
from headrace.testing.trial import Trial, fresh_name

RECORDS = 100


def dumping(archive: Path) -> str:
    """The options of a JVM that leaves an archive at its end."""
    return f"-XX:TieredStopAtLevel=1 '-XX:ArchiveClassesAtExit={archive}' -Xlog:disable"


def dump(folder: Path) -> None:
    """Have a broker and a driver do a little of everything, and end."""
    os.environ[OPTIONS_VARIABLE] = dumping(folder / "kafka.jsa")
    os.environ["SPARK_SUBMIT_OPTS"] = dumping(folder / "spark.jsa")
    with EmbeddedKafka() as kafka, session(None, master="local[2]", name="classes") as spark:
        gateway = spark.sparkContext._gateway.proc
        for tasks in ("1", "2"):
            harness = FilesHarness()
            try:
                trial = Trial(
                    harness=harness,
                    engine=Engine("spark", spark=spark),
                    bootstrap_servers=kafka.bootstrap_servers,
                    name=fresh_name("classes"),
                )
                trial.add("one", RECORDS)
                trial.run(tasks__max=tasks)
                assert len(trial.values()) == RECORDS
            finally:
                harness.close()
    gateway.stdin.close()
    gateway.wait()


def main() -> None:
    """Make the archives, unless this Java cannot."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    dump(folder)
    missing = [name for name in ("kafka", "spark") if not (folder / f"{name}.jsa").exists()]
    if missing:
        print(f"this Java makes no class archive ({', '.join(missing)}): its JVMs start as they do without one")  # noqa: T201


if __name__ == "__main__":
    main()
