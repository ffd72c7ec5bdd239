"""A stream of bytes, cut where lines end."""

import io
from collections.abc import Iterator

from headrace.transformers.base import ByteStream

__all__ = ["GAP", "whole_lines"]

_READ_BYTES = 256 * 1024

GAP = b""
"""In the place of lines: one line that is too long to be held."""


def whole_lines(stream: ByteStream, limit: int, *, tolerant: bool) -> Iterator[tuple[bytes, int]]:
    """Bytes that are whole lines with their ends, and how many they are; of a line of more than `limit` a `GAP`.

    Each read gives the lines that it completed. Of a gap nothing is held, however long it is; 0 is no limit. If not
    `tolerant`, a gap is said as soon as it is one, and nothing of use comes behind it.
    """
    pieces: list[bytes] = []
    held = dropped = 0
    while chunk := stream.read(_READ_BYTES):
        begin, end = 0, chunk.rfind(b"\n") + 1
        if dropped:
            if not end:
                dropped += len(chunk)
                continue
            begin = chunk.find(b"\n") + 1
            yield GAP, dropped + begin
            dropped = 0
        if end > begin:
            yield from _cut(b"".join([*pieces, memoryview(chunk)[begin:end]]), limit)
            pieces, held = [], 0
        if end < len(chunk):
            pieces.append(chunk[end:])
            held += len(chunk) - end
        if limit and held > limit:
            if not tolerant:
                yield GAP, held
            dropped, pieces, held = held, [], 0
    if dropped:
        yield GAP, dropped
    elif pieces:
        yield b"".join(pieces), held


def _cut(data: bytes, limit: int) -> Iterator[tuple[bytes, int]]:
    """The lines, up to each one that is too long, and that one."""
    begin = end = 0
    if limit and len(data) > limit and max(map(len, io.BytesIO(data))) > limit + 1:
        for line in io.BytesIO(data):
            if len(line) > limit + 1:
                if end > begin:
                    yield data[begin:end], end - begin
                yield GAP, len(line)
                begin = end + len(line)
            end += len(line)
    if begin < len(data):
        yield (data[begin:] if begin else data), len(data) - begin
