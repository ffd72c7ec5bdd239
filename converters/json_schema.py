"""Values with a schema as JSON, and schemas as JSON, byte for byte as Kafka Connect's converter writes them."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import attrs

from headrace.converters.float32 import float32
from headrace.converters.json_text import text_of
from headrace.framework.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema

__all__ = ["SchemaWriter", "logical_value", "plain_decimal", "unscaled_bytes"]

_TYPE_NAMES = {"float32": "float", "float64": "double"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MOST_DIGITS = 10_000


@attrs.frozen(kw_only=True)
class SchemaWriter:
    """Writes values by their schemas.

    `numeric_decimals` writes decimals as numbers, and not as the Base64 of their digits; `nulls_to_defaults` a
    schema's default in place of a null, as Connect does unless it is told otherwise.
    """

    numeric_decimals: bool = False
    nulls_to_defaults: bool = True

    def envelope(self, schema: Schema | None) -> str:
        """What comes before a value in its envelope; a closing brace comes behind it."""
        written = "null" if schema is None else self.schema(schema)
        return f'{{"schema":{written},"payload":'

    def schema(self, schema: Schema, field: str | None = None) -> str:
        """A schema; of a struct's field, with its name at the end."""
        parts = [f'"type":{text_of(_TYPE_NAMES.get(schema.type, schema.type))}']
        if schema.type == "array":
            parts.append(f'"items":{self.schema(_inner(schema.values))}')
        elif schema.type == "map":
            parts += [f'"keys":{self.schema(_inner(schema.keys))}', f'"values":{self.schema(_inner(schema.values))}']
        elif schema.type == "struct":
            parts.append(f'"fields":[{",".join(self.schema(one.schema, one.name) for one in schema.fields)}]')
        parts.append(f'"optional":{"true" if schema.optional else "false"}')
        told = {"name": schema.name, "version": schema.version, "doc": schema.doc}
        parts += [f'"{name}":{text_of(value)}' for name, value in told.items() if value is not None]
        if schema.parameters:
            parts.append(f'"parameters":{text_of(schema.parameters)}')
        if schema.default is not None:
            parts.append(f'"default":{self.value(schema, schema.default)}')
        if field is not None:
            parts.append(f'"field":{text_of(field)}')
        return "{" + ",".join(parts) + "}"

    def value(self, schema: Schema | None, value: Any) -> str:  # noqa: PLR0911, PLR0912 - one for each kind of schema
        """A value. TypeError where it is not of its schema, ValueError where JSON has no form for it."""
        if schema is None:
            return text_of(value)
        if value is None:
            return self._null(schema)
        if schema.name == DECIMAL:
            return self._decimal(schema, value)
        if schema.name in {DATE, TIME, TIMESTAMP}:
            return text_of(logical_value(schema.name, value))
        match schema.type:
            case "struct":
                return self._struct(schema, _a(Mapping, value, schema))
            case "array":
                return f"[{','.join(self.value(schema.values, item) for item in _a(Sequence, value, schema))}]"
            case "map":
                return self._map(schema, _a(Mapping, value, schema))
            case "float32":
                return text_of(float32(_a((float, int), value, schema)))
            case "float64":
                return text_of(float(_a((float, int), value, schema)))
            case "bytes":
                return text_of(_a((bytes, bytearray, memoryview), value, schema))
            case "string":
                return text_of(_a(str, value, schema))
            case "boolean":
                return text_of(_a(bool, value, schema))
            case _:
                return text_of(_whole(value, schema))

    def _null(self, schema: Schema) -> str:
        if schema.default is not None and self.nulls_to_defaults:
            return self.value(schema, schema.default)
        if schema.optional:
            return "null"
        raise ValueError(f"null stands where a {schema.name or schema.type} is required")

    def _struct(self, schema: Schema, value: Mapping[str, Any]) -> str:
        fields = [f"{text_of(one.name)}:{self.value(one.schema, value.get(one.name))}" for one in schema.fields]
        return "{" + ",".join(fields) + "}"

    def _map(self, schema: Schema, value: Mapping[Any, Any]) -> str:
        pairs = [(self.value(schema.keys, name), self.value(schema.values, item)) for name, item in value.items()]
        if schema.keys is not None and schema.keys.type == "string":
            return "{" + ",".join(f"{name}:{item}" for name, item in pairs) + "}"
        return "[" + ",".join(f"[{name},{item}]" for name, item in pairs) + "]"

    def _decimal(self, schema: Schema, value: Any) -> str:
        if self.numeric_decimals:
            return plain_decimal(schema, value)
        return f'"{base64.b64encode(unscaled_bytes(schema, value)).decode()}"'


def unscaled_bytes(schema: Schema, value: Any) -> bytes:
    """A decimal's digits as one whole number, in as few bytes as it takes; ValueError where digits would be lost."""
    number = _unscaled(schema, value)
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


def plain_decimal(schema: Schema, value: Any) -> str:
    """A decimal as a number, with as many digits behind the point as its schema says, as Jackson writes it."""
    number, scale = _unscaled(schema, value), _scale(schema)
    return _java_decimal(number, scale)


def _java_decimal(number: int, scale: int) -> str:
    """`BigDecimal.toString` of a whole number and a scale: plain, or with an exponent below a millionth."""
    digits = str(abs(number))
    sign = "-" if number < 0 else ""
    exponent = len(digits) - 1 - scale
    if scale >= 0 and exponent >= -6:  # noqa: PLR2004 - Java's
        if scale == 0:
            return sign + digits
        padded = digits.rjust(scale + 1, "0")
        return f"{sign}{padded[:-scale]}.{padded[-scale:]}"
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{mantissa}E{exponent:+d}"


def logical_value(name: str, value: Any) -> int:
    """A date as days, a time as milliseconds, as they stand in JSON; TypeError for what is none."""
    if type(value) is int:
        return value
    if name == TIMESTAMP and isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if name == DATE and type(value) is date:
        return value.toordinal() - _EPOCH_DAY
    if name == TIME and isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    raise TypeError(f"{type(value).__name__} is no {name.rpartition('.')[2]}")


def _unscaled(schema: Schema, value: Any) -> int:
    scale = _scale(schema)
    if type(value) is int:
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is no Decimal")
    if not value.is_finite():
        raise ValueError(f"there is no {value} in Connect's Decimal")
    sign, digits, exponent = value.as_tuple()
    shift = scale + int(exponent)
    if abs(shift) > _MOST_DIGITS:
        raise ValueError(f"{value} has more than {_MOST_DIGITS} digits")
    number: int = int("".join(map(str, digits))) * 10 ** max(0, shift)
    number, lost = divmod(number, 10 ** max(0, -shift))
    if lost:
        raise ValueError(f"{value} has more than {scale} digits behind the point")
    return -number if sign else number


def _scale(schema: Schema) -> int:
    try:
        return int(schema.parameters["scale"])
    except (KeyError, ValueError) as error:
        raise ValueError("the schema of a Decimal lacks its scale") from error


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise ValueError("the schema of an array or of a map lacks that of its values")
    return schema


def _a(kind: Any, value: Any, schema: Schema) -> Any:
    if isinstance(value, kind) and not (isinstance(value, str) and kind is Sequence):
        return value
    raise TypeError(f"{type(value).__name__} is no {schema.name or schema.type}")


def _whole(value: Any, schema: Schema) -> int:
    if type(value) is bool or not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} is no {schema.name or schema.type}")
    return value
