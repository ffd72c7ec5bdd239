"""The S3 source on a standalone cluster."""

import pytest

from headrace.testing.conformance import SourceConformance
from headrace.testing.s3_harness import S3Harness

pytestmark = pytest.mark.slow


class TestS3OnCluster(SourceConformance):
    engines = ("cluster",)

    @pytest.fixture
    def harness(self, s3_endpoint):
        with S3Harness(s3_endpoint) as harness:
            yield harness
