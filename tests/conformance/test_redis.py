"""The Redis source, on a real server and a real broker."""

import pytest

from headrace.testing.conformance import SourceConformance, not_supported
from headrace.testing.redis_harness import RedisHarness

NO_OVERWRITING = "entries are added to a stream and never overwritten; one that is deleted and begun anew is a loss"


class TestRedis(SourceConformance):
    @pytest.fixture
    def harness(self, redis_port):
        with RedisHarness(redis_port) as harness:
            yield harness

    @not_supported(NO_OVERWRITING)
    def test_an_overwritten_piece_is_read_again(self):
        """Held as a loss by tests/integration/redis."""

    @not_supported(NO_OVERWRITING)
    def test_an_overwritten_piece_is_left_out(self):
        """As above."""

    @not_supported(NO_OVERWRITING)
    def test_an_overwritten_piece_fails_the_run(self):
        """As above."""
