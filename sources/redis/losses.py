"""What becomes of entries that went before they were read."""

from collections.abc import Callable

import attrs

from headrace.framework.config import DataLoss
from headrace.framework.errors import SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.redis.entry import Place
from headrace.sources.redis.ids import StreamId
from headrace.sources.redis.splits import RedisSplit

__all__ = ["Losses"]


@attrs.frozen
class Losses:
    """Where the losses of one stream go: they end the run, or are noted where `data.loss` says to go on."""

    stream: str
    policy: DataLoss
    note: Callable[[str], None]

    def lose(self, position: StreamId, what: str) -> None:
        """Say what was lost behind a position; a `SourceError` where that is not to be passed over."""
        where = Where(stage=Stage.READ, object=self.stream, position=f"entry {position}")
        if self.policy is DataLoss.FAIL:
            raise SourceError(
                f"{what}; keep entries longer, and to go on with what there is set data.loss=continue", where
            )
        self.note(f"{where}: {what}")

    def miss_the_end(self, split: RedisSplit, place: Place) -> None:
        """The stream is not there any more: a loss if the run was to read further in it."""
        if split.end is None or place.id >= split.end:
            return
        if split.added is None or place.passed is None:
            self.lose(place.id, f"the stream was deleted before it was read up to {split.end}")
        elif split.added > place.passed:
            lost = split.added - place.passed
            self.lose(place.id, f"the stream was deleted, and with it {lost} entries before they were read")
