"""The seven words for where a record is on its way; modules, logs, metrics, errors and headers use them."""

import enum

__all__ = ["Stage"]


class Stage(enum.StrEnum):
    """A stage of the way of the data, in its order."""

    DISCOVER = "discover"
    """The enumerator, on the driver, lists what there is: once, not once per task."""

    ASSIGN = "assign"
    """A distribution strategy gives every split to exactly one task."""

    READ = "read"
    """The task opens its split at the position that its offset entry says comes next."""

    TRANSFORM = "transform"
    """A transformer turns the byte stream into values, each with its position."""

    CONVERT = "convert"
    """A converter turns key and value into the bytes that go on the topic."""

    PRODUCE = "produce"
    """The records go to the sink."""

    COMMIT = "commit"
    """Records and offsets become visible together, or not at all."""
