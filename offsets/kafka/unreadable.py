"""What stands in the topic under a connector's name and says nothing that can be read."""

from headrace.framework.errors import MalformedOffsetError
from headrace.offsets.codec import decode_key, decode_value
from headrace.offsets.kafka.spellings import Spellings
from headrace.offsets.kafka.view import KafkaOffsetView

__all__ = ["unreadable_keys", "unreadable_values"]


def unreadable_keys(view: KafkaOffsetView) -> list[str]:
    """A word on each key that names no source partition; Kafka Connect passes over them, too."""
    words = []
    for raw in view.entries:
        try:
            decode_key(raw)
        except MalformedOffsetError as error:
            words.append(f"{error}; it is passed over, as Kafka Connect does")
    return words


def unreadable_values(view: KafkaOffsetView) -> list[str]:
    """A word on each value that is no offset: to Kafka Connect, and to a run, its source partition was never read."""
    words = []
    for key, raw_keys in Spellings.of(view.connector, view.entries):
        for raw in raw_keys:
            try:
                decode_value(view.entries[raw])
            except MalformedOffsetError as error:
                words.append(f"the offset of {key.mapping} cannot be read: {error}")
    return words
