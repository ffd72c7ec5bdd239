"""`json`: every value as JSON, as Kafka Connect's converter writes it, with and without schemas."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from headrace.converters.base import Converter
from headrace.converters.json_rows import Maps, Rows, rows_writer
from headrace.converters.json_schema import SchemaWriter
from headrace.converters.json_text import to_json
from headrace.framework.compat import override
from headrace.framework.errors import ConfigError, DataError, Where
from headrace.framework.options import Options, option
from headrace.framework.parsers import boolean, choice
from headrace.framework.schema import JSON_TEXT, Schema
from headrace.framework.stage import Stage

__all__ = ["JsonConverter", "JsonOptions"]

_WRITTEN_WITH = (TypeError, ValueError, RecursionError)


@attrs.frozen(kw_only=True)
class JsonOptions(Options):
    """What stands under `key.converter.` and `value.converter.`."""

    PASSED_ON: ClassVar[tuple[str, ...]] = ("",)

    schemas: bool = option(
        "schemas.enable",
        boolean(),
        default=False,
        doc="Whether each value is in an envelope with its schema; true by default under the Java class name.",
    )
    decimal_format: str = option(
        "decimal.format",
        choice("base64", "numeric"),
        default="base64",
        doc="How decimals are written: the digits as Base64, as Connect has them, or as a number.",
    )
    nulls_to_defaults: bool = option(
        "replace.null.with.default",
        boolean(),
        default=True,
        doc="Whether a schema's default stands in place of a null.",
    )


@attrs.define
class JsonConverter(Converter):
    """Values as compact JSON; a JSON text goes on as it is, byte for byte.

    With a schema, a value is written by it: structs in the order of their fields, decimals, dates and times as Connect
    has them. With `schemas.enable` each value is in an envelope with its schema. None is a null on the topic, but in
    the envelope where it has a schema.

    `schemas.enable` is false by default. Kafka Connect's default is true: whoever resolves the Java class name puts
    that in.
    """

    config_class: ClassVar[type[Options]] = JsonOptions

    options: JsonOptions = attrs.field(factory=JsonOptions, init=False)
    _known: "_Known | None" = attrs.field(default=None, init=False)

    @override
    def configure(self, props: Mapping[str, str], *, is_key: bool) -> None:
        side = f"{'key' if is_key else 'value'}.converter."
        try:
            self.options = JsonOptions.from_props(props)
        except ConfigError as error:
            raise ConfigError([attrs.evolve(fault, key=side + fault.key) for fault in error.faults]) from error

    @override
    def convert(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None and (schema is None or not self.options.schemas):
            return None
        try:
            return self._of(schema).text(value)
        except _WRITTEN_WITH as error:
            raise self._refused(value, error) from error

    @override
    def convert_all(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Sequence[bytes | None]:
        try:
            known = self._of(schema)
            texts = known.texts(values)
        except _WRITTEN_WITH as error:
            raise self._refused(values[0], error) from error
        return super().convert_all(topic, schema, values) if texts is None else texts

    def _of(self, schema: Schema | None) -> "_Known":
        """What is known of a schema; batches come with the same one again and again."""
        if self._known is None or self._known.schema is not schema:
            self._known = _Known.of(schema, self.options)
        return self._known

    def _refused(self, value: Any, error: Exception) -> DataError:
        reason = " ".join(str(error).split())
        message = f"the json converter cannot write this {type(value).__name__} ({reason}): change it before it is sent"
        return DataError(message, Where(stage=Stage.CONVERT))


@attrs.frozen
class _Known:
    """How values of one schema are written."""

    schema: Schema | None
    before: bytes
    after: bytes
    is_text: bool
    writer: SchemaWriter
    rows: Rows | Maps | None

    @classmethod
    def of(cls, schema: Schema | None, options: JsonOptions) -> "_Known":
        is_text = schema == JSON_TEXT
        writer = SchemaWriter(
            numeric_decimals=options.decimal_format == "numeric", nulls_to_defaults=options.nulls_to_defaults
        )
        before, after = b"", b""
        if options.schemas:
            before, after = writer.envelope(None if is_text else schema).encode(), b"}"
        rows = None if schema is None else rows_writer(schema, writer, before, after)
        return cls(schema, before, after, is_text, writer, rows)

    def text(self, value: Any) -> bytes:
        return self.before + self._payload(value) + self.after

    def texts(self, values: Sequence[Any]) -> Sequence[bytes | None] | None:
        """All of them; None where each has to be looked at by itself."""
        if not self.is_text:
            return self.rows.texts(values) if self.rows else None
        if not self.before:
            return values
        return None if None in values else [self.before + text + self.after for text in values]

    def _payload(self, value: Any) -> bytes:
        if self.is_text and isinstance(value, bytes):
            return value
        if self.schema is None or self.is_text or (self.schema.type == "string" and type(value) is str):
            return to_json(value)
        return self.writer.value(self.schema, value).encode()
