"""A record that is none, as it stands on the dead-letter topic: where it came from, and why it is there."""

import json
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

from headrace.framework.errors import DataError, PipelineError
from headrace.framework.record import Header, RecordBatch
from headrace.transformers.base import Position

__all__ = ["CONNECTOR", "REPLAYED", "DeadLetter", "connect_headers", "known_headers", "replayed_headers"]

CONNECTOR = "headrace.connector"
"""The header that says whose dead letter it is."""

PARTITION = "headrace.source.partition"
OFFSET = "headrace.source.offset"
OBJECT = "headrace.object"
ETAG = "headrace.etag"
RECORD = "headrace.record"
RECORDS = "headrace.records"
START = "headrace.byte.start"
END = "headrace.byte.end"
POSITION = "headrace.position"
ERROR = "headrace.error"

REPLAYED = "headrace.replayed"
"""The header of a record that says which dead letter is done: its partition and its offset on the topic."""

LONGEST_TEXT = 8000
_ETAG_OF_OFFSET = "etag"
_CONTEXT = "__connect.errors."


@attrs.frozen(kw_only=True)
class DeadLetter:
    """What the headers of a dead letter say, besides those of Kafka Connect.

    `source_offset` is where reading went on behind it, and `position` from where it can be read again. `number` is
    that of its first record, or of its line, from 1, and in a part counted as the error says; `count` is how many
    records it stands for, None for all to the object's end. `start` and `end` are its bytes in the object's content,
    as far as there are such; those of its block or row group where it has none of its own.
    """

    connector: str
    source_partition: Mapping[str, Any]
    source_offset: Mapping[str, Any]
    error: str
    object: str = ""
    number: int | None = None
    count: int | None = 1
    start: int | None = None
    end: int | None = None
    position: Position | None = None

    @classmethod
    def of_piece(cls, connector: str, batch: RecordBatch) -> Self:
        """Of a batch that holds a rejected piece."""
        piece = batch.rejected
        assert piece is not None  # noqa: S101 - the caller has looked
        return cls(
            connector=connector,
            source_partition=batch.source_partition,
            source_offset=batch.source_offset,
            error=str(piece.error),
            object=piece.error.where.object or _name_of(batch),
            number=piece.number,
            count=piece.count,
            start=piece.start,
            end=piece.end,
            position=piece.before,
        )

    @classmethod
    def of_value(cls, connector: str, batch: RecordBatch, index: int, error: PipelineError) -> Self:
        """Of a value of a batch that did not get any further."""
        known: dict[str, Any] = {}
        if batch.origin is not None:
            before, place = batch.origin.before(index), batch.origin.place(index)
            known = {
                "number": place.line or batch.origin.others + before.records + 1,
                "start": place.start,
                "end": place.end,
                "position": before,
            }
        return cls(
            connector=connector,
            source_partition=batch.source_partition,
            source_offset=batch.offset_at(index + 1) if batch.offset_at else batch.source_offset,
            error=str(error),
            object=_name_of(batch),
            **known,
        )

    @classmethod
    def from_headers(cls, headers: Mapping[str, bytes]) -> Self | None:
        """Of a record on the topic; None for one that is no dead letter of ours. A damaged one is a `DataError`."""
        if not {CONNECTOR, PARTITION, OFFSET} <= headers.keys():
            return None
        try:
            return cls._read(headers)
        except (ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"the headers of a dead letter cannot be read ({reason}): somebody else wrote it"
            ) from error

    @classmethod
    def _read(cls, headers: Mapping[str, bytes]) -> Self:
        numbers = {name: int(headers[name]) if name in headers else None for name in (RECORD, RECORDS, START, END)}
        return cls(
            connector=headers[CONNECTOR].decode(),
            source_partition=_mapping(headers[PARTITION]),
            source_offset=_mapping(headers[OFFSET]),
            error=headers.get(ERROR, b"").decode(),
            object=headers.get(OBJECT, b"").decode(),
            number=numbers[RECORD],
            count=numbers[RECORDS],
            start=numbers[START],
            end=numbers[END],
            position=_position(headers[POSITION]) if POSITION in headers else None,
        )

    @property
    def etag(self) -> str:
        """The version of the object that it was read from; empty where a source knows none."""
        found = self.source_offset.get(_ETAG_OF_OFFSET)
        return found if isinstance(found, str) else ""

    def headers(self) -> list[Header]:
        """As they are sent; what is not known has none."""
        known: dict[str, str | int | None] = {
            CONNECTOR: self.connector,
            PARTITION: _json(self.source_partition),
            OFFSET: _json(self.source_offset),
            OBJECT: self.object or None,
            ETAG: self.etag or None,
            RECORD: self.number,
            RECORDS: self.count,
            START: self.start,
            END: self.end,
            POSITION: None if self.position is None else _json(attrs.asdict(self.position)),
            ERROR: _short(self.error),
        }
        return [(name, str(value).encode()) for name, value in known.items() if value is not None]


def connect_headers(
    letter: DeadLetter, error: PipelineError, *, topic: str, partition: int | None, task: int, class_name: str
) -> list[Header]:
    """The headers that Kafka Connect's dead letters have, by its names.

    Kafka Connect's are of a record that came from Kafka: `topic` and `partition` are those of the record that was to
    be sent, and `offset` is its number in the object; -1 is what is not known.
    """
    known = {
        "topic": topic,
        "partition": -1 if partition is None else partition,
        "offset": -1 if letter.number is None else letter.number,
        "connector.name": letter.connector,
        "task.id": task,
        "stage": error.where.stage or "",
        "class.name": class_name,
        "exception.class.name": f"{type(error).__module__}.{type(error).__qualname__}",
        "exception.message": _short(str(error)),
        "exception.stacktrace": _short("".join(traceback.format_exception(error))),
    }
    return [(_CONTEXT + name, str(value).encode(errors="replace")) for name, value in known.items()]


def replayed_headers(connector: str, place: str) -> Sequence[Header]:
    """The headers of a record that says that the dead letter at a place of the topic is done."""
    return [(CONNECTOR, connector.encode()), (REPLAYED, place.encode())]


def known_headers(headers: Any) -> dict[str, bytes]:
    """The headers of a message as its client has them, those without a value left out."""
    return {name: value for name, value in headers or () if isinstance(value, bytes)}


def _name_of(batch: RecordBatch) -> str:
    return "" if batch.origin is None else batch.origin.object


def _mapping(text: bytes) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError(f"a JSON object was expected, not {type(found).__name__}")
    return found


def _position(text: bytes) -> Position:
    return Position(**{name: int(value) for name, value in _mapping(text).items()})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
