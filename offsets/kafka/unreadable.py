"""What stands in the topic under a connector's name and says nothing that can be read."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.codec import decode_key, decode_value
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.kafka.view import KafkaOffsetView
from headrace.offsets.key import OffsetManagerKey

__all__ = ["unreadable_keys", "unreadable_values"]

Impossible: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]


def unreadable_keys(view: KafkaOffsetView) -> list[str]:
    """A word on each key that names no source partition; Kafka Connect passes over them, too."""
    words = []
    for raw in view.entries:
        try:
            decode_key(raw)
        except MalformedOffsetError as error:
            words.append(f"{error}; it is passed over, as Kafka Connect does")
    return words


def unreadable_values(view: KafkaOffsetView, impossible: Impossible) -> list[str]:
    """A word on each value that is no offset, or one that the source finds `impossible`.

    Of the one kind the source partition was never read, to Kafka Connect and to a run; the other kind fails a run.
    """
    return [
        f"the offset of {key.mapping} cannot be read: {reason}"
        for key, raw_keys in Spellings.of(view.connector, view.entries)
        for raw in raw_keys
        if (reason := _reason(key, view.entries[raw], impossible)) is not None
    ]


def _reason(key: OffsetManagerKey, value: bytes, impossible: Impossible) -> str | None:
    try:
        offset = decode_value(value)
    except MalformedOffsetError as error:
        return str(error)
    return None if offset is None else impossible(key.mapping, offset)
