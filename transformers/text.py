"""`text`: every line is a string."""

from collections.abc import Iterable, Sequence
from itertools import repeat

from headrace.framework.compat import override
from headrace.framework.schema import STRING
from headrace.transformers.lines import BadLine, LineTransformer

__all__ = ["TextTransformer"]


class TextTransformer(LineTransformer):
    """Lines of UTF-8 text, without their ends, white space kept.

    Blank lines are values, and count as records: whoever keeps plain text may mean something by them. Invalid UTF-8
    is an error, not replaced: a replacement would be a loss that nobody sees.
    """

    schema = STRING
    skips_blank = False

    @override
    def strip(self, lines: Iterable[bytes]) -> list[bytes]:
        return list(map(bytes.rstrip, lines, repeat(b"\n")))

    @override
    def decode(self, lines: Sequence[bytes], within: bytes | None = None) -> tuple[Sequence[str], BadLine | None]:
        try:
            return _texts(lines), None
        except UnicodeDecodeError:
            index, error = next(filter(None, map(_fault, range(len(lines)), lines)))
        reason = f"not UTF-8 ({error.reason} at byte {error.start + 1})"
        message = f"{reason}: mend the line, or read the object with input.format=bytes"
        return _texts(lines[:index]) if index else [], BadLine(index, message, error)


def _texts(lines: Sequence[bytes]) -> list[str]:
    text = b"\n".join(lines).decode()
    values = text.split("\n")
    return [value.removesuffix("\r") for value in values] if "\r" in text else values


def _fault(index: int, line: bytes) -> tuple[int, UnicodeDecodeError] | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return index, error
    return None
