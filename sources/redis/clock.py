"""The server's own clock, by which entries get their ids."""

import attrs

from headrace.framework.errors import Where
from headrace.framework.stage import Stage
from headrace.sources.redis.client import RedisClient
from headrace.sources.redis.config import RedisConfig
from headrace.sources.redis.failures import redis_failures

__all__ = ["ServerClock"]


@attrs.frozen
class ServerClock:
    """Says whether the time of `stop.rule` has come: entries that are added from then on are not to be read."""

    client: RedisClient
    config: RedisConfig
    stage: Stage

    @property
    def is_awaited(self) -> bool:
        """Whether there is such a time."""
        return self.config.stop_rule is not None and self.config.stop_rule.time is not None

    def is_past(self) -> bool | None:
        """Whether it has come, in a cluster on every node; None where the user may not ask for the time."""
        from redis import exceptions  # noqa: PLC0415 - comes with the extra

        last = self.config.last_wanted()
        if last is None or not self.is_awaited:
            return False
        with redis_failures(Where(stage=self.stage, connector=self.config.name)):
            try:
                return self._now_ms() > last.milliseconds
            except exceptions.NoPermissionError:
                return None

    def _now_ms(self) -> int:
        times: list[tuple[int, int]]
        if self.config.is_cluster:
            times = [self.client.time(target_nodes=node) for node in self.client.get_primaries()]
        else:
            times = [self.client.time()]
        return min(seconds * 1000 + micros // 1000 for seconds, micros in times)
