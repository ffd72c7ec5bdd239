"""The S3 source, on moto's server and a real broker."""

import pytest

from headrace.testing.conformance import SourceConformance
from headrace.testing.s3_harness import S3Harness


class TestS3(SourceConformance):
    @pytest.fixture
    def harness(self, s3_endpoint):
        with S3Harness(s3_endpoint) as harness:
            yield harness
