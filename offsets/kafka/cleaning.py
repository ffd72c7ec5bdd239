"""What has the broker's cleaner keep the offsets topic small: settings of the topic, and what they mean for a driver.

The cleaner never touches the segment that is being written, and a segment is closed only by a record that comes after
its time. So whoever has removed something, and then writes nothing any more, keeps it on the broker's disk for ever.
"""

from collections.abc import Mapping

__all__ = ["CLEANED_SOON", "TURNS_AFTER_S"]

SEGMENT_S = 600
TOMBSTONES_S = 3600
SLACK_S = 60
"""The cleaner looks around every 15 seconds, and may be busy."""

# The broker's defaults never clean the active segment, which for a small topic is the only one, and keep tombstones
# for a day. Whoever reads the topic from its beginning has to be through before those of what he has read are gone;
# that takes seconds.
CLEANED_SOON: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.ms": str(SEGMENT_S * 1000),
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.compaction.lag.ms": str(SEGMENT_S * 1000),
    "delete.retention.ms": str(TOMBSTONES_S * 1000),
}

FIRST_TURN_S = SEGMENT_S + SLACK_S
TURNS_AFTER_S = (FIRST_TURN_S, FIRST_TURN_S + TOMBSTONES_S + FIRST_TURN_S)
"""How long after a removal every partition needs a record: one for what was removed, one for its tombstones."""
