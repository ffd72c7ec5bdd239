"""`json`: every value as JSON, as Kafka Connect's converter writes it without schemas."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.converters.base import Converter
from headrace.converters.json_text import to_json
from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Fault, Where
from headrace.framework.schema import JSON_TEXT, Schema
from headrace.framework.stage import Stage

__all__ = ["JsonConverter"]

_SCHEMAS = "schemas.enable"


class JsonConverter(Converter):
    """Values as compact JSON; a JSON text goes on as it is, byte for byte; None is a null on the topic.

    `schemas.enable` is false by default. Kafka Connect's default is true: whoever resolves the Java class name puts
    that in. The envelope with the schema is not written yet.
    """

    @override
    def configure(self, props: Mapping[str, str], *, is_key: bool) -> None:
        text = props.get(_SCHEMAS, "false")
        enabled = text.strip().lower()
        if enabled == "false":
            return
        key = f"{'key' if is_key else 'value'}.converter.{_SCHEMAS}"
        if enabled == "true":
            raise ConfigError([Fault(key, text, f"the envelope with the schema is not written yet: set {key}=false")])
        raise ConfigError([Fault(key, text, "must be true or false")])

    @override
    def convert(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, bytes) and schema == JSON_TEXT:
            return value
        try:
            return to_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            message = (
                f"the json converter cannot write this {type(value).__name__} ({error}): change it before it is sent"
            )
            raise DataError(message, Where(stage=Stage.CONVERT)) from error

    @override
    def convert_all(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Sequence[bytes | None]:
        return values if schema == JSON_TEXT else super().convert_all(topic, schema, values)
