"""What is said of a split in a plan."""

import attrs

__all__ = ["SplitDescription"]


@attrs.frozen(kw_only=True)
class SplitDescription:
    """What is known of a split without opening it, for people.

    `key` is the name of the thing that it is, or is a part of: which part `part` says, and `start` is its first byte.
    `records_done` and `byte` are where reading goes on; `topic` is where its records go, None if only the records
    themselves can say. `get_calls` is how many requests reading the rest takes, if all goes well.
    """

    key: str
    records_done: int = 0
    byte: int = 0
    topic: str | None = None
    get_calls: int = 0
    part: str = ""
    start: int = 0
