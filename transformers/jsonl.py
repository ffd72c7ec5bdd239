"""`jsonl`: every line is one JSON value."""

from collections.abc import Iterable, Sequence

from headrace.framework.compat import override
from headrace.framework.schema import JSON_TEXT
from headrace.transformers.json_check import first_bad
from headrace.transformers.lines import BadLine, LineTransformer

__all__ = ["JsonlTransformer"]


class JsonlTransformer(LineTransformer):
    """Lines of JSON, each checked to be exactly one value and given out as its own bytes.

    White space around a line is taken off, a carriage return included; lines with nothing else are no records, as
    in Kafka Connect's S3 source, but count where lines are numbered. Digits, spaces and the order of members are
    those of the line.
    """

    schema = JSON_TEXT

    @override
    def strip(self, lines: Iterable[bytes]) -> list[bytes]:
        return list(map(bytes.strip, lines))

    @override
    def decode(self, lines: Sequence[bytes], within: bytes | None = None) -> tuple[Sequence[bytes], BadLine | None]:
        bad = first_bad(lines, within)
        if bad is None:
            return lines, None
        index, error = bad
        message = f"{error}: mend the line, or read the object with input.format=text"
        return lines[:index], BadLine(index, message, error.__cause__ or error)
