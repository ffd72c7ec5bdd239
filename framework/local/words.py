"""What a driver and the processes of its tasks send each other, beside plans, reports and log records."""

import enum
import gc
import logging
from collections.abc import Mapping

import attrs

from headrace.framework.config import SourceCommonConfig
from headrace.framework.registry import Kind
from headrace.framework.worker.ready import plugins_of

__all__ = ["Setup", "Word"]

LOGGERS = ("", "headrace")


class Word(enum.Enum):
    """One word: the last is a process's, the others are the driver's."""

    END = enum.auto()
    """This micro-batch is to end at the next boundary."""

    STOP = enum.auto()
    """The run is to stop."""

    CLOSE = enum.auto()
    """There will be no plan any more."""

    BEGUN = enum.auto()
    """The tasks of the micro-batch run."""


@attrs.frozen(kw_only=True)
class Setup:
    """What makes a process like its driver's: how much is logged, how often garbage goes.

    `plugins` are what it imports before there is a plan.
    """

    connector: str
    levels: Mapping[str, int]
    garbage_after: tuple[int, int, int]
    plugins: Mapping[Kind, str]

    @classmethod
    def of_this_process(cls, config: SourceCommonConfig) -> "Setup":
        """This process's own, for tasks of a connector."""
        return cls(
            connector=config.name,
            levels={name: logging.getLogger(name).level for name in LOGGERS},
            garbage_after=gc.get_threshold(),
            plugins=plugins_of(config),
        )

    def take_over(self) -> None:
        """Set up this process."""
        gc.set_threshold(*self.garbage_after)
        for name, level in self.levels.items():
            logging.getLogger(name).setLevel(level)
