"""`bytes`: what is bytes already."""

from collections.abc import Sequence
from typing import Any

from headrace.converters.base import Converter
from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.schema import Schema
from headrace.framework.stage import Stage

__all__ = ["BytesConverter"]

_AS_THEY_ARE = {bytes, type(None)}


class BytesConverter(Converter):
    """Bytes go on the topic as they are, a JSON text among them; None is a null. Nothing else is taken."""

    @override
    def convert(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise DataError(
            f"the bytes converter takes bytes, not {type(value).__name__}: use the string or the json converter",
            Where(stage=Stage.CONVERT),
        )

    @override
    def convert_all(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Sequence[bytes | None]:
        if _AS_THEY_ARE.issuperset(map(type, values)):
            return values
        return super().convert_all(topic, schema, values)
