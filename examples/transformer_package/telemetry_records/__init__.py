"""Telemetry files: nothing but records of sixteen bytes, a time and a value, both little-endian.

The format is fixed in size, so reading can go on at any record: `resumes_at_byte`.
"""

import struct
from collections.abc import Iterator

from headrace import DataError, Transformer
from headrace.transformers.base import ByteStream, Position, ValueBatch

__all__ = ["TelemetryTransformer"]

RECORD = struct.Struct("<qd")
READ_BYTES = 4096 * RECORD.size


class TelemetryTransformer(Transformer):
    """Each record as `{"at": milliseconds, "value": number}`."""

    resumes_at_byte = True

    def batches(self, stream: ByteStream, start: Position) -> Iterator[ValueBatch]:
        """The records after `start`; one that is cut off by the object's end is an error."""
        # Progress that comes from elsewhere knows a count and no byte: the stream begins with the object then.
        done, skip = (start.records, 0) if start.byte else (0, start.records)
        rest = b""
        while chunk := stream.read(READ_BYTES):
            data = rest + chunk
            whole = len(data) - len(data) % RECORD.size
            rest = data[whole:]
            values = [{"at": at, "value": value} for at, value in RECORD.iter_unpack(data[:whole])]
            skipped = min(skip, len(values))
            skip -= skipped
            if len(values) > skipped:
                yield batch_of(values[skipped:], done + skipped)
            done += len(values)
        if rest:
            raise DataError(f"the object ends {len(rest)} bytes into record {done + 1}: upload it again")


def batch_of(values: list[dict[str, int | float]], before: int) -> ValueBatch:
    """Values of which `before` others stand in front of them."""

    def position_at(count: int) -> Position:
        return Position(records=before + count, byte=(before + count) * RECORD.size)

    return ValueBatch(schema=None, values=values, position_at=position_at)
