"""What becomes of entries that went before they were read."""

from collections.abc import Callable

import attrs

from headrace.framework.config import DataLoss
from headrace.framework.errors import SourceError, Where
from headrace.framework.stage import Stage
from headrace.sources.redis.ids import StreamId

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
