"""The files source: on this machine's own files, and by URL on files that stumble."""

import pytest

from headrace.testing.conformance import SourceConformance, not_supported
from headrace.testing.files_harness import FilesHarness

NO_FAULTS = "a local disk has no passing faults to script; the same code is held to it by URL"


class TestFiles(SourceConformance):
    @pytest.fixture
    def harness(self):
        return FilesHarness()

    @not_supported(NO_FAULTS)
    def test_a_read_that_fails_for_a_while_loses_nothing(self):
        """By URL."""

    @not_supported(NO_FAULTS)
    def test_a_read_that_fails_with_object_boundary_cuts_no_object(self):
        """By URL."""

    @not_supported(NO_FAULTS)
    def test_an_orderly_stop_half_way_loses_and_doubles_nothing(self):
        """By URL."""


class TestFilesByUrl(SourceConformance):
    @pytest.fixture
    def harness(self):
        return FilesHarness(by_url=True)
