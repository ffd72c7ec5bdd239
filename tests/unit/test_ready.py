"""What a process for tasks has done before it has a plan."""

import subprocess
import sys

import pytest

PLUGINS = {"sources": "s3", "transformers": "jsonl", "converters": "json", "sinks": "kafka"}
HEAVY = {"botocore.session", "confluent_kafka"}


@pytest.mark.parametrize(("before", "loaded"), [("", []), (f"get_ready({PLUGINS})", sorted(HEAVY))])
def test_what_tasks_need_is_loaded_once_a_process_is_ready(before, loaded):
    """The clients of S3 and Kafka take a tenth of a second to load: not with their plugins, but before a plan."""
    code = (
        "import sys\n"
        "from headrace.framework import registry\n"
        "from headrace.framework.worker.ready import get_ready\n"
        f"for kind, name in {PLUGINS}.items(): registry.find(kind, name)\n"
        f"{before}\n"
        f"print(sorted({HEAVY} & set(sys.modules)))\n"
    )

    said = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == str(loaded)
