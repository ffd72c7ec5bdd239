"""`split.size.bytes`, for sources of objects: the key, what contradicts it, and where it is in vain."""

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.framework import registry
from headrace.framework.config import Boundary, SourceCommonConfig
from headrace.framework.errors import ConfigError, Fault, PluginError
from headrace.framework.format_keys import built_in_formats
from headrace.framework.options import option
from headrace.framework.parsers import LONG_MAX, integer
from headrace.transformers.base import Transformer

__all__ = ["can_split", "split_faults", "split_notes", "split_size_bytes"]

KEY = "split.size.bytes"


def split_size_bytes() -> Any:
    """The option `split.size.bytes`, for the configuration of a source of objects."""
    return option(
        KEY,
        integer(at_least=0, at_most=LONG_MAX),
        default=0,
        doc="Objects of more bytes are read in parts of about equal size, by several tasks at once, where the format "
        "can begin in the middle: `jsonl`, `text`, `avro`, `parquet`, and `csv` with `csv.quoted.newlines=false`; "
        "compressed objects cannot. The parts of an object come in no order. With 0, or one task, each object is read "
        "as a whole, in its order.",
    )


def split_faults(config: SourceCommonConfig, split_size: int) -> Iterator[Fault]:
    """What cannot be had together with parts."""
    if not split_size:
        return
    if config.transaction_boundary is Boundary.OBJECT:
        yield config.fault(
            KEY, "cannot be with transaction.boundary=object: several tasks cannot make an object visible at once"
        )
    if config.distribution_type == "partition":
        yield config.fault(
            KEY, "cannot be with distribution.type=partition, by which one task has all of a partition in its order"
        )


def can_split(name: str, props: Mapping[str, str]) -> bool:
    """Whether objects of a format can be read in parts, with such a configuration."""
    known = name.lower() if name.lower() in built_in_formats() else name
    kind = registry.find("transformers", known)
    return issubclass(kind, Transformer) and kind.can_split(props)


def split_notes(props: Mapping[str, str]) -> Iterator[str]:
    """Where the format has no parts."""
    if props.get(KEY, "0").strip() in {"", "0"}:
        return
    name = props.get("input.format", "bytes").strip()
    try:
        has_parts = can_split(name, props)
    except (ConfigError, PluginError):
        return  # the fault is somebody else's to tell
    if not has_parts:
        besides = ", or set csv.quoted.newlines=false if that holds" if name.lower() == "csv" else ""
        yield f"{KEY} has no effect: objects of input.format={name} are read as a whole{besides}"
