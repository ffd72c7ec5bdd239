"""What several suites ask for."""

import pytest

from headrace.testing import S3Harness
from headrace.testing.trial import fresh_name


@pytest.fixture(params=["files", "s3"])
def place(request, tmp_path):
    """Where objects are put: how that is done, and the configuration that reads them there."""
    if request.param == "files":
        yield (
            lambda name, data: (tmp_path / name).write_bytes(data),
            {
                "connector.class": "files",
                "files.paths": str(tmp_path),
            },
        )
        return
    with S3Harness(request.getfixturevalue("s3_endpoint")) as harness:
        props = harness.prepare(fresh_name("once"))
        yield lambda name, data: harness.client.put_object(Bucket=harness.bucket, Key=name, Body=data), props
