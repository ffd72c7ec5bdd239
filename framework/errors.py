"""Everything that Headrace raises, by phase and by what to do about it.

```text
HeadraceError
└── SetupError
    ├── BrokerStartError
    ├── DiskFullError
    ├── DownloadError
    ├── JavaNotFoundError
    └── PortInUseError
```

- `SetupError`: this machine lacks something; nothing was read and nothing was written. The message says what is
  missing and what to do.

A test compares the tree above with the classes, and sends each of them through pickle: they cross from executors
to the driver. An error keeps its cause; its message is one line that ends in the next step.
"""

from typing import ClassVar

__all__ = [
    "BrokerStartError",
    "DiskFullError",
    "DownloadError",
    "HeadraceError",
    "JavaNotFoundError",
    "PortInUseError",
    "SetupError",
]


class HeadraceError(Exception):
    """The root: catch it to catch whatever Headrace raises on purpose."""

    exit_code: ClassVar[int] = 1
    """What the command line exits with when this error ends it."""


class SetupError(HeadraceError):
    """This machine lacks something that the work needs."""


class JavaNotFoundError(SetupError):
    """There is no Java that runs Spark and Kafka."""


class DownloadError(SetupError):
    """The broker's jars could not be fetched, or are not the ones whose sums stand in the project."""


class PortInUseError(SetupError):
    """The port asked for belongs to somebody else."""


class DiskFullError(SetupError):
    """There is no room for what has to be written."""


class BrokerStartError(SetupError):
    """The embedded broker ended, or did not answer, before it was ready."""
