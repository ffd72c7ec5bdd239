"""Java's `.properties` files, read and written by Java's rules."""

import re
from collections.abc import Iterator, Mapping

import attrs

__all__ = ["Property", "parse_properties", "write_properties"]

SPACE = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
LINE_END = re.compile(r"\r\n|\r|\n")
WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}


@attrs.frozen
class Property:
    """A key and a value, and the number of the line on which they begin."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    r"""The properties of a file, in its order, repeated keys included (the last one counts).

    Comments begin with `#` or `!`; a key ends at the first `=`, `:` or white space that is not escaped; a line that
    ends in an odd number of backslashes goes on in the next one, without that one's leading white space; `\t`, `\n`,
    `\r`, `\f` and `\uXXXX` are escapes, and before anything else a backslash is dropped.
    Raises `ValueError`, whose message begins with the line, for a `\u` that is none.
    """
    return [_property(line, number) for number, line in _logical_lines(text)]


def write_properties(properties: Mapping[str, str]) -> str:
    """A file that `parse_properties` and Java read back as `properties`; not ASCII is written as escapes."""
    return "".join(f"{_written(key, key=True)}={_written(value, key=False)}\n" for key, value in properties.items())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    begun: tuple[int, str] | None = None
    for number, natural in enumerate(LINE_END.split(text), start=1):
        line = natural.lstrip(SPACE)
        if begun is None:
            if not line or line[0] in "#!":
                continue
            begun = number, ""
        start, before = begun
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = (start, before + line[:-1]) if before + line[:-1] else None
            continue
        yield start, before + line
        begun = None
    if begun is not None:
        yield begun


def _property(line: str, number: int) -> Property:
    end = _key_end(line)
    rest = line[end:].lstrip(SPACE)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(SPACE)
    return Property(_unescaped(line[:end], number), _unescaped(rest, number), number)


def _key_end(line: str) -> int:
    escaped = False
    for index, letter in enumerate(line):
        if not escaped and letter in "=:" + SPACE:
            return index
        escaped = letter == "\\" and not escaped
    return len(line)


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    letters = iter(text)
    found = "".join(_escape(letters, number) if letter == "\\" else letter for letter in letters)
    # Java's escapes are UTF-16 units; a pair of them is one character here.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(letters: Iterator[str], number: int) -> str:
    letter = next(letters, "")
    if letter != "u":
        return ESCAPES.get(letter, letter)
    digits = "".join(next(letters, "") for _ in range(4))
    if not re.fullmatch("[0-9a-fA-F]{4}", digits):
        raise ValueError(
            rf"line {number}: \u is followed by four hexadecimal digits; write \\u for a backslash before a u"
        )
    return chr(int(digits, 16))


def _written(text: str, *, key: bool) -> str:
    return "".join(_written_letter(letter, index, key=key) for index, letter in enumerate(text))


def _written_letter(letter: str, index: int, *, key: bool) -> str:
    if letter in WRITTEN:
        return WRITTEN[letter]
    if letter in "=:#!" or (letter == " " and (key or index == 0)):
        return "\\" + letter
    if " " <= letter <= "~":
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
