"""`string`: every value as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.converters.base import Converter
from headrace.converters.java import java_text
from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Fault, Where
from headrace.framework.schema import JSON_TEXT, Schema
from headrace.framework.stage import Stage

__all__ = ["StringConverter"]

_ENCODING = "converter.encoding"
_CONVERT = Where(stage=Stage.CONVERT)


class StringConverter(Converter):
    """Values as the text that Java makes of them, in UTF-8; None is a null on the topic.

    Strings as they are, `true` and `false`, numbers in Java's form, maps as `{a=1}` and lists as `[1, 2]`. Bytes must
    be UTF-8 and go on as they are, and so does a JSON text.
    """

    @override
    def configure(self, props: Mapping[str, str], *, is_key: bool) -> None:
        encoding = props.get(_ENCODING, "UTF-8")
        if encoding.strip().lower() not in {"utf-8", "utf8"}:
            key = f"{'key' if is_key else 'value'}.converter.{_ENCODING}"
            raise ConfigError([Fault(key, encoding, f"text is written in UTF-8; {encoding} is not written yet")])

    @override
    def convert(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return java_text(value).encode()
        except UnicodeError as error:
            message = f"the string converter takes UTF-8 only ({error}): use the bytes converter"
            raise DataError(message, _CONVERT) from error
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the string converter cannot write this {type(value).__name__} ({error}): make it a string first"
            raise DataError(message, _CONVERT) from error

    @override
    def convert_all(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Sequence[bytes | None]:
        if schema == JSON_TEXT:
            return values
        try:
            return list(map(str.encode, values))
        except (TypeError, UnicodeError):
            return super().convert_all(topic, schema, values)
