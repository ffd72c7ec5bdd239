"""From the texts of a CSV row to a value: an object of strings, or of the types that were asked for."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

from headrace.framework.compat import override
from headrace.framework.errors import DataError, Where
from headrace.framework.parsers import Parser
from headrace.framework.schema import DATE, TIME, TIMESTAMP, Field, Schema, decimal_schema, logical_schema
from headrace.framework.stage import Stage
from headrace.framework.table import Table
from headrace.transformers.csv_grid import Grid

__all__ = ["ColumnTypes", "Columns", "column_types"]

_LONG = 2**63
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_PLAIN_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BELOW_A_MILLISECOND = re.compile(r"[.,][0-9]{3}0*[1-9]")
_DECIMAL_TYPE = re.compile(r"decimal\(([0-9]{1,4})\)")
_TYPE = re.compile(r"\s*([^,:]+?)\s*:\s*([a-z0-9]+(?:\([0-9]+\))?)\s*")

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LOGICAL = {"date": DATE, "time": TIME, "timestamp": TIMESTAMP}
_NAMES = ("string", "boolean", *_BITS, "float64", "decimal(n)", *_LOGICAL)


@attrs.frozen
class ColumnTypes:
    """What `csv.types` says: a type for some of the fields, and whether the others are looked at one by one."""

    by_name: Mapping[str, str] = attrs.field(factory=dict)
    inferred: bool = False

    @override
    def __str__(self) -> str:
        listed = ",".join(f"{name}:{kind}" for name, kind in self.by_name.items())
        return listed or ("inferred" if self.inferred else "string")


def column_types() -> Parser[ColumnTypes]:
    """`string`, `inferred`, or a list of `name:type`."""

    def parse(given: str) -> ColumnTypes:
        if given in {"string", "inferred"}:
            return ColumnTypes(inferred=given == "inferred")
        found: dict[str, str] = {}
        for part in given.split(","):
            match = _TYPE.fullmatch(part)
            if match is None or _reader(match[2]) is None:
                raise ValueError(f"must be string, inferred, or a list of name:type, where a type is {_listed(_NAMES)}")
            found[match[1]] = match[2]
        return ColumnTypes(found)

    return Parser("types", parse, "string | inferred | a list of name:type", words=("string", "inferred"))


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


@attrs.frozen
class Columns:
    """The fields of every row; `schema` is None where each value has a type of its own."""

    names: tuple[str, ...]
    schema: Schema | None
    readers: tuple[Callable[[str], Any] | None, ...]
    null: str | None = None

    @classmethod
    def of(cls, names: Sequence[str], types: ColumnTypes, null: str | None) -> "Columns":
        """The fields of these names; `DataError` where `types` speaks of others."""
        missing = [name for name in types.by_name if name not in names]
        if missing:
            message = f"csv.types names {missing[0]!r}, and the fields are {_listed(names)}: mend one of the two"
            raise DataError(message, Where(stage=Stage.TRANSFORM, position="line 1"))
        if types.inferred:
            return cls(tuple(names), None, (_inferred,) * len(names), null)
        kinds = [types.by_name.get(name, "string") for name in names]
        fields = tuple(Field(name, _schema(kind)) for name, kind in zip(names, kinds, strict=True))
        readers = tuple(None if kind == "string" else _reader(kind) for kind in kinds)
        return cls(tuple(names), Schema("struct", fields=fields), readers, null)

    def values(self, rows: Sequence[Sequence[str]]) -> tuple[Sequence[Mapping[str, Any]], ValueError | None]:
        """The values of rows, up to the first that has none, with what is wrong with that one."""
        columns = _columns(rows)
        if columns is not None and len(columns) == len(self.names):
            try:
                return Table(self.names, list(map(self._column, self.readers, columns)), len(rows)), None
            except ValueError:
                pass
        return self._one_by_one(rows)

    def _column(self, read: Callable[[str], Any] | None, texts: Sequence[str]) -> Sequence[Any]:
        return texts if self.null is None and read is None else [self._read(read, text) for text in texts]

    def _read(self, read: Callable[[str], Any] | None, text: str) -> Any:
        if text == self.null:
            return None
        return text if read is None else read(text)

    def _one_by_one(self, rows: Sequence[Sequence[str]]) -> tuple[list[dict[str, Any]], ValueError | None]:
        values: list[dict[str, Any]] = []
        for row in rows:
            try:
                values.append(self._value(row))
            except ValueError as error:
                return values, error
        return values, None

    def _value(self, row: Sequence[str]) -> dict[str, Any]:
        if len(row) != len(self.names):
            raise ValueError(f"the row has {len(row)} fields, and there are {len(self.names)} columns")
        found: dict[str, Any] = {}
        for name, read, text in zip(self.names, self.readers, row, strict=True):
            try:
                found[name] = self._read(read, text)
            except ValueError as error:
                raise ValueError(f"the field {name!r} {error}") from error
        return found


def _columns(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]] | None:
    """The rows by column; None where they have not all as many fields."""
    if isinstance(rows, Grid):
        return rows.columns
    return list(zip(*rows, strict=True)) if len(set(map(len, rows))) == 1 else None


def _schema(kind: str) -> Schema:
    if kind in _LOGICAL:
        return logical_schema(_LOGICAL[kind], optional=True)
    match = _DECIMAL_TYPE.fullmatch(kind)
    return decimal_schema(int(match[1]), optional=True) if match else Schema(kind, optional=True)


def _reader(kind: str) -> Callable[[str], Any] | None:
    """What makes a value of a type from a text, and null from the empty one; None if there is no such type."""
    if match := _DECIMAL_TYPE.fullmatch(kind):
        return _nullable(lambda text: _decimal(text, int(match[1])))
    if kind in _BITS:
        return _nullable(lambda text: _whole(text, _BITS[kind]))
    return _nullable(_READERS[kind]) if kind in _READERS else None


def _nullable(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: read(text) if text else None


def _whole(text: str, bits: int) -> int:
    limit = 2 ** (bits - 1)
    if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
        raise ValueError(f"is no integer of {bits} bits")
    return int(text)


def _number(text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else float("inf")
    if abs(number) == float("inf"):
        raise ValueError("is no finite number")
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def _decimal(text: str, scale: int) -> Decimal:
    try:
        number = Decimal(text) if _NUMBER.fullmatch(text) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or -int(number.as_tuple().exponent) > scale:
        raise ValueError(f"is no number with at most {scale} digits behind the point")
    return number


def _days(text: str) -> int:
    try:
        return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError as error:
        raise ValueError("is no date such as 2024-12-31") from error


def _day_time(text: str) -> int:
    try:
        found = time.fromisoformat(text)
    except ValueError as error:
        raise ValueError("is no time such as 23:59:59.999") from error
    if found.utcoffset():
        raise ValueError("is not without a zone, as Kafka Connect's times of day are (as a string it may)")
    _refuse_finer(text)
    return ((found.hour * 60 + found.minute) * 60 + found.second) * 1000 + found.microsecond // 1000


def _moment(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("is no time such as 2024-12-31T23:59:59Z") from error
    _refuse_finer(text)
    since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 1000 + since.microseconds // 1000


def _refuse_finer(text: str) -> None:
    if _BELOW_A_MILLISECOND.search(text):
        raise ValueError("is not in whole milliseconds, and Kafka Connect's times are (as a string it may be)")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": _boolean,
    "float64": _number,
    "date": _days,
    "time": _day_time,
    "timestamp": _moment,
}


def _inferred(text: str) -> Any:
    if not text:
        return None
    if _PLAIN_INTEGER.fullmatch(text) and -_LONG <= int(text) < _LONG:
        return int(text)
    if text in {"true", "false"}:
        return text == "true"
    # An integer beyond 64 bits stays a text: as a number it would lose digits.
    if _PLAIN_NUMBER.fullmatch(text) and not text.lstrip("-").isdigit() and abs(float(text)) != float("inf"):
        return float(text)
    return text
